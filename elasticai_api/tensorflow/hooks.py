"""Session hooks that report to the job what an Estimator (or any MonitoredSession) has trained."""

import time
from typing import Any, Callable, Optional, Union

import tensorflow.compat.v1 as tf

from elasticai_api.common.master_client import build_master_client
from elasticai_api.common.shard_service import DataShardService
from elasticai_api.util.log_utils import default_logger as logger


class ElasticDataShardReportHook(tf.train.SessionRunHook):
    """Reports a batch after each step, and keeps the count correct when sessions are recreated.

    Pass it to a training whose input uses `data_shard_service`:

        estimator.train(input_fn, hooks=[ElasticDataShardReportHook(data_shard_service)])

    - Each step counts as one batch of the service's batch size. A last batch that is shorter is
      counted correctly, because no more records are counted than were fetched.
    - When TensorFlow creates a new session (after the loss of a ps or of the chief), the input
      pipeline restarts and loses the records that it had fetched. Their shards are given back and
      not counted as trained. Steps after TensorFlow's last checkpoint are lost to TensorFlow
      nevertheless.
    - When training ends because the input has ended, all fetched records were trained and are
      counted, with any batch size. With `batch(..., drop_remainder=True)` this is not true: then
      pass drop_remainder=True. The last few records are handed out again, and the job reports them
      as not trained if no worker can use them.
    - When training ends for another reason (`max_steps`), the hook declares the end of training
      (`finish`), so the job may succeed although data is left.

    Counting cannot tell which records are in a shuffle buffer. If a process is killed, shards that
    are counted as trained may include records that were still in its buffer.

    Errors in reporting are logged and not raised; the next report includes the one that failed.

    `data_shard_service` may also be a function that returns the service, or None while there is no
    service. So a program can build the service together with its training input, and the ps and the
    evaluator, which run the same program, never use the data.
    """

    def __init__(
        self,
        data_shard_service: Union[DataShardService, Callable[[], Optional[DataShardService]]],
        drop_remainder: bool = False,
    ):
        self._find = data_shard_service if callable(data_shard_service) else (
            lambda: data_shard_service
        )
        self._drop_remainder = drop_remainder
        self._sessions = 0
        self._in_run = False

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._sessions += 1
        self._in_run = False
        if self._sessions > 1:
            self._try("start_over")

    def before_run(self, run_context: Any) -> None:
        self._in_run = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._in_run = False
        self._try("report_batch_done")

    def end(self, session: Any) -> None:
        # If the last run did not return, it reached the end of the input. If it returned, training
        # stopped for another reason, with records still in the pipeline.
        if self._in_run:
            self._try("report_data_end", self._drop_remainder)
        else:
            self._try("finish")

    def _try(self, report: str, *args: Any) -> None:
        service = self._find()
        try:
            if service is not None:
                getattr(service, report)(*args)
        except Exception:  # an error in reporting must not end the training
            logger.exception("%s failed", report)


class ElasticMetricsReportHook(tf.train.SessionRunHook):
    """Sends the global step and the loss to the master every few seconds, for `elasticdl
    status`."""

    def __init__(self, every_secs: float = 2.0, master_client: Optional[Any] = None):
        self._every_secs = every_secs
        self._mc = master_client or build_master_client()
        self._next = 0.0
        self._wanted: dict = {}

    def begin(self) -> None:
        self._wanted = {"step": tf.train.get_or_create_global_step()}
        losses = tf.get_collection(tf.GraphKeys.LOSSES)
        if losses:  # an Estimator adds the total loss last
            self._wanted["loss"] = losses[-1]

    def before_run(self, run_context: Any) -> Optional[Any]:
        if time.monotonic() < self._next:
            return None
        return tf.train.SessionRunArgs(self._wanted)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        got = run_values.results
        if not got:
            return
        self._next = time.monotonic() + self._every_secs
        metrics = {"loss": got["loss"]} if "loss" in got else {}
        self._mc.report_metrics(got["step"], metrics)
