"""Trains the shards of a job with parameter servers. Each batch is applied once."""

from __future__ import annotations

import collections
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from elasticai_api.common.master_client import build_master_client
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import DatasetSpec, Report, Shard
from elasticai_api.common.shard import Outcome as ShardOutcome
from elasticdl.opened_shards import DONE, push_shard
from elasticdl.parameter_client import (
    OpenedShard,
    Outcome,
    ParameterClient,
    PendingPush,
    ShardKey,
)

# Pause before shards are opened again that the master asked to reopen; doubled up to the longest.
_SHORTEST_REOPEN_S = 0.05
_LONGEST_REOPEN_S = 2.0

# Maps the indices of a batch's records to the arguments of `ParameterClient.push`.
Train = Callable[[Sequence[int]], dict[str, Any]]


def job_client(**options: Any) -> ParameterClient:
    """Returns a `ParameterClient` for the servers of this process's job. It waits for servers
    without a limit, because the master replaces servers that are lost."""
    servers = os.environ.get("ELASTICDL_PS_ADDRS")
    if not servers:
        raise RuntimeError("this process does not belong to a job with parameter servers: start it "
                           "with `elasticdl train --ps_program=elasticdl --num_ps_pods=N ...`")
    options.setdefault("timeout", math.inf)
    options.setdefault("managed", True)
    options.setdefault("consistency", json.loads(os.environ.get("ELASTICDL_CONSISTENCY", "{}")))
    return ParameterClient(servers, token_file=os.environ.get("ELASTICDL_TOKEN_FILE"), **options)


class ShardTrainer:
    """Leases the shards of a dataset from the job's master, trains their batches and reports them.

    Each batch changes the parameters once, whichever process is lost (a worker, a server, the
    master): an interrupted shard continues at the first batch that a server lacks, and batches that
    a server has lost are trained again.

    One thread at a time may use a trainer. Several threads of a process may train, each with its
    own trainer. They may share a `ParameterClient`, and get different shards.
    """

    def __init__(self, client: ParameterClient, dataset: str, *, size: int, batch_size: int,
                 epochs: int = 1, batches_per_shard: int = 0, shuffle_records: bool = False,
                 shuffle_shards: bool = False, in_flight: int = 1, max_staleness: int | None = None,
                 master: Any = None) -> None:
        """client: a `ParameterClient` that has declared its parameters.
        dataset, size, batch_size, epochs, batches_per_shard, shuffle_...: the dataset. The first
            worker registers it; the arguments of the other workers have no effect.
        in_flight: how many pushes may be in progress while the next batch is computed.
        max_staleness: a worker that has trained this many batches more than the slowest worker
            waits for it. 0: workers do not wait. None: the job's --max_staleness.
        """
        if in_flight < 1:
            raise ValueError(f"in_flight is {in_flight}; it must be at least 1")
        if max_staleness is None:
            max_staleness = int(os.environ.get("ELASTICDL_MAX_STALENESS", "0"))
        if max_staleness < 0:
            raise ValueError(f"max_staleness is {max_staleness}; it must be at least 0")
        self._client = client
        self._in_flight = in_flight
        self._max_staleness = max_staleness
        self._trained = 0
        self._is_awaited = False  # other workers may wait for this one
        self._ps_epoch = 0  # epoch of the parameter servers in the master's last answer
        self._master = master or build_master_client()
        self._spec = self._master.register_dataset(DatasetSpec(
            name=dataset, size=size, batch_size=batch_size, batches_per_shard=batches_per_shard,
            epochs=epochs, shuffle_records=shuffle_records, shuffle_shards=shuffle_shards))

    def run(self, train: Train) -> None:
        """Trains until the data has ended. `train(records)` is called with the indices of a batch's
        records, and returns the arguments of `ParameterClient.push`: a dict with `tables`,
        `tensors` and `learning_rate`. It may be called again with the same records; it must then
        compute the gradients again, with the present parameters."""
        reports: list[Report] = []
        held: dict[int, Shard] = {}
        pause = _SHORTEST_REOPEN_S
        while True:
            answered = self._report_and_lease(reports)
            self._ps_epoch = max(self._ps_epoch, answered.ps_epoch)
            for report in reports:
                if report.lease not in answered.reopen:
                    held.pop(report.lease, None)
            reports = []
            if answered.reopen:
                # A server is being replaced: without a pause this loop would spin.
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_REOPEN_S)
            else:
                pause = _SHORTEST_REOPEN_S
            for shard in answered.shards:
                held[shard.lease] = shard
            if not held and self._is_awaited:
                self._master.rest()
                self._is_awaited = False
            if answered.answer == Answer.FINISHED and not held:
                return
            if answered.answer == Answer.UNKNOWN_DATASET:
                self._master.register_dataset(self._spec)
            for shard in held.values():
                reports.append(self._report_of(shard, self._train(shard, train)))

    def _report_of(self, shard: Shard, opened: OpenedShard | None) -> Report:
        if opened is not None:
            return Report(shard.lease, ShardOutcome.DONE, ps_epoch=opened.ps_epoch)
        # The servers fenced the lease. If it is still valid for the master, the master gets the
        # shard back; otherwise the report has no effect.
        return Report(shard.lease, ShardOutcome.GIVEN_BACK)

    def _report_and_lease(self, reports: Iterable[Report]) -> Any:
        if self._is_awaited:  # a worker for which others wait must not wait here
            return self._master.report_and_lease(reports, self._spec.name, wait_s=0)
        return self._master.report_and_lease(reports, self._spec.name)

    def _wait_for_slowest(self) -> None:
        if self._max_staleness:
            self._master.report_progress(self._trained, self._max_staleness)
            self._is_awaited = True
        self._trained += 1

    def _train(self, shard: Shard, train: Train) -> OpenedShard | None:
        """Pushes the batches of a shard that servers lack. Returns what the servers had when the
        shard was opened. None: another worker has the shard now."""
        records = shard.records()
        count = -(-len(records) // self._spec.batch_size)
        return push_shard(
            self._client, shard, self._ps_epoch, self._master.holds,
            lambda key, first: self._push(shard, key, records, range(first, count), train))

    def _push(self, shard: Shard, key: ShardKey, records: Sequence[int], batches: range,
              train: Train) -> Outcome:
        """Pushes batches in order. Stops at the first outcome that is not in DONE, and returns it.
        """
        waiting: collections.deque[PendingPush] = collections.deque()
        outcome = Outcome.APPLIED
        for batch in batches:
            if len(waiting) == self._in_flight:
                outcome = waiting.popleft().result().outcome
                if outcome not in DONE:
                    break
            self._wait_for_slowest()
            begin = batch * self._spec.batch_size
            gradients = train(records[begin:begin + self._spec.batch_size])
            waiting.append(self._client.push_async(**gradients, at=(shard.lease, key, batch)))
        for pending in waiting:
            last = pending.result().outcome
            if outcome in DONE:
                outcome = last
        return outcome
