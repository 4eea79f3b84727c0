"""Trains shards: reads, pulls, computes and pushes at the same time. Each batch is applied once."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Optional

from elasticai_api.common.shard import Shard
from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.model.errors import ModelError
from elasticdl.model.ps_model import PsModel, Rows
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
    prefetch: bool = False  # pull the next batch's parameters before this batch is pushed
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
        DONE, and returns it."""
        waiting: collections.deque[tuple[int, PendingPush]] = collections.deque()
        ahead: Optional[_Pull] = None
        index = first
        outcome = Outcome.APPLIED
        batches.release(first)
        while not self.leaving:
            batch = ahead.batch if ahead else self._input(batches, index)
            if batch is None:
                break
            features, labels = batch
            step = first_step + index
            self._on_batch(step)
            pull = ahead or self._start_pull(batch)
            if self._options.prefetch:
                following = self._input(batches, index + 1)
                ahead = None if following is None else self._start_pull(following)
            rows = self._finish_pull(pull)
            with self._clock.measure("step"):
                result = self._model.step(features, labels, rows)
            self._log(step, result.loss)
            if len(waiting) == self._options.in_flight:
                outcome = self._settle(batches, *waiting.popleft())
                if outcome not in DONE:
                    break
            assert self._model.settings is not None
            with self._clock.measure("push"):
                waiting.append((index, self._client.push_async(
                    result.tables, result.tensors,
                    learning_rate=self._model.settings.learning_rate(step),
                    at=(shard.lease, key, index), clipnorm=self._model.settings.clipnorm,
                    global_clipnorm=self._model.settings.global_clipnorm)))
            index += 1
            if self._options.prefetch and ahead is None:
                break
        for pushed, pending in waiting:
            last = self._settle(batches, pushed, pending)
            if outcome in DONE:
                outcome = last
        return outcome

    def _input(self, batches: ShardBatches, index: int) -> Optional[tuple[Any, Any]]:
        with self._clock.measure("input"):
            return batches.get(index)

    def _start_pull(self, batch: tuple[Any, Any]) -> _Pull:
        with self._clock.measure("ids"):
            ids = self._model.ids_of(batch[0], "training")
        wants_dense = self._since_pull % self._options.pull_every == 0
        self._since_pull += 1
        tensors = self._model.tensors if wants_dense else []
        return _Pull(batch, self._client.prefetch(ids, tensors=tensors), wants_dense)

    def _finish_pull(self, pull: _Pull) -> Rows:
        with self._clock.measure("pull"):
            rows, ids = pull.prefetch.result(), pull.prefetch.ids()
            tensors = pull.prefetch.tensors()
        if pull.wants_dense:
            with self._clock.measure("assign"):
                self._model.assign(tensors)
        return {table: (ids[table], *rows[table]) for table in rows}

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
    wants_dense: bool
