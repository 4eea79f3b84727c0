"""Pushes the batches of a shard until every server has all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from elasticai_api.common.shard import Shard
from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.parameter_client import OpenedShard, Outcome, ParameterClient, ParameterError
from elasticdl.shards import ShardKey

# The outcomes after which a batch needs no other push.
DONE = (Outcome.APPLIED, Outcome.REFUSED)


def push_shard(client: ParameterClient, shard: Shard, ps_epoch: int, holds: Callable[[int], bool],
               push: Callable[[ShardKey, int], Outcome]) -> Optional[OpenedShard]:
    """Opens a leased shard and pushes its batches; opens it again if servers were restored.

    Returns what the servers had when the shard was opened. None: another worker has the shard now.

    ps_epoch: the epoch of the servers, from the master. holds(lease): this process still has the
    lease. push(key, first): pushes the batches from `first` on, and returns the first outcome that
    is not in DONE, or else the last one.
    """
    key = ShardKey(shard.ledger, shard.dataset_id, shard.generation, shard.epoch, shard.ordinal)
    while holds(shard.lease):
        try:
            opened = client.open_shard(shard.lease, key, ps_epoch)
        except ParameterError as error:
            if error.code != "ABORTED":  # the lease has ended
                raise
            logger.info("another worker has shard %d of epoch %d now: %s", shard.ordinal,
                        shard.epoch, error)
            return None
        try:
            outcome = push(key, opened.batches)
        except ParameterError as error:
            if error.code != "NOT_FOUND":  # a tensor has no value
                raise
            client.put_first_values()
            continue
        if outcome in DONE:
            return opened
        if outcome is Outcome.FENCED:
            return None
    return None
