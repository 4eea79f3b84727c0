"""Heart: patients with or without a heart disease, with the columns of UCI's Cleveland dataset.

The patients are made up, and there are ten times as many as in the real dataset. The target depends
on the columns in the directions that are known from it.
"""

from typing import List

import numpy as np

from elasticdl.data_gen.output import Options, write_csv, write_records
from elasticdl.data_gen.tables import bernoulli, encode_rows, pick

TRAIN_RECORDS, TEST_RECORDS = 2420, 610
COLUMNS = {
    "age": "int", "sex": "int", "cp": "int", "trestbps": "int", "chol": "int", "fbs": "int",
    "restecg": "int", "thalach": "int", "exang": "int", "oldpeak": "float", "slope": "int",
    "ca": "int", "thal": "text", "target": "int",
}
THAL = {"normal": 55, "reversible": 39, "fixed": 6}


def rows(count: int, seed: int) -> List[tuple]:
    """The values of each patient in the order of COLUMNS."""
    rng = np.random.default_rng(seed)
    age = rng.normal(54, 9, count).clip(29, 77).astype(int)
    sex = (rng.random(count) < 0.68).astype(int)
    cp = rng.choice(5, count, p=[0.02, 0.08, 0.16, 0.28, 0.46])
    trestbps = rng.normal(131, 17, count).clip(94, 200).astype(int)
    chol = rng.normal(246, 50, count).clip(126, 564).astype(int)
    fbs = (rng.random(count) < 0.15).astype(int)
    restecg = rng.choice(3, count, p=[0.5, 0.01, 0.49])
    thalach = rng.normal(200 - 0.95 * age, 19).clip(71, 202).astype(int)
    exang = (rng.random(count) < 0.33).astype(int)
    oldpeak = np.round(rng.exponential(1.05, count).clip(0, 6.2), 1)
    slope = rng.choice([1, 2, 3], count, p=[0.47, 0.46, 0.07])
    ca = rng.choice(4, count, p=[0.59, 0.22, 0.13, 0.06])
    thal = pick(rng, count, THAL)

    score = (-3.3 + 0.035 * (age - 54) + 0.9 * sex + 0.5 * (cp == 4) * 2 + 0.012 * (trestbps - 131)
             + 0.004 * (chol - 246) - 0.035 * (thalach - 149) + 0.8 * exang + 0.6 * oldpeak
             + 0.4 * (slope - 1) + 1.2 * ca + 1.6 * (thal == 1) + 0.8 * (thal == 2))
    target = bernoulli(1.5 * score, rng)
    return list(zip(*(column.tolist() for column in (
        age, sex, cp, trestbps, chol, fbs, restecg, thalach, exang, oldpeak, slope, ca,
        np.array(list(THAL))[thal], target))))


def generate(options: Options) -> None:
    for part, count, seed in (("train", TRAIN_RECORDS, options.seed),
                              ("test", TEST_RECORDS, options.seed + 1_000_003)):
        patients = rows(options.records(count), seed)
        write_records(options, part, encode_rows(COLUMNS, patients))
        write_csv(options, part, patients)
