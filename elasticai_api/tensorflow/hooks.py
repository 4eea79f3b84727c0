"""Session hooks that tell the job what an Estimator (or any MonitoredSession) has trained."""

import time
from typing import Any, Callable, Optional, Union

import tensorflow.compat.v1 as tf

from elasticai_api.common.master_client import build_master_client
from elasticai_api.common.shard_service import DataShardService
from elasticai_api.util.log_utils import default_logger as logger


class ElasticDataShardReportHook(tf.train.SessionRunHook):
    """Reports a batch after each step, and keeps the count right when sessions come and go.

    Give it to the training whose input comes from `data_shard_service`:

        estimator.train(input_fn, hooks=[ElasticDataShardReportHook(data_shard_service)])

    - Each step counts as one batch of the service's batch size; a shorter last one is counted
      right, since no more is counted than was fetched.
    - When TensorFlow makes a new session (it lost a ps, or the chief), the input starts over and
      what it had fetched is gone. Those shards are given back, so that they are not counted as
      trained. Steps that were trained after TensorFlow's last checkpoint are lost to TensorFlow
      all the same.
    - When training ends because the input ran out, all that was fetched was trained, and is
      counted, whatever the batch size. With `batch(..., drop_remainder=True)` that is not so:
      then pass drop_remainder=True, and the last few records are handed out again, to be reported
      by the job as not trained if no worker can use them.

    - When training ends for another reason (`max_steps`), the program has ended by its own will:
      the job may succeed with data left.

    By counting alone one cannot know which records are in a shuffle buffer: of a process that is
    killed, shards that count as trained may have records that were still there.

    Trouble in reporting is logged, not raised: a report that failed goes with the next one.

    `data_shard_service` may also be a function that returns the service, or None as long as there
    is none. So a program can build the service where its training input is built, and the ps and
    the evaluator, which run the same program, never touch the data.
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
        # A run that was begun and did not return met the end of the input; if the last one did
        # return, training stopped for another reason, with records still in the pipeline.
        if self._in_run:
            self._try("report_data_end", self._drop_remainder)
        else:
            self._try("finish")

    def _try(self, report: str, *args: Any) -> None:
        service = self._find()
        try:
            if service is not None:
                getattr(service, report)(*args)
        except Exception:  # whatever it is, it must not end the training
            logger.exception("%s failed", report)


class ElasticMetricsReportHook(tf.train.SessionRunHook):
    """Tells the master the global step and the loss every few seconds, to be shown."""

    def __init__(self, every_secs: float = 2.0, master_client: Optional[Any] = None):
        self._every_secs = every_secs
        self._mc = master_client or build_master_client()
        self._next = 0.0
        self._wanted: dict = {}

    def begin(self) -> None:
        self._wanted = {"step": tf.train.get_or_create_global_step()}
        losses = tf.get_collection(tf.GraphKeys.LOSSES)
        if losses:  # an Estimator puts the whole loss last
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
