"""Common code of the Estimator models: their records are shards from the job's master."""

import os
import tempfile
from typing import Any, Callable, Iterator, Optional

import tensorflow.compat.v1 as tf

from elasticai_api.common.data_shard_service import DataShardService, build_data_shard_service
from elasticai_api.tensorflow.hooks import ElasticDataShardReportHook, ElasticMetricsReportHook
from elasticai_api.tensorflow.recovery import keep_what_the_ps_has, look_for_the_chief_every


class ShardedInput:
    """A training input whose records the master divides among the workers of the job.

    The service is built when TensorFlow builds the input. Only processes that train do this, so the
    ps and the evaluator, which run the same program, get no shards.
    """

    def __init__(
        self,
        dataset_name: str,
        dataset_size: int,
        read: Callable[[int], Any],
        batch_size: int,
        num_epochs: int,
        batches_per_shard: int,
    ):
        """`read` returns the record of an index, in the form that from_generator expects."""
        self._dataset_name = dataset_name
        self._dataset_size = dataset_size
        self._read = read
        self._batch_size = batch_size
        self._num_epochs = num_epochs
        self._batches_per_shard = batches_per_shard
        self.service: Optional[DataShardService] = None

    def records(self, output_types: Any, output_shapes: Any) -> tf.data.Dataset:
        """The records of this worker's shards, in the order of the shards."""
        self.service = build_data_shard_service(
            batch_size=self._batch_size,
            num_epochs=self._num_epochs,
            dataset_size=self._dataset_size,
            num_minibatches_per_shard=self._batches_per_shard,
            dataset_name=self._dataset_name,
        )
        return tf.data.Dataset.from_generator(self._generate, output_types, output_shapes)

    def hooks(self) -> list:
        return [ElasticDataShardReportHook(lambda: self.service), ElasticMetricsReportHook()]

    def _generate(self) -> Iterator[Any]:
        # TensorFlow calls this again for each new session.
        for shard in self.service.shards():
            for index in shard.records():
                yield self._read(index)


def run_config(model_dir: str, save_checkpoints_steps: int) -> Any:
    """The config of asynchronous training on the cluster in TF_CONFIG, without start delays."""
    look_for_the_chief_every(1.0)
    keep_what_the_ps_has()
    return tf.estimator.RunConfig(
        model_dir=model_dir,
        save_checkpoints_steps=save_checkpoints_steps,
        log_step_count_steps=50,
        # With fewer checkpoints, a slow evaluator may find that its checkpoint was removed.
        keep_checkpoint_max=20,
        experimental_max_worker_delay_secs=0,
    )


def scratch_dir(model: str) -> str:
    """The folder for checkpoints without a data directory, the same for all replicas of a job."""
    job = os.environ.get("ELASTICDL_JOB_NAME", "no-job")
    return os.path.join(tempfile.gettempdir(), f"elasticdl-{os.getuid()}", job, model)
