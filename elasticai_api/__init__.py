"""A training program's interface to its ElasticDL job: data shards, barriers and locks.

    from elasticai_api.common.data_shard_service import build_data_shard_service

    shards = build_data_shard_service(
        batch_size=64, num_epochs=3, dataset_size=len(rows), dataset_name="rows")
    for shard in shards.shards():
        for batch in batches(rows[shard.start:shard.end]):
            train(batch)
            shards.report_batch_done(len(batch))

In a job, the job's master hands out the shards, so each record of each epoch is counted once, even
if processes are lost meanwhile. Without a master (no MASTER_ADDR in the environment) the same
program runs alone, on all the data, in *local mode*.
"""

from elasticai_api.common.errors import MasterError
from elasticai_api.common.synchronization import (
    delete_all_worker_sync,
    delete_worker_sync,
    wait_worker_sync,
    worker_sync,
)

__version__ = "2.0.0"

__all__ = [
    "MasterError",
    "delete_all_worker_sync",
    "delete_worker_sync",
    "wait_worker_sync",
    "worker_sync",
]
