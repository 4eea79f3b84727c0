"""Records of tables: one feature per column."""

from typing import Iterable, Iterator, Mapping, Sequence

import numpy as np

from elasticdl.data_gen.example import bytes_list, encode, float_list, int64_list

# The Feature of one value, by the type of its column.
ENCODERS = {
    "int": lambda value: int64_list([int(value)]),
    "float": lambda value: float_list([float(value)]),
    "text": lambda value: bytes_list([value]),
}


def encode_rows(columns: Mapping[str, str], rows: Iterable[Sequence]) -> Iterator[bytes]:
    """The records of `rows`, whose values are in the order of `columns` (name -> type)."""
    encoders = [(name, ENCODERS[kind]) for name, kind in columns.items()]
    for row in rows:
        yield encode({name: encoder(value) for (name, encoder), value in zip(encoders, row)})


def bernoulli(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0 or 1 for each score; 1 with the probability sigmoid(score)."""
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(np.int64)


def pick(rng: np.random.Generator, count: int, weights: Mapping[str, float]) -> np.ndarray:
    """Indices into `weights`, drawn with these weights."""
    shares = np.array(list(weights.values()), float)
    return rng.choice(len(shares), count, p=shares / shares.sum())
