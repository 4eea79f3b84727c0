"""The work of one worker: it does what the master leads it to, dataset by dataset."""

from __future__ import annotations

import collections
import os
import time
from typing import Any, Optional

from elasticai_api.common.errors import MasterError
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import DatasetSpec, Report, Shard
from elasticai_api.common.shard import Outcome as ShardOutcome
from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.data.reader import Records, open_data
from elasticdl.model.model_spec import ModelSpec
from elasticdl.worker.arguments import Arguments
from elasticdl.worker.clocks import Stopwatch
from elasticdl.worker.model_tasks import ModelTasks
from elasticdl.worker.shard_input import BadRecords, ShardBatches, ShardFeed

# The datasets of a job with a model: docs/adr/0028-jobs-of-a-model.md.
TRAINING, EVALUATION, MERGE, PREDICTION, EXPORT = (
    "training", "evaluation", "evaluation_merge", "prediction", "export")
# Pause before shards are opened again that the master asked to reopen; doubled up to the longest.
_SHORTEST_REOPEN_S = 0.05
_LONGEST_REOPEN_S = 2.0


class WorkerJob:
    """Leases shards, works on them and reports them, until the master answers that the job has
    finished. Use it from one thread; `leave` may be called from a signal handler."""

    def __init__(self, arguments: Arguments, spec: ModelSpec, master: Any, client: Any) -> None:
        self._arguments = arguments
        self._spec = spec
        self._master = master
        self._clock = Stopwatch()
        self._feeds = self._open_feeds()
        self._tasks = ModelTasks(arguments, spec, client, master, self._feeds, self._clock)
        self._ps_epoch = 0
        self._checked_feed = False
        self._own_batches = 0  # of shards that are leased and not yet counted by the master
        self._leaving = False

    def leave(self) -> None:
        """Gives open shards back after the present batch, and makes `run` return."""
        self._leaving = True
        self._tasks.leave()

    def run(self) -> None:
        for name, feed in self._feeds.items():
            self._master.register_dataset(_dataset_spec(name, feed.records, self._arguments))
        dataset = {"training": TRAINING, "evaluation": EVALUATION,
                   "prediction": PREDICTION}[self._arguments.job_type]
        held: collections.deque[_Held] = collections.deque()
        reported: list[tuple[_Held, Report]] = []
        pause = _SHORTEST_REOPEN_S
        while not self._leaving:
            had_none = not held
            answered = self._report_and_lease([report for _, report in reported], dataset, held)
            self._ps_epoch = max(self._ps_epoch, answered.ps_epoch)
            reopened = [done for done, report in reported if report.lease in answered.reopen]
            held.extend(reopened)
            reported = []
            pause = min(2 * pause, _LONGEST_REOPEN_S) if reopened else _SHORTEST_REOPEN_S
            if reopened:
                time.sleep(pause)  # a server is being replaced
            held.extend(self._hold(shard) for shard in answered.shards)
            if not held and answered.answer == Answer.FINISHED:
                break
            if answered.answer == Answer.UNKNOWN_DATASET and dataset in self._feeds:
                self._master.register_dataset(
                    _dataset_spec(dataset, self._feeds[dataset].records, self._arguments))
            dataset = answered.next_dataset or dataset
            if had_none and held:
                continue  # lease one more, whose batches are made while the first one is trained
            if held:
                reported.append((held[0], self._work(held[0])))
                held.popleft()
        self._end([report for _, report in reported], held)

    def _report_and_lease(self, reports: list[Report], dataset: str,
                          held: collections.deque[_Held]) -> Any:
        """Waits for a shard only if this worker has none."""
        with self._clock.measure("lease"):
            if not held:
                return self._master.report_and_lease(reports, dataset)
            return self._master.report_and_lease(reports, dataset, at_most=int(len(held) < 2),
                                                 wait_s=0)

    def _end(self, reports: list[Report], held: collections.deque[_Held]) -> None:
        given_back = [Report(left.shard.lease, ShardOutcome.GIVEN_BACK) for left in held]
        if reports or given_back:
            self._master.report([*reports, *given_back])
        self._tasks.close()
        logger.info("time of this worker: %s", self._clock.summary())

    def _hold(self, shard: Shard) -> _Held:
        feed = self._feeds.get(shard.name)
        batches = None if feed is None else ShardBatches(feed, shard)
        held = _Held(shard, batches, shard.version + self._own_batches)
        if shard.name == TRAINING:
            self._own_batches += -(-shard.size // self._arguments.minibatch_size)
        return held

    def _work(self, held: _Held) -> Report:
        """Does the work of a shard. BadRecords and errors of the master become a report; errors of
        the model are raised."""
        shard, lease = held.shard, held.shard.lease
        result = b""
        try:
            if shard.name == TRAINING:
                return self._train(held)
            if not self._master.holds(lease):
                return Report(lease, ShardOutcome.GIVEN_BACK)
            if shard.name == EVALUATION:
                result = self._tasks.evaluate(shard, held.batches)
            elif shard.name == MERGE:
                result = self._merge(shard)
                if not result:
                    return Report(lease, ShardOutcome.GIVEN_BACK)
            elif shard.name == PREDICTION:
                self._tasks.predict(shard, held.batches)
            elif shard.name == EXPORT:
                self._tasks.export()
            else:
                raise MasterError(f"the master leased a shard of dataset {shard.name!r}, which "
                                  "this worker does not know: are both of one version?")
        except BadRecords as error:
            where = f"records {shard.start} to {shard.end - 1} of {self._flag_of(shard.name)}"
            logger.error("%s: %s", where, error)
            return Report(lease, ShardOutcome.FAILED, error=str(error))
        finally:
            if held.batches is not None:
                held.batches.close()
        return Report(lease, ShardOutcome.DONE, result=result)

    def _merge(self, shard: Shard) -> bytes:
        """The merged metrics. Empty: the evaluation was started again."""
        try:
            return self._tasks.merge(shard)
        except MasterError as error:
            logger.info("the merge is given back: %s", error)
            return b""

    def _train(self, held: _Held) -> Report:
        shard = held.shard
        feed = self._feeds[TRAINING]
        if not self._checked_feed:
            feed.check_repeats(shard)
            self._checked_feed = True
        assert held.batches is not None
        opened = self._tasks.train(shard, held.batches, self._ps_epoch, held.first_step)
        self._own_batches = max(0, self._own_batches - -(-shard.size
                                                         // self._arguments.minibatch_size))
        if opened is None:
            # The servers fenced the lease, or this worker leaves. If the lease is still valid for
            # the master, it gets the shard back; otherwise the report has no effect.
            return Report(shard.lease, ShardOutcome.GIVEN_BACK)
        return Report(shard.lease, ShardOutcome.DONE, ps_epoch=opened.ps_epoch)

    def _flag_of(self, dataset: str) -> str:
        flag = {TRAINING: "training_data", EVALUATION: "validation_data",
                PREDICTION: "prediction_data"}[dataset]
        return f"--{flag}={getattr(self._arguments, flag)}"

    def _open_feeds(self) -> dict[str, ShardFeed]:
        wanted = {"training": {TRAINING: "training_data", EVALUATION: "validation_data"},
                  "evaluation": {EVALUATION: "validation_data"},
                  "prediction": {PREDICTION: "prediction_data"}}[self._arguments.job_type]
        feeds = {}
        for name, flag in wanted.items():
            path = getattr(self._arguments, flag)
            if not path:
                continue
            job_dir = os.environ.get("ELASTICDL_JOB_DIR")
            records = open_data(path, flag, self._spec.custom_data_reader,
                                self._arguments.data_reader_params,
                                self._arguments.records_per_task,
                                os.path.join(job_dir, "index") if job_dir else None)
            feeds[name] = ShardFeed(records, self._spec.feed, name, self._arguments.minibatch_size,
                                    f"{self._spec.file.path}: feed(dataset, {name!r}, metadata)")
        return feeds


class _Held:
    """A shard that this worker holds."""

    def __init__(self, shard: Shard, batches: Optional[ShardBatches], first_step: int) -> None:
        self.shard = shard
        self.batches = batches  # None: the shard has no records to read
        self.first_step = first_step


def _dataset_spec(name: str, records: Records, arguments: Arguments) -> DatasetSpec:
    return DatasetSpec(name=name, size=records.size, batch_size=arguments.minibatch_size,
                       batches_per_shard=arguments.num_minibatches_per_task,
                       epochs=0 if name == TRAINING else 1, task_type=name)
