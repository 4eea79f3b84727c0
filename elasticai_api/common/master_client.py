"""The client of a job's master, or its replacement for a program that runs alone."""

import atexit
import dataclasses
import os
import random
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple, Union

from elasticai_api.common.errors import MasterError
from elasticai_api.common.identity import (
    Identity,
    decode_worker_id,
    identity_from_env,
    master_address,
)
from elasticai_api.common.local_master import LocalMasterClient
from elasticai_api.common.published_calls import PublishedCalls
from elasticai_api.common.shard import Answered, DatasetSpec, DatasetState, Report, Shard
from elasticai_api.util.log_utils import default_logger as logger

__all__ = [
    "GlobalMasterClient",
    "LocalMasterClient",
    "MasterClient",
    "MasterError",
    "build_master_client",
]

_HOLD_S = 20.0  # how long the master may hold a call
_UNKNOWN_DATASET_S = 600.0
_METRICS_S = 1.0


class MasterClient(PublishedCalls):
    """Calls the master of this job (proto/elasticdl/v1/master.proto). Thread-safe.

    It joins the job on its first call, then keeps a connection and sends heartbeats, and leaves the
    job when the program exits. Calls wait for a master that restarts. MasterError means that the
    master rejected the call. A forked child joins as a separate process.
    """

    # How long a report may wait for the next lease call, to be sent with it (see DataShardService).
    report_linger_s = 0.05

    def __init__(
        self,
        master_addr: Union[str, Any],
        worker_id: Optional[int] = None,
        worker_type: Optional[str] = None,
    ):
        """`master_addr` is host:port or a grpc.Channel. The defaults of the other arguments are in
        the environment."""
        from elasticai_api.common.connection import Connection
        from elasticai_api.common.session import Session

        if isinstance(master_addr, str):
            connection = Connection(master_addr)
        else:
            connection = Connection("the given channel", master_addr)
        self._address = connection.address
        self._session = Session(connection, _identity(worker_id, worker_type))
        self._before_close: List[weakref.WeakMethod] = []
        _clients.add(self)

    # --- data ---

    def register_dataset(self, spec: DatasetSpec) -> DatasetSpec:
        """Registers a dataset. The first registration of a name counts. Returns the spec in
        force."""
        from elasticai_api.common import messages

        wire = messages.message("DatasetSpec")(**dataclasses.asdict(spec))
        return _dataset_spec(self._session.call("RegisterDataset", spec=wire).spec)

    def lease(
        self, dataset: str, at_most: int = 1, stale: Callable[[], bool] = lambda: False
    ) -> List[Shard]:
        """Waits for the next shards of `dataset`. Empty: the data has ended for this process.

        `stale` is called between polls. When it returns True, the result is empty too."""
        from elasticai_api.common.messages import Answer

        unknown_since: Optional[float] = None
        while not stale():
            asked = time.monotonic()
            got = self._session.report_and_lease((), dataset, at_most, _HOLD_S)
            if got.answer == Answer.SHARDS:
                return got.shards
            if got.answer == Answer.FINISHED:
                return []
            if got.answer == Answer.UNKNOWN_DATASET:
                unknown_since = unknown_since or asked
                self._wait_for_dataset(dataset, unknown_since)
            elif got.answer == Answer.WAIT:
                unknown_since = None
                if time.monotonic() - asked < 0.1:  # not held: do not spin
                    time.sleep(0.1)
            else:
                raise MasterError(
                    f"ReportAndLease: the master at {self._address} answered {got.answer} to a "
                    f"call for shards of {dataset!r}, which this client does not understand"
                )
        return []

    def report_and_lease(
        self, reports: Iterable[Report], dataset: str, at_most: int = 1, wait_s: float = _HOLD_S
    ) -> Answered:
        """Reports, and leases the next shards, in one call."""
        return self._session.report_and_lease(reports, dataset, at_most, wait_s)

    def report(self, reports: Iterable[Report]) -> Set[int]:
        """Reports shards. They are durable when it returns. Returns the leases that this process
        no longer held: other processes train those shards, and the reports are not counted."""
        reports = list(reports)
        return self._session.report_and_lease(reports).lost if reports else set()

    def holds(self, lease: int) -> bool:
        """Whether this process still holds the lease, as far as it knows."""
        return self._session.holds(lease)

    def reset_dataset(self, dataset_name: str) -> None:
        """Restarts `dataset_name` from its first epoch, for all workers."""
        self._session.call("ResetDataset", dataset=dataset_name, request_id=_request_id())

    def get_dataset(self, dataset: str) -> DatasetState:
        got = self._session.call("GetDataset", dataset=dataset)
        return DatasetState(
            _dataset_spec(got.spec), got.generation, got.epoch, got.records_done, got.finished
        )

    def get_results(self, dataset: str, generation: int) -> List[Tuple[int, bytes]]:
        """The results that were reported with the shards of `dataset`, with their ordinals.

        Raises MasterError with the code NOT_FOUND if the dataset has another generation now."""
        results: List[Tuple[int, bytes]] = []
        while True:
            got = self._session.call(
                "GetResults", dataset=dataset, generation=generation,
                first=results[-1][0] + 1 if results else 0,
            )
            results += [(r.ordinal, r.result) for r in got.results]
            if not got.more or not got.results:
                return results

    def save_shards(self, dataset: str) -> str:
        """The shards of `dataset` that are done and those that are not, as JSON."""
        return self._session.call("SaveShards", dataset=dataset).content

    def restore_shards(self, content: str) -> bool:
        """Restores a dataset from the result of `save_shards`."""
        self._session.call("RestoreShards", content=content, request_id=_request_id())
        return True

    # --- peers ---

    def arrive(self, name: str, timeout_s: Optional[float] = None) -> bool:
        """Waits until all running workers are at barrier `name`. False after `timeout_s`."""
        return self._held("Arrive", "ready", timeout_s, incarnation=None, name=name)

    def report_progress(self, batches: int, ahead: int, timeout_s: Optional[float] = None) -> bool:
        """Reports that this process has trained `batches`, and waits until the slowest process that
        calls this method is at most `ahead` batches behind. False after `timeout_s`."""
        return self._held("ReportProgress", "ready", timeout_s, incarnation=None, batches=batches,
                          ahead=ahead)

    def rest(self) -> None:
        """Other processes no longer wait for this one, until it calls `report_progress` again."""
        self._session.call("ReportProgress", incarnation=None, rests=True)

    def await_event(self, name: str, timeout_s: Optional[float] = None) -> bool:
        """Waits for the event `name`. False after `timeout_s`."""
        return self._held("AwaitEvent", "ready", timeout_s, name=name)

    def notify(self, name: str) -> None:
        self._session.call("Notify", name=name)

    def delete_sync(self, name: str = "", everything: bool = False) -> None:
        self._session.call(
            "DeleteSync", name=name, all=everything, request_id=_request_id()
        )

    def acquire_lock(self, name: str, timeout_s: Optional[float] = None) -> bool:
        """Acquires lock `name` for this process. False after `timeout_s`. All threads of the
        process share it: see RemoteLock."""
        return self._held("AcquireLock", "acquired", timeout_s, incarnation=None, name=name)

    def release_lock(self, name: str) -> bool:
        """Releases lock `name`. False if this process did not hold it."""
        return self._session.call("ReleaseLock", incarnation=None, name=name).released

    def membership(self, newer_than: int = 0, timeout_s: Optional[float] = None) -> Optional[Any]:
        """The current replicas of this job. Waits for a state with a number above `newer_than`. It
        has `number`, `count` and `members` (role, index, replica_id); `members` is empty if there
        are more than 512."""
        return self._session.membership(newer_than, timeout_s)

    # --- metrics and the end ---

    def finish(self) -> None:
        """Declares that training ends here. The job may then succeed although data is left."""
        self._session.call("Finish", incarnation=None)

    def fail(self, message: str) -> None:
        """Fails the job with a message for its user. For an error that every process of the job
        would meet, such as a model file that cannot be imported."""
        self._session.call("Fail", incarnation=None, message=message)

    def report_metrics(self, step: int, metrics: Optional[Dict[str, float]] = None) -> None:
        """Sends the master a step and metrics such as the loss, which `elasticdl status` shows.
        Neither waits for a master that is down nor raises, because the next report replaces it."""
        self._session.tell(
            "ReportMetrics", _METRICS_S, incarnation=None, step=int(step),
            metrics={k: float(v) for k, v in (metrics or {}).items()},
        )

    def before_close(self, method: Callable[[], Any]) -> None:
        """`close` will call this bound method first, if its object still exists then."""
        self._before_close = [known for known in self._before_close if known() is not None]
        self._before_close.append(weakref.WeakMethod(method))

    def close(self) -> None:
        """Leaves the job. Shards that are not reported go to other processes. Called when the
        program exits."""
        for known in self._before_close:
            method = known()
            try:
                if method is not None:
                    method()
            except MasterError as error:
                logger.error("%s", error)
        _clients.discard(self)
        self._session.close()

    def _held(
        self, name: str, field: str, timeout_s: Optional[float], /, **fields: Any
    ) -> bool:
        from elasticai_api.common.session import CALL_S

        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            asked = time.monotonic()
            hold_s = _HOLD_S if end is None else min(_HOLD_S, max(0.0, end - asked))
            got = self._session.call(name, hold_s + CALL_S, wait_ms=int(hold_s * 1000), **fields)
            if getattr(got, field):
                return True
            now = time.monotonic()
            if end is not None and now >= end:
                return False
            if now - asked < min(0.1, hold_s):
                time.sleep(0.1)

    def _wait_for_dataset(self, dataset: str, since: float) -> None:
        waited = time.monotonic() - since
        if waited > _UNKNOWN_DATASET_S:
            raise MasterError(
                f"dataset {dataset!r} was not registered within {_UNKNOWN_DATASET_S:.0f} s; pass "
                "dataset_size to build_data_shard_service in at least one worker",
                "NOT_FOUND",
            )
        logger.warning("waiting for another process to register dataset %r", dataset)
        time.sleep(min(10.0, 0.2 + waited / 4))


def _identity(worker_id: Optional[int], worker_type: Optional[str]) -> Identity:
    if worker_id is None:
        identity = identity_from_env()
    elif worker_type is None:
        identity = decode_worker_id(worker_id)
    else:
        identity = Identity(worker_type, decode_worker_id(worker_id).replica_id)
    return Identity(worker_type or identity.role, identity.replica_id)


def _request_id() -> int:
    """An id for a call that must take effect only once, even if it is sent repeatedly."""
    return random.SystemRandom().randrange(1, 1 << 64)


def _dataset_spec(wire: Any) -> DatasetSpec:
    return DatasetSpec(**{f.name: getattr(wire, f.name) for f in dataclasses.fields(DatasetSpec)})


# --- one client per process ---

_clients: "weakref.WeakSet[MasterClient]" = weakref.WeakSet()
_shared: Dict[Tuple[str, Identity], Any] = {}
_shared_lock = threading.Lock()


def build_master_client(
    master_addr: Optional[str] = None,
) -> Union[MasterClient, LocalMasterClient]:
    """The client of this process, the same object on each call. It calls the master at
    `master_addr` or in the environment; without one, it is a LocalMasterClient."""
    address = master_address() if master_addr is None else master_addr
    identity = identity_from_env()
    with _shared_lock:
        key = (address, identity)
        if key not in _shared:
            if address:
                worker_id = identity.replica_id
                _shared[key] = MasterClient(address, worker_id, identity.role)
            else:
                logger.info("no MASTER_ADDR: running without a master, on all the data")
                _shared[key] = LocalMasterClient()
        return _shared[key]


class _Lazily(type):
    @property
    def MASTER_CLIENT(cls) -> Union[MasterClient, LocalMasterClient]:
        return build_master_client()


class GlobalMasterClient(metaclass=_Lazily):
    """`GlobalMasterClient.MASTER_CLIENT` is the client of this process. It is built on first use,
    so importing this package does not need a master."""


def _forget_after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for client in list(_clients):
        client._session.after_fork()


def _leave_all() -> None:
    for client in list(_clients):
        client.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_leave_all)
