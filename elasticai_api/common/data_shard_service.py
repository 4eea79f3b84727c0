"""A program's part of a dataset, shard by shard or record by record."""

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
    """Registers a dataset with the job. Returns the service that hands out its shards.

    Args:
        batch_size: the number of records in a step; `report_batch_done()` counts it by default.
            None or 0: the job's --minibatch_size.
        num_epochs: how often each record is handed out. -1: without end. None or 0: the job's
            --num_epochs.
        dataset_size: the number of records. They are numbered from 0; a shard is a range of them.
            Without it nothing is registered, and another worker has to register the dataset.
        shuffle, shuffle_shards: either of them hands out the shards in random order. (For a random
            order of records, use RecordIndexService.)
        task_type: "training", "evaluation" or "prediction", or a TaskType.
        num_minibatches_per_shard: the number of batches in a shard. 0: the job's
            --num_minibatches_per_task, or 8 without a master.
        dataset_name: all processes with the same name share the data. The first registration of a
            name determines the dataset.
        remainder: accepted for programs for elasticai_api 1.4, without effect: every record is
            handed out.
        master_client: the source of the shards; by default the master in the environment.
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
