"""Trains shards: reads, pulls, computes and pushes at the same time. Each batch is applied once."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, Optional

from elasticai_api.common.shard import Shard
from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.model.errors import ModelError
from elasticdl.model.ps_model import Gradients, PsModel
from elasticdl.opened_shards import DONE, push_shard
from elasticdl.parameter_client import (
    OpenedShard,
    Outcome,
    ParameterClient,
    PendingPush,
    Prefetch,
)
from elasticdl.shards import ShardKey
from elasticdl.worker.clocks import Stopwatch
from elasticdl.worker.shard_input import ShardBatches

# So many batches in a row with a loss or gradients that are not finite fail the job.
_MOST_REFUSED = 8


@dataclasses.dataclass
class TrainingOptions:
    in_flight: int = 1  # pushes that may be in progress while the next batch is computed
    # Pull the next batch's parameters and start to compute it before this batch is pushed.
    prefetch: bool = False
    pull_every: int = 1  # batches between two pulls of the dense tensors
    log_every: int = 100  # batches between two lines with the loss


class ShardTraining:
    """Trains the shards of a job with a `PsModel`. Use it from one thread."""

    def __init__(self, client: ParameterClient, model: PsModel, options: TrainingOptions,
                 stopwatch: Stopwatch, on_batch: Callable[[int], None],
                 on_loss: Callable[[int, float], None]) -> None:
        """on_batch(step) is called before each batch, on_loss(step, loss) when a loss is logged."""
        self._client = client
        self._model = model
        self._options = options
        self._clock = stopwatch
        self._on_batch = on_batch
        self._on_loss = on_loss
        self._refused = 0  # batches in a row
        self._since_pull = 0
        self._logged_at: Optional[int] = None
        self._steps = concurrent.futures.ThreadPoolExecutor(1, "elasticdl-step")
        self.leaving = False  # stop after the present batch

    def train(self, shard: Shard, batches: ShardBatches, ps_epoch: int, first_step: int,
              holds: Callable[[int], bool]) -> Optional[OpenedShard]:
        """Pushes the batches of a shard that servers lack. Returns what the servers had when the
        shard was opened. None: another worker has the shard now, or this worker is leaving.

        ps_epoch: the epoch of the servers, from the master. first_step: the job's version at the
        first batch of the shard. holds(lease): this worker still has the lease."""
        opened = push_shard(
            self._client, shard, ps_epoch, holds,
            lambda key, first: self._push_batches(shard, key, batches, first, first_step))
        return None if self.leaving else opened

    def _push_batches(self, shard: Shard, key: ShardKey, batches: ShardBatches, first: int,
                      first_step: int) -> Outcome:
        """Pushes batches in order, from `first` on. Stops at the first outcome that is not in
        DONE, and returns it. While a batch is computed, the one before is pushed, and the
        parameters of the next one are pulled."""
        batches.release(first)
        waiting: collections.deque[tuple[int, PendingPush]] = collections.deque()
        computing: Optional[_Step] = None
        ahead: Optional[_Pull] = None
        outcome = Outcome.APPLIED
        for index in itertools.count(first):
            pull = ahead or self._start_pull(batches, index)
            if pull is None or self.leaving:
                break
            before, computing = computing, self._start_step(pull, index, first_step + index)
            if not self._options.prefetch:  # push this batch before the next one is pulled
                before, computing = computing, None
            if before is not None:
                outcome = self._push(batches, waiting, before, (shard.lease, key, before.index))
                if outcome not in DONE:
                    break
            ahead = self._start_pull(batches, index + 1) if self._options.prefetch else None
        if computing is not None and outcome in DONE and not self.leaving:
            outcome = self._push(batches, waiting, computing, (shard.lease, key, computing.index))
        elif computing is not None:
            concurrent.futures.wait([computing.gradients])
        for pushed, pending in waiting:
            last = self._settle(batches, pushed, pending)
            if outcome in DONE:
                outcome = last
        return outcome

    def _start_pull(self, batches: ShardBatches, index: int) -> Optional[_Pull]:
        """Starts to pull the parameters of a batch. None: the shard has no such batch."""
        with self._clock.measure("input"):
            batch = batches.get(index)
        if batch is None:
            return None
        with self._clock.measure("ids"):
            ids = self._model.ids_of(batch[0], "training")
        wants_dense = self._since_pull % self._options.pull_every == 0
        self._since_pull += 1
        tensors = self._model.tensors if wants_dense else []
        return _Pull(batch, self._client.prefetch(ids, tensors=tensors))

    def _start_step(self, pull: _Pull, index: int, step: int) -> _Step:
        """Computes a batch on the thread for steps, after those that it has already."""
        assert self._model.settings is not None
        self._on_batch(step)  # may change the learning rate
        rate = self._model.settings.learning_rate(step)
        with self._clock.measure("pull"):
            rows, ids = pull.prefetch.result(), pull.prefetch.ids()
            tensors = pull.prefetch.tensors()
        inputs = {table: (ids[table], *rows[table]) for table in rows}
        return _Step(index, step, rate,
                     self._steps.submit(self._model.step, *pull.batch, inputs, tensors))

    def _push(self, batches: ShardBatches, waiting: collections.deque[tuple[int, PendingPush]],
              done: _Step, at: tuple[int, ShardKey, int]) -> Outcome:
        """Pushes the gradients of a batch when they are computed. If too many pushes are in flight,
        waits for the oldest one first. Returns its outcome if it is not in DONE, and then does not
        push; otherwise APPLIED."""
        with self._clock.measure("step"):
            result = done.gradients.result()
        self._log(done.step, result.loss)
        if len(waiting) == self._options.in_flight:
            outcome = self._settle(batches, *waiting.popleft())
            if outcome not in DONE:
                return outcome
        assert self._model.settings is not None
        with self._clock.measure("push"):
            waiting.append((done.index, self._client.push_async(
                result.tables, result.tensors, learning_rate=done.learning_rate, at=at,
                clipnorm=self._model.settings.clipnorm,
                global_clipnorm=self._model.settings.global_clipnorm)))
        return Outcome.APPLIED

    def _settle(self, batches: ShardBatches, index: int, pending: PendingPush) -> Outcome:
        with self._clock.measure("push"):
            outcome = pending.result().outcome
        if outcome in DONE:
            batches.release(index + 1)
        else:
            self._since_pull = 0  # compute again with present parameters
        self._refused = self._refused + 1 if outcome is Outcome.REFUSED else 0
        if self._refused >= _MOST_REFUSED:
            raise ModelError(f"the loss or the gradients of {self._refused} batches in a row were "
                             "NaN or infinite, so the training has diverged or the loss is wrong; "
                             "lower the learning rate, clip gradients (clipnorm), or check loss() "
                             "and the records")
        return outcome

    def _log(self, step: int, loss: float) -> None:
        due = self._logged_at is None or step // self._options.log_every != (
            self._logged_at // self._options.log_every)
        if not due:
            return
        self._logged_at = step
        logger.info("Loss = %s, steps = %d", f"{loss:.6g}" if math.isfinite(loss) else loss, step)
        self._on_loss(step, loss)


@dataclasses.dataclass
class _Pull:
    """Parameters on their way, and the batch that they are for."""

    batch: tuple[Any, Any]
    prefetch: Prefetch


@dataclasses.dataclass
class _Step:
    """A batch that is computed."""

    index: int  # in the shard
    step: int
    learning_rate: float
    gradients: concurrent.futures.Future[Gradients]
