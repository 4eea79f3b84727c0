"""Batches of a shard: reading, feeding, repeating."""

import random

import numpy as np
import pytest
import tensorflow as tf

from elasticai_api.common.shard import Shard
from elasticdl.data.reader import Metadata, Records, UserRecords, parse_params
from elasticdl.model.errors import ModelError
from elasticdl.worker.shard_input import BadRecords, ShardBatches, ShardFeed


class Numbers(Records):
    """Record i is the text of i."""

    size = 100
    metadata = Metadata()

    def __init__(self):
        self.reads = 0

    def read(self, start, end):
        self.reads += 1
        return [str(i).encode() for i in range(start, end)]


def parse(dataset, mode, metadata):
    return dataset.map(lambda text: (tf.strings.to_number(text), 0))


def feed_of(function=parse, batch_size=4, mode="training"):
    return ShardFeed(Numbers(), function, mode, batch_size, "m.py: feed()")


def values(feed, shard):
    return [batch[0].numpy().tolist() for batch in feed.batches(shard)]


def test_cuts_a_shard_into_batches():
    assert values(feed_of(), Shard("training", 10, 20)) == [
        [10, 11, 12, 13], [14, 15, 16, 17], [18, 19]]


def test_reads_shuffled_records_by_their_indices():
    shard = Shard("training", 0, 3, indices=[7, 3, 5])
    assert values(feed_of(), shard) == [[7, 3, 5]]


def test_random_numbers_are_those_of_the_shard():
    def shuffled(dataset, mode, metadata):
        shift = random.random() + np.random.rand()
        return parse(dataset.shuffle(100), mode, metadata).map(
            lambda x, y: (x + shift + tf.random.uniform([]), y))

    feed = feed_of(shuffled)
    first, other = Shard("training", 0, 50, epoch=0), Shard("training", 0, 50, epoch=1)
    assert values(feed, first) == values(feed, first)
    assert values(feed, first) != values(feed, other)
    feed.check_repeats(first)


def test_a_feed_that_does_not_repeat_is_noticed():
    calls = []

    def counting(dataset, mode, metadata):
        calls.append(1)
        return dataset.map(lambda text: (tf.constant(len(calls)), 0))

    with pytest.raises(ModelError, match="gave different batches when it was called twice"):
        feed_of(counting).check_repeats(Shard("training", 0, 10))


def test_records_that_cannot_be_parsed_are_bad_records():
    def strict(dataset, mode, metadata):
        return dataset.map(lambda text: (tf.io.decode_raw(text + "x", tf.int64), 0))

    with pytest.raises(BadRecords, match="cannot parse a record: InvalidArgumentError"):
        values(feed_of(strict), Shard("training", 0, 10))


def test_an_error_in_feed_is_an_error_of_the_model():
    def broken(dataset, mode, metadata):
        return dataset.no_such_method()

    with pytest.raises(ModelError, match="AttributeError"):
        values(feed_of(broken), Shard("training", 0, 10))


def test_a_feed_without_labels_is_named():
    with pytest.raises(ModelError, match=r"expected \(features, labels\) in mode 'training'"):
        values(feed_of(lambda dataset, mode, metadata: dataset), Shard("training", 0, 10))


def test_batches_are_kept_until_they_are_released():
    feed = feed_of()
    batches = ShardBatches(feed, Shard("training", 0, 10))
    try:
        assert batches.get(2)[0].numpy().tolist() == [8, 9]
        assert batches.get(0)[0].numpy().tolist() == [0, 1, 2, 3]
        assert batches.get(3) is None and batches.get(4) is None
        assert feed.records.reads == 1
        batches.release(2)
        assert batches.get(1)[0].numpy().tolist() == [4, 5, 6, 7]
        assert feed.records.reads == 2
    finally:
        batches.close()


def test_closed_batches_can_be_made_again():
    batches = ShardBatches(feed_of(), Shard("training", 0, 10))
    batches.close()
    try:
        assert batches.get(1)[0].numpy().tolist() == [4, 5, 6, 7]
    finally:
        batches.close()


class Tables:
    """A user's reader with two shards."""

    def create_shards(self):
        return [("a", 5, 3), ("b", 0, 4)]

    def read_records(self, task):
        for i in range(task.shard.start, task.shard.end):
            yield f"{task.shard.name}{i}"


def test_the_shards_of_a_users_reader_are_one_sequence():
    records = UserRecords(Tables(), "--training_data=x")
    assert records.size == 7
    assert records.read(1, 5) == ["a6", "a7", "b0", "b1"]


def test_parameters_of_a_reader_are_literals_or_strings():
    assert parse_params('columns=["a", "b"]; label_col="class"; n=3; kind=CSV; header=true;') == {
        "columns": ["a", "b"], "label_col": "class", "n": 3, "kind": "CSV", "header": True}
    with pytest.raises(ModelError, match="'nonsense' is not NAME=VALUE"):
        parse_params("nonsense")
