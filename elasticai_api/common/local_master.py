"""A master inside the program, for running it alone: the same calls, no network."""

import dataclasses
import json
import random
import threading
from array import array
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from elasticai_api.common.errors import MasterError
from elasticai_api.common.published_calls import PublishedCalls
from elasticai_api.common.shard import (
    DEFAULT_BATCHES_PER_SHARD,
    DatasetSpec,
    DatasetState,
    Outcome,
    Report,
    Shard,
)
from elasticai_api.util.log_utils import default_logger as logger

_CHECKPOINT_FORMAT = "elasticai_api.local.1"
_ATTEMPTS = 3  # a shard whose records fail this often is set aside

# (epoch, ordinal) of a shard.
_Place = Tuple[int, int]


class LocalDataset:
    """One dataset's shards: waiting, leased or done. Confined: its client's lock guards it."""

    def __init__(self, spec: DatasetSpec, generation: int):
        self.spec = spec
        self.generation = generation
        self.epoch = 0
        self.records_done = 0
        self.set_aside: List[_Place] = []
        self.leased: Dict[int, Shard] = {}
        self._failures: Dict[_Place, int] = {}
        self._orders: Dict[int, Sequence[int]] = {}
        self._returned: Deque[_Place] = deque()
        self._waiting: Deque[int] = deque(self._shard_order(0))

    @property
    def shard_size(self) -> int:
        return self.spec.batch_size * (self.spec.batches_per_shard or DEFAULT_BATCHES_PER_SHARD)

    @property
    def shards_per_epoch(self) -> int:
        return -(-self.spec.size // self.shard_size)

    @property
    def finished(self) -> bool:
        last = self.spec.epochs > 0 and self.epoch >= self.spec.epochs - 1
        return last and not self._waiting and not self._returned and not self.leased

    def lease(self, number: int) -> Optional[Shard]:
        """The next shard under lease `number`; None when no shard waits in the last epoch."""
        place = self._next_place()
        if place is None:
            return None
        epoch, ordinal = place
        start = ordinal * self.shard_size
        end = min(start + self.shard_size, self.spec.size)
        indices: Sequence[int] = ()
        if self.spec.shuffle_records:
            indices = tuple(self._record_order(epoch)[start:end])
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
                self.set_aside.append(place)
                logger.error(
                    "records %d to %d of %r failed %d times and are set aside: %s",
                    shard.start, shard.end, self.spec.name, _ATTEMPTS, report.error,
                )
                return
        self._returned.appendleft(place)

    def save(self) -> str:
        """JSON; what is leased counts as not done."""
        open_places = [(s.epoch, s.ordinal) for s in self.leased.values()]
        return json.dumps(
            {
                "format": _CHECKPOINT_FORMAT,
                "spec": dataclasses.asdict(self.spec),
                "epoch": self.epoch,
                "records_done": self.records_done,
                "waiting": list(self._waiting),
                "returned": sorted(open_places + list(self._returned)),
            }
        )

    @classmethod
    def restore(cls, saved: Dict[str, Any], generation: int) -> "LocalDataset":
        dataset = cls(DatasetSpec(**saved["spec"]), generation)
        dataset.epoch = int(saved["epoch"])
        dataset.records_done = int(saved["records_done"])
        dataset._waiting = deque(int(o) for o in saved["waiting"])
        dataset._returned = deque((int(e), int(o)) for e, o in saved["returned"])
        return dataset

    def _next_place(self) -> Optional[_Place]:
        if self._returned:
            return self._returned.popleft()
        if not self._waiting:
            if self.spec.size == 0 or 0 < self.spec.epochs <= self.epoch + 1:
                return None
            self.epoch += 1
            self._orders.pop(self.epoch - 2, None)
            self._waiting.extend(self._shard_order(self.epoch))
        return self.epoch, self._waiting.popleft()

    def _shard_order(self, epoch: int) -> Sequence[int]:
        if not self.spec.shuffle_shards:
            return range(self.shards_per_epoch)
        order = list(range(self.shards_per_epoch))
        self._random("shards", epoch).shuffle(order)
        return order

    def _record_order(self, epoch: int) -> Sequence[int]:
        if epoch not in self._orders:
            order = array("q", range(self.spec.size))
            self._random("records", epoch).shuffle(order)
            self._orders[epoch] = order
        return self._orders[epoch]

    def _random(self, what: str, epoch: int) -> random.Random:
        # Seeded by names, so that a restored dataset goes on in the order that it had.
        return random.Random(f"{self.spec.name}/{what}/{epoch}")


class LocalMasterClient(PublishedCalls):
    """Stands in for the master where there is none. Thread-safe.

    Registering a name again starts that dataset over, as one wants of a program that is run
    again and again in one interpreter. Barriers are reached at once; events and locks work
    between the threads of this process. A dataset whose records are shuffled keeps its order in
    memory, 8 bytes a record.
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
        if spec.size <= 0 or spec.batch_size <= 0 or spec.batches_per_shard < 0:
            raise MasterError(
                f"dataset {spec.name!r}: size={spec.size}, batch_size={spec.batch_size} and "
                f"batches_per_shard={spec.batches_per_shard} must be positive",
                "INVALID_ARGUMENT",
            )
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

    def report(self, reports: Iterable[Report]) -> Set[int]:
        lost = set()
        with self._lock:
            for report in reports:
                of = self._by_lease.pop(report.lease, None)
                if of is None:
                    lost.add(report.lease)
                else:
                    of.report(report)
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

    def save_shards(self, dataset: str) -> str:
        with self._lock:
            return self._dataset(dataset).save()

    def restore_shards(self, content: str) -> bool:
        with self._lock:
            try:
                saved = json.loads(content)
                if saved["format"] != _CHECKPOINT_FORMAT:
                    raise ValueError(f"its format is {saved['format']!r}")
                self._put(LocalDataset.restore(saved, self._next_generation()))
            except (KeyError, TypeError, ValueError) as error:
                raise MasterError(
                    f"not a shard checkpoint of a program without a master: {error!r}",
                    "INVALID_ARGUMENT",
                ) from error
        return True

    # --- peers ---

    def arrive(self, name: str, timeout_s: Optional[float] = None) -> bool:
        return True

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
        return True  # a lock is a process's, and there is one; RemoteLock keeps threads apart

    def release_lock(self, name: str) -> bool:
        return True

    def membership(self, newer_than: int = 0, timeout_s: Optional[float] = None) -> None:
        return None

    # --- what the program knows ---

    def report_metrics(self, step: int, metrics: Optional[Dict[str, float]] = None) -> None:
        with self._lock:
            self._metrics = (int(step), dict(metrics or {}))

    def close(self) -> None:
        """Nothing to leave."""

    def _dataset(self, name: str) -> LocalDataset:
        if name not in self._datasets:
            raise MasterError(
                f"nobody registered dataset {name!r}; give num_epochs and dataset_size to "
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
