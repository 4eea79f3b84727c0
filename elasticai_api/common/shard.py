"""Shards, their outcomes, and datasets, as plain values."""

import dataclasses
import enum
from typing import Dict, List, Sequence, Set, Union

from elasticai_api.common.constants import TaskType

# Batches in a shard if neither the program nor the job's --num_minibatches_per_task sets it.
DEFAULT_BATCHES_PER_SHARD = 8
# Without a master there are no --minibatch_size and --num_epochs; these are their defaults.
DEFAULT_BATCH_SIZE = 64
DEFAULT_EPOCHS = 1


@dataclasses.dataclass(frozen=True)
class Shard:
    """A range of a dataset that this process holds until it reports it.

    If the records are shuffled, `indices` lists the records to read, and `end - start` is only
    their number. Otherwise `indices` is empty.
    """

    name: str
    start: int
    end: int
    indices: Sequence[int] = ()
    lease: int = 0
    epoch: int = 0
    ordinal: int = 0
    generation: int = 0
    ledger: int = 0
    dataset_id: int = 0
    # The version of the job that is evaluated or exported; 0 in training.
    version: int = 0

    @property
    def size(self) -> int:
        return self.end - self.start

    def records(self) -> Sequence[int]:
        """The indices of the records to read, in the order to read them."""
        return self.indices or range(self.start, self.end)


@dataclasses.dataclass(frozen=True)
class Task:
    """A shard as the published `get_task` returns it. `type` is NONE at the end of the data."""

    task_id: int = 0
    shard: Shard = Shard("", 0, 0)
    type: TaskType = TaskType.NONE
    model_version: int = 0
    extended_config: Dict[str, str] = dataclasses.field(default_factory=dict)


class Outcome(enum.IntEnum):
    """The outcome of a shard. The numbers are those of ShardReport.Outcome."""

    DONE = 0
    FAILED = 1
    GIVEN_BACK = 2


@dataclasses.dataclass(frozen=True)
class Report:
    lease: int
    outcome: Outcome = Outcome.DONE
    error: str = ""
    # The epoch of the parameter servers when the shard was opened. 0: it was not opened.
    ps_epoch: int = 0
    # With DONE, at most 3 MiB: the master keeps it until the dataset is reset (see get_results).
    result: bytes = b""


@dataclasses.dataclass
class Answered:
    """The result of a ReportAndLease call. `lost`: reported leases that this process no longer
    held. `reopen`: reported leases that it still holds, because parameter servers may have lost
    pushes. `ps_epoch`: the current epoch of our parameter servers, 0 in a job without them.
    `next_dataset`: in a job with --model_def, the dataset to request next."""

    answer: int  # one of messages.Answer
    shards: List[Shard]
    lost: Set[int]
    reopen: Set[int] = dataclasses.field(default_factory=set)
    ps_epoch: int = 0
    next_dataset: str = ""


@dataclasses.dataclass(frozen=True)
class DatasetSpec:
    """A dataset. If `batch_size`, `batches_per_shard` or `epochs` is 0 at registration, the job's
    --minibatch_size, --num_minibatches_per_task or --num_epochs is used. -1 epochs means without
    end. In a registered spec, 0 or less epochs means without end."""

    name: str
    size: int
    batch_size: int = 0
    batches_per_shard: int = 0
    epochs: int = 1
    shuffle_records: bool = False
    shuffle_shards: bool = False
    task_type: str = "training"


@dataclasses.dataclass(frozen=True)
class DatasetState:
    """The progress of a dataset. `epoch` counts from 0; its shards are being handed out."""

    spec: DatasetSpec
    generation: int
    epoch: int
    records_done: int
    finished: bool


def as_task_type(value: Union[int, str, TaskType]) -> TaskType:
    """A task type from its number or its name."""
    try:
        return TaskType[value.upper()] if isinstance(value, str) else TaskType(value)
    except (KeyError, ValueError):
        names = ", ".join(t.name for t in TaskType)
        raise ValueError(f"task_type={value!r} is unknown; use one of {names}") from None
