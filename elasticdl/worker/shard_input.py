"""The batches of a shard: records that are read, fed and cut into batches."""

from __future__ import annotations

import hashlib
import queue
import random
import threading
from collections.abc import Iterator
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf

from elasticai_api.common.shard import Shard
from elasticdl.data.reader import Records
from elasticdl.model.errors import ModelError, summary_of
from elasticdl.model.model_file import call_user

_BATCHES_AHEAD = 4
# How many batches of a worker's first shard are made twice, to see whether feed() repeats.
_BATCHES_COMPARED = 2


# Guards the random numbers of Python, NumPy and TensorFlow, which belong to the whole process: held
# from seeding them until everything is made that depends on the seed.
random_state = threading.RLock()


class BadRecords(Exception):
    """The records of a shard cannot be read or fed. Other shards may be fine."""


class ShardFeed:
    """Makes the batches of a shard with the user's feed().

    feed() gets the records of one shard at a time, so a shard that is trained again, also by
    another worker, has the same batches: the random numbers of Python, NumPy and TensorFlow are
    seeded by the shard before feed() is called.
    """

    def __init__(self, records: Records, feed: Callable[..., Any], mode: str, batch_size: int,
                 where: str) -> None:
        """where: file and symbol of feed(), for errors."""
        self.records = records
        self._feed = feed
        self.mode = mode
        self._batch_size = batch_size
        self.where = where

    def dataset_of(self, shard: Shard) -> tf.data.Dataset:
        """The batches of a shard. BadRecords: its records cannot be read. ModelError: feed()
        failed."""
        try:
            records = self._read(shard)
        except Exception as error:
            raise BadRecords(summary_of(error)) from error
        with random_state:
            seed = _seed_of(shard)
            random.seed(seed)
            np.random.seed(seed)
            tf.random.set_seed(seed)
            fed = call_user(self._feed, self.where, self._as_dataset(records), self.mode,
                            self.records.metadata)
        if not isinstance(fed, tf.data.Dataset):
            raise ModelError(f"{self.where} returned a {type(fed).__name__}; expected a "
                             "tf.data.Dataset")
        options = tf.data.Options()
        options.deterministic = True
        return fed.batch(self._batch_size).with_options(options)

    def batches(self, shard: Shard) -> Iterator[tuple[Any, Any]]:
        """(features, labels) of each batch; labels are None in a prediction."""
        with random_state:
            dataset = self.dataset_of(shard)
            self.check_elements(dataset.element_spec)
            iterator = iter(dataset.prefetch(2))
        try:
            while True:
                try:
                    element = next(iterator, None)
                except (tf.errors.OpError, ValueError, TypeError) as error:
                    raise BadRecords(f"{self.where} cannot parse a record: {summary_of(error)}"
                                     ) from error
                if element is None:
                    return
                yield self.split(element)
        finally:
            # The destructor of a pipeline waits for TensorFlow's tuning thread, up to a second.
            ended = [iterator]
            del iterator
            threading.Thread(target=ended.clear, name="elasticdl-input-end", daemon=True).start()

    def split(self, element: Any) -> tuple[Any, Any]:
        """(features, labels) of an element of the fed dataset, or of its spec."""
        if isinstance(element, tuple) and len(element) == 2:
            return element
        return element, None

    def check_elements(self, spec: Any) -> None:
        if self.mode != "prediction" and not (isinstance(spec, tuple) and len(spec) == 2):
            raise ModelError(f"{self.where} returned a dataset with elements {spec}; expected "
                             f"(features, labels) in mode {self.mode!r}")

    def check_repeats(self, shard: Shard) -> None:
        """ModelError: feed() gives other batches when it is called again with the same shard. Then
        an interrupted shard could not be continued by another worker."""
        if self._digest(shard) != self._digest(shard):
            raise ModelError(
                f"{self.where} gave different batches when it was called twice with the same "
                f"records ({shard.start} to {shard.end - 1}). A shard that is interrupted must "
                "continue with the same batches: take random numbers from tf.random, random or "
                "numpy.random, which are seeded for each shard, and use no time, files or state "
                "that changes")

    def _digest(self, shard: Shard) -> str:
        digest = hashlib.sha256()
        for number, batch in enumerate(self.batches(shard)):
            if number == _BATCHES_COMPARED:
                break
            for tensor in tf.nest.flatten(batch, expand_composites=True):
                if tensor is not None:
                    digest.update(tf.io.serialize_tensor(tensor).numpy())
        return digest.hexdigest()

    def _read(self, shard: Shard) -> list[Any]:
        if not shard.indices:
            return self.records.read(shard.start, shard.end)
        return [self.records.read(index, index + 1)[0] for index in shard.indices]

    def _as_dataset(self, records: list[Any]) -> tf.data.Dataset:
        if self.records.output_types is None:
            return tf.data.Dataset.from_tensor_slices(tf.constant(records, tf.string))
        return tf.data.Dataset.from_generator(lambda: iter(records), self.records.output_types)


class ShardBatches:
    """The batches of one shard, made by a thread while the worker trains.

    The main thread gets batches by their index. Batches below `release` are dropped; if such a
    batch is needed again, the shard is fed again from its beginning.
    """

    def __init__(self, feed: ShardFeed, shard: Shard) -> None:
        self._feed = feed
        self._shard = shard
        self._kept: dict[int, Optional[tuple[Any, Any]]] = {}
        self._start()

    def get(self, index: int) -> Optional[tuple[Any, Any]]:
        """(features, labels) of batch `index`. None: the shard has fewer batches. BadRecords,
        ModelError: see ShardFeed."""
        if self._closed.is_set() or (index < self._next and index not in self._kept):
            self.close()
            self._start()
        while index not in self._kept:
            item = self._queue.get()
            if isinstance(item, BaseException):
                self._queue.put(item)
                raise item
            self._kept[self._next] = item
            if item is None:
                self._queue.put(None)
            self._next += 1
            for old in [old for old in self._kept if old < min(self._released, index)]:
                del self._kept[old]
        return self._kept[index]

    def release(self, index: int) -> None:
        """Batches below `index` are not needed any more."""
        self._released = index
        for old in [old for old in self._kept if old < index]:
            del self._kept[old]

    def close(self) -> None:
        self._closed.set()

    def _start(self) -> None:
        self._kept.clear()
        self._next = 0
        self._released = 0
        self._closed = threading.Event()
        self._queue: queue.Queue[Any] = queue.Queue(_BATCHES_AHEAD)
        threading.Thread(target=_fill, args=(self._feed, self._shard, self._queue, self._closed),
                         name="elasticdl-input", daemon=True).start()


def _fill(feed: ShardFeed, shard: Shard, out: queue.Queue[Any], closed: threading.Event) -> None:
    last: Any = None
    try:
        iterator = feed.batches(shard)
        batch = next(iterator, None)
        while batch is not None:
            if not _put(out, batch, closed):
                return
            batch = next(iterator, None)
    except BaseException as error:  # raised again in the main thread
        last = error
    _put(out, last, closed)


def _put(out: queue.Queue[Any], item: Any, closed: threading.Event) -> bool:
    while not closed.is_set():
        try:
            out.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def _seed_of(shard: Shard) -> int:
    text = f"{shard.name} {shard.generation} {shard.epoch} {shard.ordinal}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
