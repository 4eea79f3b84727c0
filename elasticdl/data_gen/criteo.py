"""Criteo: clicks on advertisements, with 13 numbers (I1..I13) and 26 categories (C1..C26).

The records are those of model_zoo/deepctr/gen_criteo_sample.py, which describes them. A missing
number is 0, a missing category is an empty string.
"""

import importlib.util
from typing import Iterator

from elasticdl.data_gen.output import Options, write_records
from elasticdl.data_gen.tables import encode_rows
from elasticdl.data_gen.zoo_files import zoo_file

TRAIN_RECORDS, TEST_RECORDS = 50000, 10000
COLUMNS = {"label": "int", **{f"I{i}": "float" for i in range(1, 14)},
           **{f"C{i}": "text" for i in range(1, 27)}}


def click_generator(seed: int):
    spec = importlib.util.spec_from_file_location(
        "gen_criteo_sample", zoo_file("deepctr/gen_criteo_sample.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Generator(seed)


def rows(count: int, seed: int) -> Iterator[list]:
    generator = click_generator(seed)
    for _ in range(count):
        label, *values = generator.record()
        yield [label, *(value or "0" for value in values[:13]), *values[13:]]


def generate(options: Options) -> None:
    for part, count, seed in (("train", TRAIN_RECORDS, options.seed),
                              ("test", TEST_RECORDS, options.seed + 1_000_003)):
        write_records(options, part, encode_rows(COLUMNS, rows(options.records(count), seed)))
