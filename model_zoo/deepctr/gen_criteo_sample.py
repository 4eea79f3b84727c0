"""Generates click records in the format of DeepCTR's criteo_sample.txt.

    python -m model_zoo.deepctr.gen_criteo_sample --output=data/criteo_sample.txt --records=10000

The file has the same header, 13 numeric columns with missing values, and 26 columns of 8-digit
hexadecimal categories. The fraction of missing values, the skew and the number of categories of
each column follow the public Criteo dataset; the number of categories is scaled down. The clicks
follow a hidden model (weights of categories and numbers, and of two pairs of columns), so a good
model reaches a higher AUC than a bad one. The same seed gives the same file.
"""

import argparse
import bisect
import itertools
import math
import os
import random
import zlib
from typing import List

# Fraction of empty values, then mean and deviation of log(1 + value), of I1..I13.
NUMBERS = (
    (0.45, 0.8, 0.9), (0.00, 2.0, 2.0), (0.21, 2.0, 1.4), (0.22, 1.7, 1.0), (0.03, 7.5, 2.4),
    (0.22, 3.6, 1.6), (0.04, 1.7, 1.3), (0.00, 2.0, 1.1), (0.04, 4.1, 1.4), (0.45, 0.4, 0.4),
    (0.04, 1.0, 0.7), (0.77, 0.3, 0.6), (0.22, 1.7, 1.1),
)
# Number of categories in the public dataset and fraction of empty values, of C1..C26.
CATEGORIES = (
    (1461, 0), (584, 0), (10131227, 0.03), (2202608, 0.03), (306, 0), (24, 0.12), (12518, 0),
    (634, 0), (4, 0), (93146, 0), (5684, 0), (8351593, 0.03), (3195, 0), (28, 0), (14993, 0),
    (5461306, 0.03), (11, 0), (5653, 0), (2173, 0.44), (4, 0.44), (7046547, 0.03), (18, 0.76),
    (16, 0), (286181, 0.03), (105, 0.44), (142572, 0.44),
)
# Columns whose categories affect the click rate, and pairs whose combinations do.
WEIGHTY = (5, 6, 9, 14, 17, 20, 22, 23)
PAIRS = ((6, 9), (14, 17))
NUMERIC_WEIGHTS = {1: 0.5, 3: -0.25, 6: -0.3, 7: 0.45, 11: 0.5, 13: -0.35}
BASE = -1.3  # about every fourth record is a click


def scaled(categories: int) -> int:
    """The number of categories of a column: up to 30 unchanged, above that reduced by a square
    root."""
    return categories if categories <= 30 else round(30 * math.sqrt(categories / 30))


def effect(*names: object) -> float:
    """The weight of a category or of a pair in the hidden model. Its mean is 0."""
    return random.Random("/".join(map(str, names))).gauss(0, 1)


class Generator:
    """Generates records one after the other. Confined."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._cumulative = [
            list(itertools.accumulate(1 / (rank + 1) for rank in range(scaled(count))))
            for count, _ in CATEGORIES
        ]
        self._effects: dict = {}

    def record(self) -> List[str]:
        """label, I1..I13, C1..C26. An empty string is a missing value."""
        numbers = [self._number(i) for i in range(len(NUMBERS))]
        categories = [self._category(i) for i in range(len(CATEGORIES))]
        chance = 1 / (1 + math.exp(-self._score(numbers, categories)))
        label = "1" if self._random.random() < chance else "0"
        texts = ["" if n is None else str(n) if i == 1 else f"{n}.0" for i, n in enumerate(numbers)]
        names = ["" if c < 0 else f"{zlib.crc32(f'C{i + 1}/{c}'.encode()):08x}"
                 for i, c in enumerate(categories)]
        return [label, *texts, *names]

    def _number(self, column: int):
        gaps, mean, deviation = NUMBERS[column]
        if self._random.random() < gaps:
            return None
        value = int(math.expm1(max(0.0, self._random.gauss(mean, deviation))))
        # I2 has no missing values, and is the only column with values below zero.
        return value - 1 if column == 1 else value

    def _category(self, column: int) -> int:
        cumulative = self._cumulative[column]
        if self._random.random() < CATEGORIES[column][1]:
            return -1
        return bisect.bisect_left(cumulative, self._random.random() * cumulative[-1])

    def _score(self, numbers: list, categories: List[int]) -> float:
        score = BASE
        for column, weight in NUMERIC_WEIGHTS.items():
            value = numbers[column - 1]
            if value is not None:
                mean, deviation = NUMBERS[column - 1][1:]
                score += weight * (math.log1p(max(0, value)) - mean) / deviation
        for column in WEIGHTY:
            score += 0.4 * self._effect(column, categories[column - 1])
        for a, b in PAIRS:
            score += 0.5 * self._effect(a, categories[a - 1], b, categories[b - 1])
        return score

    def _effect(self, *names: object) -> float:
        if names not in self._effects:
            self._effects[names] = effect(*names)
        return self._effects[names]


def write_sample(path: str, records: int, seed: int) -> None:
    """Writes the file atomically."""
    generator = Generator(seed)
    header = ["label"] + [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)]
    part = f"{path}.{os.getpid()}.part"
    with open(part, "w", encoding="ascii") as file:
        file.write(",".join(header) + "\n")
        for _ in range(records):
            file.write(",".join(generator.record()) + "\n")
    os.replace(part, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="criteo_sample.txt")
    parser.add_argument("--records", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.makedirs(os.path.dirname(os.path.abspath(args.output)), exist_ok=True)
    write_sample(args.output, args.records, args.seed)
    print(f"{args.records} records in {args.output}")


if __name__ == "__main__":
    main()
