"""A program's share of a dataset, shard by shard or record by record."""

from typing import Any, Optional, Union

from elasticai_api.common.constants import TaskType
from elasticai_api.common.record_index_service import RecordIndexService
from elasticai_api.common.shard_service import DataShardService

__all__ = ["DataShardService", "RecordIndexService", "build_data_shard_service"]


def build_data_shard_service(
    batch_size: int,
    num_epochs: Optional[int] = None,
    dataset_size: Optional[int] = None,
    shuffle: bool = False,
    shuffle_shards: bool = False,
    task_type: Union[int, str] = TaskType.TRAINING,
    num_minibatches_per_shard: int = 0,
    dataset_name: Optional[str] = None,
    remainder: Optional[str] = None,
    master_client: Optional[Any] = None,
) -> DataShardService:
    """Registers a dataset with the job and returns this process's share of it.

    Args:
        batch_size: records in a step; what `report_batch_done()` counts by default.
        num_epochs: how often each record is handed out; 0 or less: without end. Without it (or
            without dataset_size) nothing is registered, and some other worker has to.
        dataset_size: number of records. They are numbered from 0; a shard is a range of them.
        shuffle, shuffle_shards: either hands out the shards in random order. (For random order
            of records use RecordIndexService.)
        task_type: "training", "evaluation" or "prediction", or a TaskType.
        num_minibatches_per_shard: batches in a shard. 0: as the job's --num_minibatches_per_task
            says; 8 without a master.
        dataset_name: all processes that say the same name share the data. Who registers it first
            decides about it.
        remainder: accepted for programs written for elasticai_api 1.4; every record is handed
            out, whatever it says.
        master_client: where the shards come from; by default the master in the environment.
    """
    return DataShardService(
        batch_size=batch_size,
        num_epochs=num_epochs,
        dataset_size=dataset_size,
        shuffle=shuffle,
        shuffle_shards=shuffle_shards,
        task_type=task_type,
        num_minibatches_per_shard=num_minibatches_per_shard,
        dataset_name=dataset_name,
        master_client=master_client,
        remainder=remainder,
    )
