"""What a user's model file defines, checked."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional

from elasticdl.model.errors import ModelError
from elasticdl.model.model_file import ModelFile, call_user


@dataclasses.dataclass
class SymbolNames:
    """The names of the symbols in the model file, from the flags of the same names."""

    feed: str = "feed"
    loss: str = "loss"
    optimizer: str = "optimizer"
    callbacks: str = "callbacks"
    eval_metrics_fn: str = "eval_metrics_fn"
    custom_data_reader: str = "custom_data_reader"
    prediction_outputs_processor: str = "PredictionOutputsProcessor"


class ModelSpec:
    """The functions of a model file. Raises ModelError if one is missing or has another signature.

    Functions that a job does not need are not required: a prediction needs no loss.
    """

    def __init__(self, file: ModelFile, names: SymbolNames, job_type: str) -> None:
        self.file = file
        self._make_model = file.required(file.model_name, "model_def")
        older = names.feed == "feed" and not file.has("feed") and file.has("dataset_fn")
        feed_name = "dataset_fn" if older else names.feed
        self.feed: Callable[..., Any] = file.required(feed_name, "feed", "dataset", "mode",
                                                      "metadata")
        trains = job_type == "training"
        self.loss: Optional[Callable[..., Any]] = None
        self._make_optimizer: Optional[Callable[[], Any]] = None
        if trains:
            self.loss = file.required(names.loss, "loss", "labels", "predictions")
            self._make_optimizer = file.required(names.optimizer, "optimizer")
        else:
            # Servers keep the settings of the optimizer with the parameters of a checkpoint, and
            # all programs have to declare the same.
            self._make_optimizer = file.optional(names.optimizer, "optimizer")
        self._make_metrics = file.optional(names.eval_metrics_fn, "eval_metrics_fn")
        self._make_callbacks = file.optional(names.callbacks, "callbacks") if trains else None
        self._names = names
        self.custom_data_reader = file.optional(names.custom_data_reader, "custom_data_reader",
                                                "data_origin")
        self._processor = (file.optional(names.prediction_outputs_processor,
                                         "prediction_outputs_processor")
                           if job_type == "prediction" else None)

    def make_model(self) -> Any:
        import tensorflow as tf

        symbol = self.file.model_name
        model = call_user(self._make_model, f"{self.file.path}: {symbol}()")
        if not isinstance(model, tf.keras.Model):
            raise ModelError(f"{self.file.path}: {symbol}() returned a {type(model).__name__}; "
                             "expected a tf.keras.Model")
        return model

    def make_optimizer(self) -> Optional[Any]:
        """None: the model file has no optimizer, and the job does not train."""
        if self._make_optimizer is None:
            return None
        return call_user(self._make_optimizer, f"{self.file.path}: {self._names.optimizer}()")

    def make_metrics(self) -> dict[str, Any]:
        """{metric: function or tf.keras.metrics.Metric}, or {output: {metric: ...}}."""
        if self._make_metrics is None:
            raise ModelError(f"{self.file.path}: there is no {self._names.eval_metrics_fn!r}, "
                             "which an evaluation needs; define eval_metrics_fn() that returns a "
                             "dict such as {'accuracy': tf.keras.metrics.BinaryAccuracy()}")
        metrics = call_user(self._make_metrics,
                            f"{self.file.path}: {self._names.eval_metrics_fn}()")
        if not isinstance(metrics, dict) or not metrics:
            raise ModelError(f"{self.file.path}: {self._names.eval_metrics_fn}() returned "
                             f"{metrics!r}; expected a dict of metrics, or a dict of such dicts by "
                             "the name of an output")
        return metrics

    def make_callbacks(self) -> list[Any]:
        if self._make_callbacks is None:
            return []
        return list(call_user(self._make_callbacks, f"{self.file.path}: {self._names.callbacks}()"))

    def make_processor(self) -> Optional[Any]:
        """The user's PredictionOutputsProcessor. None: the model file has none."""
        if self._processor is None:
            return None
        name = self._names.prediction_outputs_processor
        processor = call_user(self._processor, f"{self.file.path}: {name}()")
        if not callable(getattr(processor, "process", None)):
            raise ModelError(f"{self.file.path}: {name} has no method process(predictions, "
                             "worker_id)")
        return processor
