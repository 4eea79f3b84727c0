"""Trains the shards of a job with parameters on its servers, every batch once."""

import collections
import json
import os

from elasticai_api.common.master_client import build_master_client
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import DatasetSpec, Report
from elasticai_api.common.shard import Outcome as ShardOutcome
from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.parameter_client import Outcome, ParameterClient, ParameterError, ShardKey

_DONE = (Outcome.APPLIED, Outcome.REFUSED)


def job_client(**options):
    """A `ParameterClient` of the servers of the job that this process is a replica of."""
    servers = os.environ.get("ELASTICDL_PS_ADDRS")
    if not servers:
        raise RuntimeError("this process is no replica of a job with parameter servers: start it "
                           "with `elasticdl train --ps_program=elasticdl --num_ps_pods=N ...`")
    options.setdefault("consistency", json.loads(os.environ.get("ELASTICDL_CONSISTENCY", "{}")))
    return ParameterClient(servers, token_file=os.environ.get("ELASTICDL_TOKEN_FILE"), **options)


class ShardTrainer:
    """Leases the shards of a dataset from the job's master, trains their batches and reports them.

    Whatever dies meanwhile (this process, a server, the master), each batch changes the parameters
    once: a shard that was begun goes on at the first batch that a server lacks, and one whose
    pushes a server has lost is trained again where they are lacking.
    """

    def __init__(self, client, dataset, *, size, batch_size, epochs=1, batches_per_shard=0,
                 shuffle_records=False, shuffle_shards=False, in_flight=1, max_ahead=None,
                 master=None):
        """client: a `ParameterClient` that has declared its parameters.
        dataset, size, batch_size, epochs, batches_per_shard, shuffle_...: what is trained, as the
            first worker registers it; the others get that.
        in_flight: how many pushes may be on their way while the next batch is computed.
        max_ahead: a worker that has trained so many batches more than the slowest waits for it;
            0: none does; unless said, the job's --max_ahead.
        """
        if in_flight < 1:
            raise ValueError(f"in_flight is {in_flight}; it must be at least 1")
        if max_ahead is None:
            max_ahead = int(os.environ.get("ELASTICDL_MAX_AHEAD", "0"))
        if max_ahead < 0:
            raise ValueError(f"max_ahead is {max_ahead}; it must be at least 0")
        self._client = client
        self._in_flight = in_flight
        self._max_ahead = max_ahead
        self._trained = 0
        self._is_awaited = False  # others wait for this one
        self._master = master or build_master_client()
        self._spec = self._master.register_dataset(DatasetSpec(
            name=dataset, size=size, batch_size=batch_size, batches_per_shard=batches_per_shard,
            epochs=epochs, shuffle_records=shuffle_records, shuffle_shards=shuffle_shards))

    def run(self, train):
        """Trains until the data has ended. `train(records)` gets the indices of a batch's records
        and returns the arguments of `ParameterClient.push`: a dict with `tables`, `tensors` and
        `learning_rate`. It may be called again with the same records, and has to return then what
        it makes of the parameters as they are then."""
        reports, held = [], {}
        while True:
            answered = self._exchange(reports)
            for report in reports:
                if report.lease not in answered.reopen:
                    held.pop(report.lease, None)
            reports = []
            for shard in answered.shards:
                held[shard.lease] = shard
            if not held and self._is_awaited:
                self._master.rest()
                self._is_awaited = False
            if answered.answer == Answer.FINISHED and not held:
                return
            if answered.answer == Answer.UNKNOWN_DATASET:
                self._master.register_dataset(self._spec)
            for lease, shard in list(held.items()):
                opened = self._train(shard, train)
                if opened is None:
                    del held[lease]
                else:
                    reports.append(Report(lease, ShardOutcome.DONE, ps_epoch=opened.ps_epoch))

    def _exchange(self, reports):
        if self._is_awaited:  # who has to wait here is no longer awaited
            return self._master.exchange(reports, self._spec.name, wait_s=0)
        return self._master.exchange(reports, self._spec.name)

    def _keep_pace(self):
        if self._max_ahead:
            self._master.pace(self._trained, self._max_ahead)
            self._is_awaited = True
        self._trained += 1

    def _train(self, shard, train):
        """Pushes what servers lack of a shard. What they said when it was opened; None: it is
        another's by now."""
        key = ShardKey(shard.ledger, shard.dataset_id, shard.generation, shard.epoch,
                       shard.ordinal)
        records = shard.records()
        count = -(-len(records) // self._spec.batch_size)
        while True:
            if not self._master.holds(shard.lease):
                return None
            try:
                opened = self._client.open_shard(shard.lease, key)
            except ParameterError as error:
                if error.code != "FAILED_PRECONDITION":
                    raise
                logger.info("shard %d of epoch %d went to another: %s", shard.ordinal, shard.epoch,
                            error)
                return None
            try:
                outcome = self._push(shard, key, records, range(opened.batches, count), train)
            except ParameterError as error:
                if error.code != "FAILED_PRECONDITION" or "no value" not in str(error):
                    raise
                self._client.put_first_values()
                continue
            if outcome in _DONE:
                return opened
            if outcome is Outcome.FENCED:
                return None

    def _push(self, shard, key, records, batches, train):
        """Pushes batches in order; the first outcome that is none of _DONE ends it."""
        waiting = collections.deque()
        outcome = Outcome.APPLIED
        for batch in batches:
            if len(waiting) == self._in_flight:
                outcome = waiting.popleft().result().outcome
                if outcome not in _DONE:
                    break
            self._keep_pace()
            begin = batch * self._spec.batch_size
            gradients = train(records[begin:begin + self._spec.batch_size])
            waiting.append(self._client.push_async(**gradients, at=(shard.lease, key, batch)))
        for pending in waiting:
            last = pending.result().outcome
            if outcome in _DONE:
                outcome = last
        return outcome
