"""A program's share of a dataset, shard by shard."""

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

_IDLE_S = 60.0  # how often a thread without work looks whether it is needed

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
    """Arguments by name, from either published order: the newer one starts with batch_size, the
    older one with the master client."""
    names = list(names)
    if args and not isinstance(args[0], numbers.Number):
        names.remove("master_client")
        names.insert(0, "master_client")
    if len(args) > len(names):
        raise TypeError(f"{where}: {len(args)} arguments, but there are {len(names)} parameters")
    bound = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"{where} has no parameter {name!r}; it has {', '.join(names)}")
        if name in bound:
            raise TypeError(f"{where} got {name!r} twice")
        bound[name] = value
    return bound


class _Thread:
    """Stands for a thread of the program."""

    def __init__(self) -> None:
        self._thread = threading.current_thread()

    def is_alive(self) -> bool:
        return self._thread.is_alive()


class DataShardService:
    """Gives out shards of a dataset and reports those that are trained. Thread-safe.

    Takes the parameters of `build_data_shard_service`, positionally in their published order, with
    `master_client` as keyword or first, as in older programs.

    One thread may fetch while another reports; that is how input pipelines work. Or each of several
    threads fetches, trains and reports its own shards. What the service knows of training is the
    number of records in each `report_batch_done`, and the thread that says it.

    Where batch_size, num_epochs or num_minibatches_per_shard is None or 0, the job's
    --minibatch_size, --num_epochs or --num_minibatches_per_task counts. num_epochs=-1 is without
    end. Without dataset_size the dataset has to be registered by another process.

    A completed shard is reported by the next fetch: one call and one commit of the master a shard.
    A report waits for that 50 ms at most (longer only while the program holds Python's global
    lock); then a thread sends it. It is sent at once when no fetch will follow (the end was told,
    or a fetch is already waiting at the master), when the shard failed, and by `flush`, `finish`,
    `start_over`, the calls about the dataset as a whole, and the end of the program. A process that
    is killed before loses the report, and the shard is leased again.
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
        self._fetching = 0  # fetches that are waiting for their answer
        self._sending = 0  # calls with reports that are
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
        """The next shard; waits until there is one. None: the data has ended for this process
        (and again None however often it is called).

        A MasterError is a real error, never the end. After `start_over` a call that was waiting
        returns None, and its shard goes to others."""
        return self._fetch(self._generation)

    def shards(self) -> Iterator[Shard]:
        """The shards from here to the end of the data, or to the next `start_over`."""
        return self._shards_of(self._generation)

    def get_task(self, task_type: Optional[Any] = None) -> Task:
        """The next shard as a Task, whose type is NONE at the end of the data."""
        shard = self.fetch_shard()
        if shard is None:
            return Task()
        return Task(task_id=shard.lease, shard=shard, type=self._task_type)

    def get_current_task(self) -> Optional[Task]:
        """The oldest shard that is not trained yet."""
        with self._lock:
            shard = self._open.oldest(self._thread())
        if shard is None:
            return None
        return Task(task_id=shard.lease, shard=shard, type=self._task_type)

    def start_over(self) -> None:
        """Says that everything fetched and not reported was lost on its way to training: the
        input pipeline was built anew, or its batches were thrown away. Those shards go back to
        the master, and may come again."""
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
        """Counts a batch as trained; reports the shards that are complete with it.

        Args:
            batch_size: the records in it; by default the service's batch size. A last batch that
                was shorter is counted right all the same: no more is counted than was fetched.
            err_msg: the batch failed. Its shards are reported as failed, which hands them out
                again a few times before they are quarantined.
            task_ids: count in these shards only (Shard.lease).

        Returns whether a shard was completed with it that is still this process's. It counts for
        good once a later fetch, or `flush`, has returned.
        """
        records = self._records_in_batch() if batch_size is None else int(batch_size)
        with self._lock:
            complete = self._open.credit(records, self._thread(), err_msg, task_ids)
            self._unsent.extend(complete)
            failed = any(r.outcome != Outcome.DONE for r in self._unsent)
            may_wait = not (failed or self._ended or self._fetching)
        # The linger's thread, or the next fetch, has it.
        if may_wait and (self._linger.begin() if complete else self._linger.waits()):
            return any(self._mc.holds(r.lease) for r in complete)
        lost = self._send()
        return any(r.lease not in lost for r in complete)

    def flush(self) -> None:
        """Reports now what is to be reported. Once it returns, that counts for good."""
        while True:
            self._send()
            with self._lock:
                self._sent.wait_for(lambda: not self._sending)  # by other threads
                if not self._unsent:
                    return

    def report_data_end(self, drop_remainder: bool = False) -> bool:
        """Says that all that was fetched has been trained, to the last record, as when an input
        pipeline ran out. Counts only after the end of the data was told; returns whether it did.

        `drop_remainder`: the pipeline threw away a last incomplete batch. Its records were not
        trained, so nothing is counted here; they are handed out again when this process leaves.
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
        """The epoch, from 0, whose shards are being handed out."""
        return self._mc.get_dataset(self._dataset_name).epoch

    def reset_dataset(self) -> None:
        """Starts the dataset over, from its first epoch, for all processes that share it."""
        self.flush()
        self._mc.reset_dataset(self._dataset_name)
        self._forget()

    def get_shard_checkpoint(self) -> str:
        """What is done and what is not, as JSON for `restore_shard_from_checkpoint`."""
        self.flush()
        return self._mc.save_shards(self._dataset_name)

    def restore_shard_from_checkpoint(self, shard_checkpoint: str) -> bool:
        """Puts the dataset back to what `get_shard_checkpoint` returned, for all processes that
        share it. False: that is no such checkpoint, and nothing has changed."""
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
        """Says that training ends here although data may be left (a number of steps is reached,
        the loss is good enough). Without it a job whose workers all exit with 0 while records are
        left has failed."""
        self.flush()
        self._mc.finish()

    def report_metrics(self, step: int, **metrics: float) -> None:
        """Tells the master what `elasticdl status` is to show: report_metrics(step, loss=0.3)."""
        self._mc.report_metrics(step, metrics)

    # --- inside ---

    def _order(self, shuffle: bool, shuffle_shards: bool) -> dict:
        # Programs read range(start, end) of a shard, so its records must stay together.
        return {"shuffle_records": False, "shuffle_shards": shuffle or shuffle_shards}

    def _register(self, **order: Any) -> None:
        if self._dataset_size is not None and not self._dataset_size:
            raise ValueError(f"dataset_size={self._dataset_size!r}: there are no records to train")
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
                "dataset %r was registered before with %d records and %d epochs; that stays, "
                "not the %d records and %d epochs asked for here",
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
            # Whoever asked is gone, and so would be the records.
            self._unsent.extend(Report(s.lease, Outcome.GIVEN_BACK) for s in leased)
        self._send()
        return None

    def _report_and_lease(self, stale: Callable[[], bool]) -> List[Shard]:
        """The next shard, waited for; what is to be reported goes with the call for it."""
        with self._lock:
            self._fetching += 1
        try:
            # Not held: others may wait for these reports to be answered.
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
        """Makes a call with all that is to be reported. One that fails leaves it for the next."""
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
                "%s: %d shards trained here had been given to others meanwhile and are not "
                "counted", self._dataset_name, len(lost),
            )
        return answered

    def _thread(self) -> "_Thread":
        """The calling thread. Unlike its ident, never another one's later."""
        if not hasattr(self._local, "thread"):
            self._local.thread = _Thread()
        return self._local.thread

    def _send(self) -> Set[int]:
        """Reports what is to be reported. The leases among it that were no longer ours."""
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
    """Sends a service's reports when no fetch has taken them for `wait_s`. Thread-safe.

    Its thread lives from the first report that waits on, and refers to the service only while one
    does.
    """

    def __init__(self, service: DataShardService, wait_s: float):
        self._service = weakref.ref(service)
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._due: Optional[Tuple[float, DataShardService]] = None
        self._idle = False  # the thread waits for a report, not for a time
        self._thread: Optional[threading.Thread] = None

    def waits(self) -> bool:
        """Whether a report waits."""
        return self._due is not None

    def begin(self) -> bool:
        """A report waits from now on. False: here none may."""
        service = self._service()
        if self._wait_s <= 0 or service is None:
            return False
        with self._changed:
            if self._due is None:
                self._due = (time.monotonic() + self._wait_s, service)
            if self._idle:
                self._changed.notify()
            if self._thread is None or not self._thread.is_alive():  # a fork ends it too
                self._idle = False
                self._thread = threading.Thread(target=self._run, name="report_shards", daemon=True)
                self._thread.start()
        return True

    def end(self) -> None:
        """None waits any more."""
        with self._changed:
            self._due = None

    def _run(self) -> None:
        while True:
            service = self._take_due()
            if service is None:
                return
            try:
                service._send()
            except MasterError as error:  # it goes with the next call
                logger.warning("a report of completed shards failed: %s", error)
            del service

    def _take_due(self) -> Optional[DataShardService]:
        """The service, once a report of it has waited for long enough. None: it is gone."""
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
    """A child holds no leases, so there is nothing for it to report."""
    for service in list(_services):
        service._unsent = []
        service._fetching = service._sending = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _whole(name: str, value: Any) -> int:
    if int(value) != value or value < 0:
        raise ValueError(f"{name}={value!r}: must be a positive whole number")
    return int(value)


def _default_name(task_type: TaskType) -> str:
    if task_type == TaskType.EVALUATION:
        return DefaultDatasetName.EVALUATION
    return DefaultDatasetName.TRAINING
