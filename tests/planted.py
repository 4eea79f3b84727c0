"""Synthetic click records that follow a hidden model, so that the AUC shows how much was learned.

A record has 26 columns of ids and 13 numbers. The columns have as many categories as those of the
public Criteo dataset, up to a limit of the caller, and the ids follow Zipf's law. The log-odds of a
click are the sum of hidden effects of all ids and numbers, and of pairs of columns. Effects are a
function of the id, so the number of ids is not limited. The same seed gives the same records.
"""

from typing import NamedTuple

import numpy as np

from model_zoo.deepctr.gen_criteo_sample import CATEGORIES

COLUMNS, NUMBERS = len(CATEGORIES), 13
SKEW = 1.05  # the exponent of Zipf's law
BASE = -1.4  # about every fourth record is a click
ID_EFFECT, PAIR_EFFECT, NUMBER_EFFECT = 0.3, 0.4, 0.2
PAIRS = ((0, 5), (1, 8), (4, 13), (6, 16), (7, 22), (10, 24))
FIRST_OF_ONCE = 1 << 40  # above all ids that occur repeatedly


class Records(NamedTuple):
    ids: np.ndarray      # int64, [records, COLUMNS]; no id is in two columns
    numbers: np.ndarray  # float32, [records, NUMBERS]
    labels: np.ndarray   # float32, [records]
    chances: np.ndarray  # float32, the probability of a click: the output of a perfect model

    def __len__(self):
        return len(self.labels)

    def batch(self, number, size):
        return Records(*(array[number * size:(number + 1) * size] for array in self))


class Generator:
    """Draws records. No column has more than `most` categories. In the columns `once`, each id
    occurs only once, like ids of sessions."""

    def __init__(self, most, once=(), seed=0):
        self._counts = np.array([min(count, most) for count, _ in CATEGORIES])
        self._firsts = np.concatenate([[0], np.cumsum(self._counts)])
        self._once = list(once)
        self._next_of_once = FIRST_OF_ONCE
        self._random = np.random.default_rng(seed)

    @property
    def known(self):
        """An upper bound of all ids that occur repeatedly."""
        return int(self._firsts[-1])

    def draw(self, records):
        # The inverse of the integral of the distribution, which approximates Zipf's sum.
        places = self._random.random((records, COLUMNS))
        ranks = (1 - places * (1 - self._counts ** (1 - SKEW))) ** (1 / (1 - SKEW)) - 1
        ranks = np.minimum(ranks.astype(np.int64), self._counts - 1)
        # Multiplying by a prime that divides no count shuffles the ranks, so that frequent ids are
        # not adjacent.
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
    """An approximately normal value of deviation 1, which depends only on the id."""
    # SplitMix64 (Steele, Lea, Flood 2014): 64 bits, each of which depends on all bits of the id.
    bits = (ids.astype(np.uint64) + np.uint64(1 + (kind << 48))) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    # The sum of four numbers of 16 bits each.
    parts = sum((bits >> np.uint64(16 * part)) & np.uint64(0xFFFF) for part in range(4))
    return (parts.astype(np.float64) / 65536 - 2) * np.sqrt(3)


def area_under_curve(scores, labels):
    """The probability that a click has a higher score than a record without a click."""
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    # Equal scores get the mean of their ranks.
    starts = np.flatnonzero(np.r_[True, sorted_scores[1:] != sorted_scores[:-1]])
    ends = np.r_[starts[1:], len(scores)]
    places = np.empty(len(scores))
    places[order] = np.repeat((starts + ends + 1) / 2, ends - starts)
    clicks = labels > 0.5
    count = clicks.sum()
    return (places[clicks].sum() - count * (count + 1) / 2) / (count * (len(labels) - count))
