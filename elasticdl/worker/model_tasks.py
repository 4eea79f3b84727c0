"""What a worker does with its model: train, evaluate, merge metrics, predict, export."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from elasticai_api.common.shard import Shard
from elasticdl.layers.lookup import set_pull_function
from elasticdl.model.errors import ModelError
from elasticdl.model.large_embeddings import move_large_embeddings
from elasticdl.model.model_spec import ModelSpec
from elasticdl.model.ps_model import PsModel
from elasticdl.parameter_client import OpenedShard, ParameterClient, ParameterError
from elasticdl.worker.arguments import Arguments
from elasticdl.worker.clocks import Stopwatch
from elasticdl.worker.evaluation import Inference, ShardEvaluation, merge_evaluation, metrics_of
from elasticdl.worker.export import export_model
from elasticdl.worker.metric_states import MetricStates
from elasticdl.worker.prediction import ShardPrediction
from elasticdl.worker.shard_input import ShardBatches, ShardFeed, random_state
from elasticdl.worker.summaries import Summaries
from elasticdl.worker.training import ShardTraining, TrainingOptions


class ModelTasks:
    """Makes the model when it is first needed, declares its parameters at the servers, and does the
    work of shards with it. Use it from one thread."""

    def __init__(self, arguments: Arguments, spec: ModelSpec, client: ParameterClient, master: Any,
                 feeds: dict[str, ShardFeed], stopwatch: Stopwatch) -> None:
        self._arguments = arguments
        self._spec = spec
        self._client = client
        self._master = master
        self._feeds = feeds
        self._clock = stopwatch
        self._worker_id = int(os.environ.get("WORKER_ID", "0"))
        self._model: Optional[PsModel] = None
        self._keras_model: Optional[tf.keras.Model] = None
        self._training: Optional[ShardTraining] = None
        self._evaluation: Optional[ShardEvaluation] = None
        self._prediction: Optional[ShardPrediction] = None
        self._callbacks: list[Any] = []
        self._summaries = Summaries(arguments.tensorboard_log_dir, self._worker_id)
        self._leaving = False

    def leave(self) -> None:
        """Makes `train` return after the present batch. May be called from a signal handler."""
        self._leaving = True
        if self._training is not None:
            self._training.leaving = True

    def close(self) -> None:
        """Call this when the worker has no more work."""
        for callback in self._callbacks:
            callback.on_train_end()
        self._summaries.close()

    def train(self, shard: Shard, batches: ShardBatches, ps_epoch: int,
              first_step: int) -> Optional[OpenedShard]:
        """See ShardTraining.train."""
        return self._trainer().train(shard, batches, ps_epoch, first_step, self._master.holds)

    def evaluate(self, shard: Shard, batches: Optional[ShardBatches]) -> bytes:
        """The states of the metrics."""
        assert batches is not None
        if self._evaluation is None:
            self._evaluation = ShardEvaluation(self._inference("evaluation"), self._metrics())
        return self._evaluation.evaluate(batches)

    def merge(self, shard: Shard) -> bytes:
        """The metrics of an evaluation, as JSON."""
        merged = merge_evaluation(self._master, self._metrics())
        self._summaries.add_evaluation(shard.version, metrics_of(merged))
        return merged

    def predict(self, shard: Shard, batches: Optional[ShardBatches]) -> None:
        assert batches is not None
        if self._prediction is None:
            self._prediction = ShardPrediction(
                self._inference("prediction"), self._spec.make_processor(),
                self._prediction_folder(), self._worker_id)
        self._prediction.predict(shard, batches)

    def export(self) -> None:
        model = self._built()
        assert self._keras_model is not None
        with self._clock.measure("export"):
            export_model(model, self._keras_model, self._client, self._arguments.output,
                         self._ids_of_table)

    # --- parts ---

    def _built(self) -> PsModel:
        """The model, with its parameters declared."""
        if self._model is not None:
            return self._model
        first = {feed.mode: _first_batch(feed) for feed in self._feeds.values()}
        with random_state:
            if self._arguments.seed:
                tf.keras.utils.set_random_seed(self._arguments.seed)
            self._keras_model = self._spec.make_model()
            optimizer = self._spec.make_optimizer()
            model = PsModel(move_large_embeddings(self._keras_model), self._spec.loss, optimizer,
                            self._spec.file.path, self._arguments.get_model_steps > 1)
            model.build(next(iter(first.values()))[0])
        for feed in self._feeds.values():
            model.compile(feed.mode, *feed.split(first[feed.mode][1]))
        # Not the job's seed: servers keep the seed of rows with a checkpoint, and a job that starts
        # with the checkpoint of another one has to declare the same.
        self._client.declare(**model.declaration(seed=0))
        set_pull_function(lambda table, ids: self._client.pull(table, ids, create=False))
        self._model = model
        return model

    def _trainer(self) -> ShardTraining:
        if self._training is None:
            model = self._built()
            self._start_callbacks(model)
            options = TrainingOptions(
                in_flight=2 if self._arguments.use_async else 1,
                prefetch=self._arguments.use_async, pull_every=self._arguments.get_model_steps,
                log_every=max(1, self._arguments.log_loss_steps))
            self._training = ShardTraining(self._client, model, options, self._clock,
                                           self._on_batch, self._on_loss)
            self._training.leaving = self._leaving
        return self._training

    def _start_callbacks(self, model: PsModel) -> None:
        self._callbacks = self._spec.make_callbacks()
        model.model.optimizer = model.optimizer
        for callback in self._callbacks:
            if not isinstance(callback, tf.keras.callbacks.Callback):
                raise ModelError(f"{self._spec.file.path}: callbacks() returned a "
                                 f"{type(callback).__name__}; expected objects of "
                                 "tf.keras.callbacks.Callback")
            callback.set_params({"batch_size": self._arguments.minibatch_size,
                                 "saved_model_path": self._arguments.output,
                                 "checkpoint_path": None})
            callback.set_model(model.model)
            callback.on_train_begin()

    def _on_batch(self, step: int) -> None:
        for callback in self._callbacks:
            callback.on_train_batch_begin(step)

    def _on_loss(self, step: int, loss: float) -> None:
        self._summaries.add_loss(step, loss)
        metrics = {f"time.{name}": share for name, share in self._clock.shares().items()}
        if np.isfinite(loss):
            metrics["loss"] = loss
        self._master.report_metrics(step, metrics)

    def _metrics(self) -> MetricStates:
        return MetricStates(self._spec.make_metrics(), f"{self._spec.file.path}: eval_metrics_fn()")

    def _inference(self, mode: str) -> Inference:
        return Inference(self._client, self._built(), mode, self._clock)

    def _prediction_folder(self) -> str:
        job_dir = os.environ.get("ELASTICDL_JOB_DIR")
        return self._arguments.output or (os.path.join(job_dir, "predictions") if job_dir else "")

    def _ids_of_table(self, table: str) -> np.ndarray:
        """The ids of a table without input_dim, from the last checkpoint: it contains all of the
        training before a model is exported."""
        from elasticdl.native_module import _native

        folder = os.environ.get("ELASTICDL_CHECKPOINTS")
        if not folder:
            raise ModelError(f"table {table!r} cannot be exported: its layer has no input_dim, and "
                             "this job has no folder for checkpoints; give --checkpoint_dir, or "
                             "set input_dim of the layer")
        try:
            return _native.read_table_ids(_native.newest_checkpoint(folder), table)
        except ParameterError as error:
            raise ModelError(f"table {table!r} cannot be exported: its layer has no input_dim, and "
                             f"its ids cannot be read from a checkpoint: {error}") from error


def _first_batch(feed: ShardFeed) -> tuple[Any, Any]:
    """Features of some records, and the spec of the elements of a fed dataset."""
    shard = Shard(feed.mode, 0, min(feed.records.size, 8))
    dataset = feed.dataset_of(shard)
    feed.check_elements(dataset.element_spec)
    for features, _ in feed.batches(shard):
        return features, dataset.element_spec
    raise ModelError(f"{feed.where} returned no element for the first {shard.size} records")
