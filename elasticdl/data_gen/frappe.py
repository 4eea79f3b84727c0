"""Frappe: which apps people use in which context. Ten ids per record, and whether the app was used.

The ids 1 to 5,382 number the values of all fields, one field after the other; 0 is for padding. The
labels follow a hidden factorization machine, which a DeepFM model can learn.
"""

import numpy as np

from elasticdl.data_gen.example import encode, int64_list
from elasticdl.data_gen.output import Options, write_records
from elasticdl.data_gen.tables import bernoulli

TRAIN_RECORDS, TEST_RECORDS = 202027, 28860
# The number of values of each field in the real dataset.
FIELDS = {"user": 957, "item": 4082, "daytime": 7, "weekday": 7, "isweekend": 2, "homework": 3,
          "cost": 2, "weather": 9, "country": 80, "city": 233}
FACTORS = 4
HIDDEN_SEED = 5382  # the hidden model is the same for every seed


def offsets() -> np.ndarray:
    """The first id of each field."""
    return 1 + np.concatenate([[0], np.cumsum(list(FIELDS.values()))[:-1]])


def draw_ids(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 10) ids. Few users, apps, countries and cities have most of the records."""
    columns = []
    for first, values in zip(offsets(), FIELDS.values()):
        shares = 1 / (np.arange(values) + 5.0) if values > 10 else np.ones(values)
        columns.append(first + rng.choice(values, count, p=shares / shares.sum()))
    return np.stack(columns, axis=1)


def scores(ids: np.ndarray) -> np.ndarray:
    """The logits of the hidden factorization machine."""
    hidden = np.random.default_rng(HIDDEN_SEED)
    size = 1 + sum(FIELDS.values())
    weights = hidden.normal(0, 0.7, size)
    factors = hidden.normal(0, 0.35, (size, FACTORS))
    rows = factors[ids]
    pairs = (rows.sum(axis=1) ** 2 - (rows**2).sum(axis=1)).sum(axis=1) / 2
    # In the real dataset a third of the records are positive.
    return weights[ids].sum(axis=1) + pairs - 3.5


def generate(options: Options) -> None:
    for part, count, seed in (("train", TRAIN_RECORDS, options.seed),
                              ("test", TEST_RECORDS, options.seed + 1_000_003)):
        rng = np.random.default_rng(seed)
        ids = draw_ids(options.records(count), rng)
        labels = bernoulli(scores(ids), rng)
        write_records(options, part, (
            encode({"feature": int64_list(row), "label": int64_list([label])})
            for row, label in zip(ids.tolist(), labels.tolist())))
