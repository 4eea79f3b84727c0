"""Shards, their outcomes and the datasets they are cut from: plain values."""

import dataclasses
import enum
from typing import Dict, List, Sequence, Set, Union

from elasticai_api.common.constants import TaskType

# A shard's batches when neither the program nor the job's --num_minibatches_per_task says.
DEFAULT_BATCHES_PER_SHARD = 8
# Without a master there is no --minibatch_size and no --num_epochs: these are their defaults.
DEFAULT_BATCH_SIZE = 64
DEFAULT_EPOCHS = 1


@dataclasses.dataclass(frozen=True)
class Shard:
    """A range of a dataset, held by this process until it is reported.

    `indices` is empty unless the records are shuffled; then it lists the records to read, and
    `end - start` is only their number.
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
    """What became of a shard; the numbers are ShardReport.Outcome's."""

    DONE = 0
    FAILED = 1
    GIVEN_BACK = 2


@dataclasses.dataclass(frozen=True)
class Report:
    lease: int
    outcome: Outcome = Outcome.DONE
    error: str = ""
    # The epoch of the parameter servers when the shard was opened there. 0: it was not.
    ps_epoch: int = 0


@dataclasses.dataclass
class Answered:
    """The result of a ReportAndLease call. `lost`: reported leases that were no longer ours.
    `reopen`: reported leases that still are, because parameter servers may have lost what was
    pushed. `ps_epoch`: the current epoch of the job's own parameter servers, 0 without any."""

    answer: int  # one of messages.Answer
    shards: List[Shard]
    lost: Set[int]
    reopen: Set[int] = dataclasses.field(default_factory=set)
    ps_epoch: int = 0


@dataclasses.dataclass(frozen=True)
class DatasetSpec:
    """A dataset. Registered with a `batch_size`, `batches_per_shard` or `epochs` of 0 it gets the
    job's --minibatch_size, --num_minibatches_per_task or --num_epochs. In force, `epochs` of 0 or
    less means: without end; to register that, give -1."""

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
    """Where a dataset stands. `epoch` counts from 0 and is the one being handed out."""

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
        raise ValueError(f"task_type={value!r} is none of {names}") from None
