"""Click records with a model planted in them: whoever finds it reaches an AUC that others do not.

26 columns of ids with the numbers of categories that the public Criteo set has, cut where a caller
says, drawn by Zipf's law; 13 numbers. A click's log-odds are a sum of hidden effects of all of
them, and of pairs of columns that count only together. Effects are a function of the id, so that
there may be any number of ids. NumPy only; the same seed gives the same records.
"""

from typing import NamedTuple

import numpy as np

from model_zoo.deepctr.gen_criteo_sample import CATEGORIES

COLUMNS, NUMBERS = len(CATEGORIES), 13
SKEW = 1.05  # of Zipf's law: the larger, the more of the records have the same few ids
BASE = -1.4  # about every fourth record is a click
ID_EFFECT, PAIR_EFFECT, NUMBER_EFFECT = 0.3, 0.4, 0.2
PAIRS = ((0, 5), (1, 8), (4, 13), (6, 16), (7, 22), (10, 24))
FIRST_OF_ONCE = 1 << 40  # above all ids that come again


class Records(NamedTuple):
    ids: np.ndarray      # int64, [records, COLUMNS]; no id is in two columns
    numbers: np.ndarray  # float32, [records, NUMBERS]
    labels: np.ndarray   # float32, [records]
    chances: np.ndarray  # float32, of a click: what a perfect model would say

    def __len__(self):
        return len(self.labels)

    def batch(self, number, size):
        return Records(*(array[number * size:(number + 1) * size] for array in self))


class Generator:
    """Draws records. No column has more than `most` categories; ids of the columns `once` never
    come again, as those of sessions do not."""

    def __init__(self, most, once=(), seed=0):
        self._counts = np.array([min(count, most) for count, _ in CATEGORIES])
        self._firsts = np.concatenate([[0], np.cumsum(self._counts)])
        self._once = list(once)
        self._next_of_once = FIRST_OF_ONCE
        self._random = np.random.default_rng(seed)

    @property
    def known(self):
        """All ids that come again are below it."""
        return int(self._firsts[-1])

    def draw(self, records):
        # The inverse of the distribution's integral, which is near enough to Zipf's sum.
        places = self._random.random((records, COLUMNS))
        ranks = (1 - places * (1 - self._counts ** (1 - SKEW))) ** (1 / (1 - SKEW)) - 1
        ranks = np.minimum(ranks.astype(np.int64), self._counts - 1)
        # What is frequent does not lie together: a prime that divides no count shuffles the ranks.
        ids = self._firsts[:-1] + ranks * 2_147_483_647 % self._counts
        if self._once:
            new = records * len(self._once)
            ids[:, self._once] = (self._next_of_once + np.arange(new)).reshape(records, -1)
            self._next_of_once += new
        numbers = self._random.normal(size=(records, NUMBERS)).astype(np.float32)
        score = BASE + ID_EFFECT * hidden(ids, 0).sum(1)
        for one, other in PAIRS:
            score += PAIR_EFFECT * hidden(ids[:, one], 1) * hidden(ids[:, other], 1)
        score += NUMBER_EFFECT * numbers @ hidden(np.arange(NUMBERS), 2)
        chances = 1 / (1 + np.exp(-score))
        labels = self._random.random(records) < chances
        return Records(ids, numbers, labels.astype(np.float32), chances.astype(np.float32))


def hidden(ids, kind):
    """About normal, of deviation 1, by id alone."""
    # SplitMix64 (Steele, Lea, Flood 2014): 64 bits of which each depends on all of the id's.
    bits = (ids.astype(np.uint64) + np.uint64(1 + (kind << 48))) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    # The sum of four numbers of 16 bits each.
    parts = sum((bits >> np.uint64(16 * part)) & np.uint64(0xFFFF) for part in range(4))
    return (parts.astype(np.float64) / 65536 - 2) * np.sqrt(3)


def area_under_curve(scores, labels):
    """The chance that a click has a higher score than what is none."""
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    # Equal scores share the mean of their places.
    starts = np.flatnonzero(np.r_[True, sorted_scores[1:] != sorted_scores[:-1]])
    ends = np.r_[starts[1:], len(scores)]
    places = np.empty(len(scores))
    places[order] = np.repeat((starts + ends + 1) / 2, ends - starts)
    clicks = labels > 0.5
    count = clicks.sum()
    return (places[clicks].sum() - count * (count + 1) / 2) / (count * (len(labels) - count))
