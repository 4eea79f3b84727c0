"""Evaluates shards, and merges the metrics of an evaluation."""

from __future__ import annotations

import json
import math
from typing import Any

from elasticai_api.common.errors import MasterError
from elasticdl.model.errors import ModelError
from elasticdl.model.ps_model import PsModel
from elasticdl.parameter_client import ParameterClient
from elasticdl.worker.clocks import Stopwatch
from elasticdl.worker.metric_states import MetricStates
from elasticdl.worker.shard_input import ShardBatches

# The largest result of a shard that the master accepts.
_MOST_BYTES = 3 << 20


class Inference:
    """Runs the model on batches, with the parameters as they are at the servers. It creates no
    rows."""

    def __init__(self, client: ParameterClient, model: PsModel, mode: str,
                 stopwatch: Stopwatch) -> None:
        """mode: "evaluation" or "prediction", for which the model was compiled."""
        self._mode = mode
        self._client = client
        self._model = model
        self._clock = stopwatch

    def pull_tensors(self) -> None:
        """Pulls the dense tensors. Call this before the first batch of a shard."""
        with self._clock.measure("pull"):
            self._model.assign(self._client.pull_tensors(self._model.tensors))

    def outputs(self, features: Any) -> Any:
        ids = self._model.ids_of(features, self._mode)
        rows = {}
        if ids:
            with self._clock.measure("pull"):
                pulled = self._client.prefetch(ids, create=False)
                taken, unique = pulled.result(), pulled.ids()
            rows = {table: (unique[table], *taken[table]) for table in taken}
        with self._clock.measure("forward"):
            return self._model.forward(features, rows, self._mode)


class ShardEvaluation:
    """Computes the states of the metrics for the records of a shard."""

    def __init__(self, inference: Inference, metrics: MetricStates) -> None:
        self._inference = inference
        self._metrics = metrics

    def evaluate(self, batches: ShardBatches) -> bytes:
        """The states, as the result of the shard."""
        self._inference.pull_tensors()
        self._metrics.reset()
        index = 0
        while (batch := batches.get(index)) is not None:
            features, labels = batch
            self._metrics.update(labels, self._inference.outputs(features))
            index += 1
            batches.release(index)
        saved = self._metrics.save()
        if len(saved) > _MOST_BYTES:
            raise ModelError(
                f"the states of the metrics of a shard have {len(saved)} bytes; the master accepts "
                f"{_MOST_BYTES}. Lower --num_minibatches_per_task, or use metrics of tf.keras "
                "instead of own classes, which keep all outputs")
        return saved


def merge_evaluation(master: Any, metrics: MetricStates) -> bytes:
    """Merges the results of the open evaluation. Returns the result of the merge: JSON with the
    metrics, and their text for the master's log. MasterError: the evaluation was started again."""
    state = master.get_dataset("evaluation")
    if not state.finished:
        raise MasterError("the evaluation is not complete: it was started again")
    metrics.reset()
    for _, saved in master.get_results("evaluation", state.generation):
        metrics.add(saved)
    results = metrics.results()
    return json.dumps({"text": str(_rounded(results)), "metrics": _finite(results)}).encode()


def metrics_of(merged: bytes) -> dict[str, float]:
    """The metrics of `merge_evaluation` by a flat name, such as `output/auc`."""
    flat: dict[str, float] = {}
    for name, value in json.loads(merged)["metrics"].items():
        inner = value if isinstance(value, dict) else {"": value}
        for part, number in inner.items():
            if isinstance(number, (int, float)):
                flat[f"{name}/{part}" if part else name] = number
    return flat


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.6g}") if math.isfinite(value) else value


def _finite(value: Any) -> Any:
    """A number that is not finite becomes null, because JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value if math.isfinite(value) else None

