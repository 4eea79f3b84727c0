"""How parameter servers identify the shards of a dataset."""

from __future__ import annotations

from typing import NamedTuple


class ShardKey(NamedTuple):
    """Identifies a shard of a dataset in one epoch. Its batches are counted from 0."""

    ledger: int
    dataset: int = 0
    generation: int = 0
    epoch: int = 0
    ordinal: int = 0


class OpenedShard(NamedTuple):
    """What the servers have of a shard that was opened."""

    batches: int  # that all servers have: the index of the first batch to push
    ps_epoch: int  # epoch of the servers, for the report of the shard; 0: there is no master
