"""What a training program needs of an ElasticDL job: its share of the data, and its peers.

    from elasticai_api.common.data_shard_service import build_data_shard_service

    shards = build_data_shard_service(
        batch_size=64, num_epochs=3, dataset_size=len(rows), dataset_name="rows")
    for shard in shards.shards():
        for batch in batches(rows[shard.start:shard.end]):
            train(batch)
            shards.report_batch_done(len(batch))

Inside a job the shards come from the job's master, so that each record of each epoch is trained
by one worker, whatever dies meanwhile. Without a master (no MASTER_ADDR in the environment) the
same program runs alone, in *local mode*, for debugging.
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
