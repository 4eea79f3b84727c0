"""A program's part of a dataset, shard by shard."""

import numbers
import os
import threading
import time
import weakref
from typing import Any, Callable, Collection, Iterator, List, Optional, Set, Tuple

from elasticai_api.common.constants import DefaultDatasetName, TaskType
from elasticai_api.common.errors import MasterError
from elasticai_api.common.master_client import build_master_client
from elasticai_api.common.open_shards import OpenShards
from elasticai_api.common.shard import (
    Answered,
    DatasetSpec,
    Outcome,
    Report,
    Shard,
    Task,
    as_task_type,
)
from elasticai_api.util.log_utils import default_logger as logger

_IDLE_S = 60.0  # how often an idle thread checks whether its service still exists

_PARAMETERS = (
    "batch_size",
    "num_epochs",
    "dataset_size",
    "shuffle",
    "shuffle_shards",
    "task_type",
    "num_minibatches_per_shard",
    "dataset_name",
    "master_client",
    "remainder",
)


def bind_parameters(where: str, names: Collection[str], args: tuple, kwargs: dict) -> dict:
    """Maps arguments to names. The order of the newer published package starts with batch_size,
    that of the older one with the master client."""
    names = list(names)
    if args and not isinstance(args[0], numbers.Number):
        names.remove("master_client")
        names.insert(0, "master_client")
    if len(args) > len(names):
        raise TypeError(f"{where} takes {len(names)} arguments, but got {len(args)}")
    bound = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"{where} has no parameter {name!r}; it has {', '.join(names)}")
        if name in bound:
            raise TypeError(f"{where} got {name!r} twice")
        bound[name] = value
    return bound


class _Thread:
    """Represents a thread of the program."""

    def __init__(self) -> None:
        self._thread = threading.current_thread()

    def is_alive(self) -> bool:
        return self._thread.is_alive()


class DataShardService:
    """Distributes shards of a dataset, and reports those that are trained. Thread-safe.

    It has the parameters of `build_data_shard_service`, in the order of the published package;
    `master_client` is a keyword argument or, as in older programs, the first one.

    One thread may fetch while another one reports, as input pipelines do. Or several threads each
    fetch, train and report their own shards. The service only knows the number of records in each
    `report_batch_done`, and the thread that called it.

    If batch_size, num_epochs or num_minibatches_per_shard is None or 0, the job's --minibatch_size,
    --num_epochs or --num_minibatches_per_task is used. num_epochs=-1 means without end. Without
    dataset_size, another process has to register the dataset.

    The next fetch reports a completed shard, so a shard costs one call and one commit of the
    master. A report waits at most 50 ms for that fetch (longer only while the program holds
    Python's global lock); then a thread sends it. It is sent immediately if no fetch will follow
    (the data has ended, or a fetch is already waiting at the master), if the shard failed, by
    `flush`, `finish`, `start_over` and the methods about the whole dataset, and when the program
    exits. A process that is killed before that loses the report, and the shard is leased again.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        bound = bind_parameters(type(self).__name__, _PARAMETERS, args, kwargs)
        self._mc = bound.get("master_client") or build_master_client()
        self._batch_size = _whole("batch_size", bound.get("batch_size") or 0)
        self._num_epochs = int(bound.get("num_epochs") or 0)
        self._dataset_size: Optional[int] = bound.get("dataset_size")
        self._task_type = as_task_type(bound.get("task_type", TaskType.TRAINING))
        self._dataset_name = bound.get("dataset_name") or _default_name(self._task_type)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._open = OpenShards()
        self._unsent: List[Report] = []
        self._fetching = 0  # fetches in progress
        self._sending = 0  # calls with reports in progress
        self._sent = threading.Condition(self._lock)
        self._linger = _Linger(self, getattr(self._mc, "report_linger_s", 0.0))
        self._generation = 0
        self._ended = False
        _services.add(self)
        if hasattr(self._mc, "before_close"):
            self._mc.before_close(self.flush)
        self._register(
            batches_per_shard=int(bound.get("num_minibatches_per_shard") or 0),
            **self._order(bool(bound.get("shuffle")), bool(bound.get("shuffle_shards"))),
        )

    # --- fetching ---

    def fetch_shard(self) -> Optional[Shard]:
        """Waits for the next shard. None: the data has ended for this process; every later call
        returns None too.

        A MasterError is an error, never the end of the data. After `start_over`, a call that was
        waiting returns None, and its shard goes to other processes."""
        return self._fetch(self._generation)

    def shards(self) -> Iterator[Shard]:
        """Yields the next shards, up to the end of the data or to the next `start_over`."""
        return self._shards_of(self._generation)

    def get_task(self, task_type: Optional[Any] = None) -> Task:
        """The next shard as a Task, whose type is NONE at the end of the data."""
        shard = self.fetch_shard()
        if shard is None:
            return Task()
        return Task(task_id=shard.lease, shard=shard, type=self._task_type)

    def get_current_task(self) -> Optional[Task]:
        """The oldest fetched shard that is not completely trained."""
        with self._lock:
            shard = self._open.oldest(self._thread())
        if shard is None:
            return None
        return Task(task_id=shard.lease, shard=shard, type=self._task_type)

    def start_over(self) -> None:
        """Gives all fetched shards that are not reported back to the master, which may hand them
        out again. Call it when their records were lost before training: the input pipeline was
        rebuilt, or its batches were discarded."""
        with self._lock:
            self._generation += 1
            self._ended = False
            given_back = self._open.give_back()
            self._unsent.extend(given_back)
        if given_back:
            logger.warning("%s: gave back %d shards", self._dataset_name, len(given_back))
        self._send()

    # --- reporting ---

    def report_batch_done(
        self,
        batch_size: Optional[int] = None,
        err_msg: str = "",
        task_ids: Collection[int] = (),
    ) -> bool:
        """Counts a batch as trained, and reports the shards that are complete now.

        Args:
            batch_size: the number of records; by default the service's batch size. A shorter last
                batch is counted correctly, because no more is counted than was fetched.
            err_msg: why the batch failed. Its shards are reported as failed. They are handed out
                again a few times before they are quarantined.
            task_ids: the shards (Shard.lease) to which the records are credited.

        Returns whether it completed a shard that this process still holds. The report is durable
        when a later fetch or `flush` has returned.
        """
        records = self._records_in_batch() if batch_size is None else int(batch_size)
        with self._lock:
            complete = self._open.credit(records, self._thread(), err_msg, task_ids)
            self._unsent.extend(complete)
            failed = any(r.outcome != Outcome.DONE for r in self._unsent)
            may_wait = not (failed or self._ended or self._fetching)
        # The thread of _linger, or the next fetch, sends the report.
        if may_wait and (self._linger.begin() if complete else self._linger.waits()):
            return any(self._mc.holds(r.lease) for r in complete)
        lost = self._send()
        return any(r.lease not in lost for r in complete)

    def flush(self) -> None:
        """Sends all pending reports. They are durable when it returns."""
        while True:
            self._send()
            with self._lock:
                self._sent.wait_for(lambda: not self._sending)  # by other threads
                if not self._unsent:
                    return

    def report_data_end(self, drop_remainder: bool = False) -> bool:
        """Declares that all fetched records were trained, as when an input pipeline has ended. Has
        an effect only after a fetch has returned the end of the data; returns whether it had one.

        `drop_remainder`: the pipeline discarded a last incomplete batch. Its records were not
        trained, so nothing is counted. They are handed out again when this process leaves.
        """
        with self._lock:
            if not self._ended or drop_remainder:
                return False
            self._unsent.extend(self._open.complete_all())
        self._send()
        return True

    def report_all_task_error(self, err_msg: str) -> None:
        """Reports every open shard as failed."""
        with self._lock:
            self._unsent.extend(self._open.fail(err_msg or "failed"))
        self._send()

    # --- the dataset ---

    def get_minibatch_count_per_epoch(self) -> int:
        """Whole batches in an epoch."""
        size = self._dataset_size
        if not size:
            size = self._mc.get_dataset(self._dataset_name).spec.size
        return size // self._records_in_batch()

    def get_current_epoch(self) -> int:
        """The epoch whose shards are being handed out, counted from 0."""
        return self._mc.get_dataset(self._dataset_name).epoch

    def reset_dataset(self) -> None:
        """Restarts the dataset from its first epoch, for all processes that share it."""
        self.flush()
        self._mc.reset_dataset(self._dataset_name)
        self._forget()

    def get_shard_checkpoint(self) -> str:
        """The shards that are done and those that are not, as JSON for
        `restore_shard_from_checkpoint`."""
        self.flush()
        return self._mc.save_shards(self._dataset_name)

    def restore_shard_from_checkpoint(self, shard_checkpoint: str) -> bool:
        """Restores the dataset from the result of `get_shard_checkpoint`, for all processes that
        share it. False: the checkpoint is invalid, and nothing has changed."""
        self.flush()
        try:
            self._mc.restore_shards(shard_checkpoint)
        except MasterError as error:
            if error.code != "INVALID_ARGUMENT":
                raise
            logger.error("%s", error)
            return False
        self._forget()
        return True

    def finish(self) -> None:
        """Declares that training ends although data may be left (a number of steps is reached, or
        the loss is low enough). Without this call, a job whose workers all exit with 0 while
        records are left has failed."""
        self.flush()
        self._mc.finish()

    def report_metrics(self, step: int, **metrics: float) -> None:
        """Sends metrics for `elasticdl status` to the master: report_metrics(step, loss=0.3)."""
        self._mc.report_metrics(step, metrics)

    # --- implementation ---

    def _order(self, shuffle: bool, shuffle_shards: bool) -> dict:
        # Programs read range(start, end) of a shard, so its records must be contiguous.
        return {"shuffle_records": False, "shuffle_shards": shuffle or shuffle_shards}

    def _register(self, **order: Any) -> None:
        if self._dataset_size is not None and not self._dataset_size:
            raise ValueError(
                f"dataset_size={self._dataset_size!r}: there are no records to train; pass a size "
                "above 0"
            )
        if self._dataset_size is None:
            return
        wanted = DatasetSpec(
            name=self._dataset_name,
            size=_whole("dataset_size", self._dataset_size),
            batch_size=self._batch_size,
            epochs=self._num_epochs,
            task_type=self._task_type.name.lower(),
            **order,
        )
        in_force = self._mc.register_dataset(wanted)
        if in_force.size != wanted.size or in_force.epochs != (wanted.epochs or in_force.epochs):
            logger.warning(
                "dataset %r is already registered with %d records and %d epochs; the %d records "
                "and %d epochs given here are ignored",
                wanted.name, in_force.size, in_force.epochs, wanted.size, wanted.epochs,
            )
        self._dataset_size = in_force.size
        self._batch_size = self._batch_size or in_force.batch_size

    def _records_in_batch(self) -> int:
        if not self._batch_size:
            self._batch_size = self._mc.get_dataset(self._dataset_name).spec.batch_size
        return self._batch_size

    def _shards_of(self, generation: int) -> Iterator[Shard]:
        while True:
            shard = self._fetch(generation)
            if shard is None:
                return
            yield shard

    def _fetch(self, generation: int) -> Optional[Shard]:
        def stale() -> bool:
            return generation != self._generation

        leased = self._report_and_lease(stale)
        with self._lock:
            if not stale():
                if not leased:
                    self._ended = True
                    return None
                self._open.add(leased[0], self._thread())
                return leased[0]
            # start_over was called meanwhile: the caller would discard the records.
            self._unsent.extend(Report(s.lease, Outcome.GIVEN_BACK) for s in leased)
        self._send()
        return None

    def _report_and_lease(self, stale: Callable[[], bool]) -> List[Shard]:
        """Waits for the next shard. The call also sends pending reports."""
        with self._lock:
            self._fetching += 1
        try:
            # The call is not held, because other threads may wait for the answer to these reports.
            if self._unsent and not stale():
                from elasticai_api.common.messages import Answer

                answered = self._with_reports(
                    lambda reports: self._mc.report_and_lease(
                        reports, self._dataset_name, wait_s=0.0
                    )
                )
                if answered.shards:
                    return answered.shards
                if answered.answer == Answer.FINISHED:
                    return []
            self._send()
            return self._mc.lease(self._dataset_name, stale=stale)
        finally:
            with self._lock:
                self._fetching -= 1

    def _with_reports(self, call: Callable[[List[Report]], Answered]) -> Answered:
        """Makes a call with all pending reports. If the call fails, they stay pending."""
        with self._lock:
            reports, self._unsent = self._unsent, []
            self._sending += 1
        self._linger.end()
        unsent = reports
        try:
            answered = call(reports)
            unsent = []
        finally:
            with self._lock:
                self._unsent = unsent + self._unsent
                self._sending -= 1
                self._sent.notify_all()
        lost = answered.lost
        if any(r.lease in lost and r.outcome != Outcome.GIVEN_BACK for r in reports):
            logger.warning(
                "%s: %d shards trained here are not counted, because they went to other processes "
                "meanwhile", self._dataset_name, len(lost),
            )
        return answered

    def _thread(self) -> "_Thread":
        """The calling thread. Unlike a thread's ident, the object is never reused for another
        one."""
        if not hasattr(self._local, "thread"):
            self._local.thread = _Thread()
        return self._local.thread

    def _send(self) -> Set[int]:
        """Sends pending reports. Returns the leases among them that this process no longer held."""
        if not self._unsent:
            return set()
        return self._with_reports(
            lambda reports: Answered(0, [], self._mc.report(reports))
        ).lost

    def _forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._ended = False
            self._open = OpenShards()
            self._unsent = []


class _Linger:
    """Sends the reports of a service if no fetch has sent them within `wait_s`. Thread-safe.

    Its thread starts with the first report that waits, and refers to the service only while a
    report waits.
    """

    def __init__(self, service: DataShardService, wait_s: float):
        self._service = weakref.ref(service)
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._due: Optional[Tuple[float, DataShardService]] = None
        self._idle = False  # the thread waits for a report, not for a deadline
        self._thread: Optional[threading.Thread] = None

    def waits(self) -> bool:
        """Whether a report waits."""
        return self._due is not None

    def begin(self) -> bool:
        """A report waits from now on. False: reports of this service do not wait."""
        service = self._service()
        if self._wait_s <= 0 or service is None:
            return False
        with self._changed:
            if self._due is None:
                self._due = (time.monotonic() + self._wait_s, service)
            if self._idle:
                self._changed.notify()
            if self._thread is None or not self._thread.is_alive():  # after a fork it is not
                self._idle = False
                self._thread = threading.Thread(target=self._run, name="report_shards", daemon=True)
                self._thread.start()
        return True

    def end(self) -> None:
        """No report waits any more."""
        with self._changed:
            self._due = None

    def _run(self) -> None:
        while True:
            service = self._take_due()
            if service is None:
                return
            try:
                service._send()
            except MasterError as error:  # the next call includes the report
                logger.warning("a report of completed shards failed: %s", error)
            del service

    def _take_due(self) -> Optional[DataShardService]:
        """The service, when one of its reports has waited long enough. None: the service was
        collected."""
        with self._changed:
            while True:
                if self._due is None:
                    self._idle = True
                    told = self._changed.wait(_IDLE_S)
                    self._idle = False
                    if not told and self._service() is None:
                        return None
                    continue
                at, service = self._due
                left = at - time.monotonic()
                if left <= 0:
                    self._due = None
                    return service
                del service
                self._changed.wait(left)


_services: "weakref.WeakSet[DataShardService]" = weakref.WeakSet()


def _forget_after_fork() -> None:
    """A child process holds no leases, so it has nothing to report."""
    for service in list(_services):
        service._unsent = []
        service._fetching = service._sending = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _whole(name: str, value: Any) -> int:
    if int(value) != value or value < 0:
        raise ValueError(f"{name}={value!r} is invalid; it must be a whole number, 0 or more")
    return int(value)


def _default_name(task_type: TaskType) -> str:
    if task_type == TaskType.EVALUATION:
        return DefaultDatasetName.EVALUATION
    return DefaultDatasetName.TRAINING
