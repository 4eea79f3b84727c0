"""Iris: the 150 flowers of model_zoo/iris/iris.data, shuffled; every fifth is for tests."""

import csv
import random

from elasticdl.data_gen.output import Options, write_csv, write_records
from elasticdl.data_gen.tables import encode_rows
from elasticdl.data_gen.zoo_files import zoo_file

SPECIES = ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
COLUMNS = {"sepal_length": "float", "sepal_width": "float", "petal_length": "float",
           "petal_width": "float", "class": "int"}


def generate(options: Options) -> None:
    with open(zoo_file("iris/iris.data"), newline="", encoding="ascii") as file:
        rows = [[*row[:4], SPECIES.index(row[4])] for row in csv.reader(file) if row]
    random.Random(options.seed).shuffle(rows)
    test = len(rows) // 5
    for part, chosen in (("train", rows[test:]), ("test", rows[:test])):
        chosen = chosen[:options.records(len(chosen))]
        write_records(options, part, encode_rows(COLUMNS, chosen))
        write_csv(options, part, chosen)
