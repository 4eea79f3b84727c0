"""A replacement of the master for a program that runs alone: the same calls, without a network."""

import dataclasses
import json
import random
import threading
import time
from array import array
from collections import deque
from typing import Callable, Deque, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from elasticai_api.common.errors import MasterError
from elasticai_api.common.published_calls import PublishedCalls
from elasticai_api.common.shard import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_BATCHES_PER_SHARD,
    DEFAULT_EPOCHS,
    Answered,
    DatasetSpec,
    DatasetState,
    Outcome,
    Report,
    Shard,
)
from elasticai_api.util.log_utils import default_logger as logger

_ATTEMPTS = 3  # a shard whose records fail this often is quarantined

# (epoch, ordinal) of a shard.
_Place = Tuple[int, int]


class LocalDataset:
    """The shards of a dataset: waiting, leased or done. Confined: the client's lock guards it."""

    def __init__(self, spec: DatasetSpec, generation: int):
        self.spec = spec
        self.generation = generation
        self.shard_size = spec.batch_size * (spec.batches_per_shard or DEFAULT_BATCHES_PER_SHARD)
        self.shards_per_epoch = -(-spec.size // self.shard_size)
        self.epoch = 0
        self.records_done = 0
        self.leased: Dict[int, Shard] = {}
        self._next_ordinal = 0
        self._returned: Deque[_Place] = deque()
        self._failures: Dict[_Place, int] = {}
        self._orders: Dict[Tuple[str, int], Sequence[int]] = {}

    @property
    def finished(self) -> bool:
        return not self.leased and not self._returned and not self._more_epochs() and (
            self._next_ordinal == self.shards_per_epoch
        )

    def lease(self, number: int) -> Optional[Shard]:
        """Leases the next shard under `number`. None if no shard is left to lease."""
        place = self._next_place()
        if place is None:
            return None
        epoch, ordinal = place
        position = ordinal
        if self.spec.shuffle_shards:
            position = self._order("shards", epoch, self.shards_per_epoch)[ordinal]
        start, end = self._range(position)
        indices: Sequence[int] = ()
        if self.spec.shuffle_records:
            indices = tuple(self._order("records", epoch, self.spec.size)[start:end])
        shard = Shard(
            self.spec.name, start, end, indices, number, epoch, ordinal, self.generation
        )
        self.leased[number] = shard
        return shard

    def report(self, report: Report) -> None:
        shard = self.leased.pop(report.lease)
        place = (shard.epoch, shard.ordinal)
        if report.outcome == Outcome.DONE:
            self.records_done += shard.size
            return
        if report.outcome == Outcome.FAILED:
            self._failures[place] = self._failures.get(place, 0) + 1
            if self._failures[place] >= _ATTEMPTS:
                logger.error(
                    "records %d to %d of %r failed %d times and are quarantined: %s",
                    shard.start, shard.end, self.spec.name, _ATTEMPTS, report.error,
                )
                return
        self._returned.appendleft(place)

    def save(self) -> str:
        """A shard checkpoint, as docs/formats/shard-checkpoint.md specifies it."""
        leased = [(s.epoch, s.ordinal) for s in self.leased.values()]
        waiting = list(self._returned)
        waiting += [(self.epoch, o) for o in range(self._next_ordinal, self.shards_per_epoch)]
        if not leased and not waiting and self._more_epochs():
            waiting = [(self.epoch + 1, o) for o in range(self.shards_per_epoch)]
        epoch = min((e for e, _ in leased + waiting), default=self.spec.epochs)
        return json.dumps(
            {
                "version": "v1.0",
                "dataset_name": self.spec.name,
                "dataset_size": self.spec.size,
                "records_per_task": self.shard_size,
                "batch_size": self.spec.batch_size,
                "num_epochs": self.spec.epochs,
                "shuffle_shards": self.spec.shuffle_shards,
                "shuffle_records": self.spec.shuffle_records,
                "current_epoch": epoch,
                "current_subepoch": 0,
                "todo": self._ranges(o for e, o in waiting if e == epoch),
                "doing": self._ranges(o for e, o in leased if e == epoch),
            }
        )

    @classmethod
    def restore(cls, content: str, generation: int) -> "LocalDataset":
        """The dataset that `save` wrote; its leased shards wait again. Raises ValueError if
        `content` is not valid."""
        try:
            saved = json.loads(content)
            if saved["version"] != "v1.0":
                raise ValueError(f"its version is {saved['version']!r}, expected 'v1.0'")
            batch_size = int(saved.get("batch_size", 1))
            spec = DatasetSpec(
                name=str(saved["dataset_name"]),
                size=int(saved["dataset_size"]),
                batch_size=batch_size,
                batches_per_shard=int(saved["records_per_task"]) // batch_size,
                epochs=int(saved["num_epochs"]),
                shuffle_records=bool(saved.get("shuffle_records")),
                shuffle_shards=bool(saved.get("shuffle_shards")),
            )
            check_spec(spec)
            dataset = cls(spec, generation)
            epoch = int(saved["current_epoch"])
            left = [dataset._ordinals(*r) for r in saved["todo"] + saved["doing"]]
        except (KeyError, TypeError, AttributeError, ZeroDivisionError, MasterError) as error:
            raise ValueError(repr(error)) from error
        dataset._resume(epoch, sorted(o for ordinals in left for o in ordinals))
        return dataset

    def _resume(self, epoch: int, left: List[int]) -> None:
        if 0 < self.spec.epochs <= epoch:
            epoch, left = self.spec.epochs - 1, []
        self.epoch = epoch
        self._next_ordinal = self.shards_per_epoch
        self._returned = deque((epoch, ordinal) for ordinal in left)
        records_left = sum(end - start for start, end in map(self._range, left))
        self.records_done = (epoch + 1) * self.spec.size - records_left

    def _more_epochs(self) -> bool:
        return self.spec.epochs <= 0 or self.epoch + 1 < self.spec.epochs

    def _next_place(self) -> Optional[_Place]:
        if self._returned:
            return self._returned.popleft()
        if self._next_ordinal == self.shards_per_epoch:
            if not self._more_epochs():
                return None
            self.epoch += 1
            self._next_ordinal = 0
        self._next_ordinal += 1
        return self.epoch, self._next_ordinal - 1

    def _range(self, position: int) -> Tuple[int, int]:
        start = position * self.shard_size
        return start, min(start + self.shard_size, self.spec.size)

    def _ranges(self, ordinals: Iterable[int]) -> List[List[int]]:
        ranges: List[List[int]] = []
        for start, end in map(self._range, sorted(ordinals)):
            if ranges and ranges[-1][1] == start:
                ranges[-1][1] = end
            else:
                ranges.append([start, end])
        return ranges

    def _ordinals(self, start: int, end: int) -> range:
        ends_whole = end % self.shard_size == 0 or end == self.spec.size
        if start % self.shard_size != 0 or not ends_whole or not 0 <= start < end <= self.spec.size:
            raise ValueError(
                f"[{start}, {end}) does not consist of whole shards: a shard has {self.shard_size} "
                f"records, and the dataset has {self.spec.size}"
            )
        return range(start // self.shard_size, -(-end // self.shard_size))

    def _order(self, what: str, epoch: int, size: int) -> Sequence[int]:
        if (what, epoch) not in self._orders:
            order = array("q", range(size))
            # The seed depends only on names, so a restored dataset continues in the same order.
            random.Random(f"{self.spec.name}/{what}/{epoch}").shuffle(order)
            self._orders[what, epoch] = order
            self._orders.pop((what, epoch - 2), None)
        return self._orders[what, epoch]


def check_spec(spec: DatasetSpec) -> None:
    if spec.size <= 0 or spec.batch_size <= 0 or spec.batches_per_shard < 0:
        raise MasterError(
            f"dataset {spec.name!r}: size={spec.size} and batch_size={spec.batch_size} must be "
            f"above 0, batches_per_shard={spec.batches_per_shard} must not be negative",
            "INVALID_ARGUMENT",
        )


class LocalMasterClient(PublishedCalls):
    """Replaces the master for a program that runs alone. Thread-safe.

    Registering a name again restarts that dataset, which suits a program that runs repeatedly in
    one interpreter. Barriers do not wait; events and locks work between the threads of this
    process. The order of a dataset with shuffled records is kept in memory, with 8 bytes per
    record.
    """

    def __init__(self, worker_id: int = 0):
        self._lock = threading.Condition()
        self._datasets: Dict[str, LocalDataset] = {}
        self._by_lease: Dict[int, LocalDataset] = {}
        self._last_lease = 0
        self._generation = 0
        self._events: Set[str] = set()
        self._metrics: Tuple[int, Dict[str, float]] = (0, {})

    # --- data ---

    def register_dataset(self, spec: DatasetSpec) -> DatasetSpec:
        spec = dataclasses.replace(
            spec,
            batch_size=spec.batch_size or DEFAULT_BATCH_SIZE,
            epochs=spec.epochs or DEFAULT_EPOCHS,
        )
        check_spec(spec)
        with self._lock:
            self._put(LocalDataset(spec, self._next_generation()))
        return spec

    def lease(
        self, dataset: str, at_most: int = 1, stale: Callable[[], bool] = lambda: False
    ) -> List[Shard]:
        with self._lock:
            of = self._dataset(dataset)
            shards: List[Shard] = []
            while len(shards) < at_most and not stale():
                shard = of.lease(self._last_lease + 1)
                if shard is None:
                    break
                self._last_lease += 1
                self._by_lease[shard.lease] = of
                shards.append(shard)
            return shards

    def report_and_lease(
        self, reports: Iterable[Report], dataset: str, at_most: int = 1, wait_s: float = 20.0
    ) -> Answered:
        """Reports, and leases the next shards. If other threads hold the last shards, waits up to
        `wait_s`, because they may give shards back."""
        from elasticai_api.common.messages import Answer

        end = time.monotonic() + wait_s
        with self._lock:
            lost = self.report(reports)
            while True:
                shards = self.lease(dataset, at_most)
                if shards:
                    return Answered(Answer.SHARDS, shards, lost)
                if self._dataset(dataset).finished:
                    return Answered(Answer.FINISHED, [], lost)
                left = end - time.monotonic()
                if left <= 0:
                    return Answered(Answer.WAIT, [], lost)
                self._lock.wait(left)

    def report(self, reports: Iterable[Report]) -> Set[int]:
        lost = set()
        with self._lock:
            for report in reports:
                of = self._by_lease.pop(report.lease, None)
                if of is None:
                    lost.add(report.lease)
                else:
                    of.report(report)
            self._lock.notify_all()
        return lost

    def holds(self, lease: int) -> bool:
        with self._lock:
            return lease in self._by_lease

    def reset_dataset(self, dataset_name: str) -> None:
        with self._lock:
            spec = self._dataset(dataset_name).spec
            self._put(LocalDataset(spec, self._next_generation()))

    def get_dataset(self, dataset: str) -> DatasetState:
        with self._lock:
            of = self._dataset(dataset)
            return DatasetState(of.spec, of.generation, of.epoch, of.records_done, of.finished)

    def get_results(self, dataset: str, generation: int) -> List[Tuple[int, bytes]]:
        raise MasterError("get_results needs a master: start the program with elasticdl train")

    def save_shards(self, dataset: str) -> str:
        with self._lock:
            return self._dataset(dataset).save()

    def restore_shards(self, content: str) -> bool:
        with self._lock:
            try:
                self._put(LocalDataset.restore(content, self._next_generation()))
            except ValueError as error:
                raise MasterError(
                    f"not a shard checkpoint: {error}", "INVALID_ARGUMENT"
                ) from error
        return True

    # --- peers ---

    def arrive(self, name: str, timeout_s: Optional[float] = None) -> bool:
        return True

    def report_progress(self, batches: int, ahead: int, timeout_s: Optional[float] = None) -> bool:
        return True

    def rest(self) -> None:
        pass

    def await_event(self, name: str, timeout_s: Optional[float] = None) -> bool:
        with self._lock:
            return self._lock.wait_for(lambda: name in self._events, timeout_s)

    def notify(self, name: str) -> None:
        with self._lock:
            self._events.add(name)
            self._lock.notify_all()

    def delete_sync(self, name: str = "", everything: bool = False) -> None:
        with self._lock:
            self._events = set() if everything else self._events - {name}

    def acquire_lock(self, name: str, timeout_s: Optional[float] = None) -> bool:
        return True  # locks belong to processes, and there is only one; RemoteLock excludes threads

    def release_lock(self, name: str) -> bool:
        return True

    def membership(self, newer_than: int = 0, timeout_s: Optional[float] = None) -> None:
        return None

    # --- metrics and the end ---

    def finish(self) -> None:
        """Does nothing: there is no job that could fail."""

    def fail(self, message: str) -> None:
        """Raises MasterError: there is no job to fail."""
        raise MasterError(message)

    def report_metrics(self, step: int, metrics: Optional[Dict[str, float]] = None) -> None:
        with self._lock:
            self._metrics = (int(step), dict(metrics or {}))

    def close(self) -> None:
        """Does nothing: there is no job to leave."""

    def _dataset(self, name: str) -> LocalDataset:
        if name not in self._datasets:
            raise MasterError(
                f"dataset {name!r} is not registered; pass dataset_size to "
                "build_data_shard_service",
                "NOT_FOUND",
            )
        return self._datasets[name]

    def _put(self, dataset: LocalDataset) -> None:
        replaced = self._datasets.get(dataset.spec.name)
        if replaced is not None:
            for lease in replaced.leased:
                self._by_lease.pop(lease, None)
        self._datasets[dataset.spec.name] = dataset

    def _next_generation(self) -> int:
        self._generation += 1
        return self._generation
