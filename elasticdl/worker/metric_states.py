"""Metrics of an evaluation that many workers compute: their states, and how states are merged."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional, Union

import numpy as np
import tensorflow as tf

from elasticdl.model.errors import ModelError, summary_of

Metrics = Mapping[str, Any]


class MetricStates:
    """The metrics of eval_metrics_fn(): {metric: ...}, or {output: {metric: ...}}.

    A metric is a function f(labels, outputs), whose values are averaged over all records, or a
    tf.keras.metrics.Metric. The states of Keras's own metrics are sums, so they are merged by
    addition. A metric that the user derived from Metric is only known to be correct for all records
    together: for those the raw outputs and labels are kept, and the merge computes the metric.
    Use it from one thread.
    """

    def __init__(self, metrics: Metrics, where: str) -> None:
        """where: file and symbol of eval_metrics_fn(), for errors."""
        self._where = where
        self._nested = all(isinstance(metric, Mapping) for metric in metrics.values())
        self._metrics: dict[tuple[Optional[str], str], _Metric] = {}
        for name, metric in metrics.items():
            if isinstance(metric, Mapping):
                for inner, value in metric.items():
                    self._metrics[str(name), str(inner)] = self._of(value, f"{name}/{inner}")
            else:
                self._metrics[None, str(name)] = self._of(metric, str(name))

    def _of(self, metric: Any, name: str) -> _Metric:
        if isinstance(metric, tf.keras.metrics.Metric):
            return _Summed(metric) if _is_summed(metric) else _Raw(metric)
        if callable(metric):
            return _Averaged(metric)
        raise ModelError(f"{self._where}: metric {name!r} is a {type(metric).__name__}; expected a "
                         "function f(labels, outputs) or a tf.keras.metrics.Metric")

    def reset(self) -> None:
        for metric in self._metrics.values():
            metric.reset()

    def update(self, labels: Any, outputs: Any) -> None:
        """Adds a batch."""
        for (output, name), metric in self._metrics.items():
            try:
                metric.update(self._part(labels, output, "labels"),
                              self._part(outputs, output, "outputs"))
            except ModelError:
                raise
            except Exception as error:
                raise ModelError(f"{self._where}: metric {name!r} failed: {summary_of(error)}"
                                 ) from error

    def _part(self, value: Any, output: Optional[str], what: str) -> Any:
        if output is None:
            return value
        if isinstance(value, Mapping):
            if output in value:
                return value[output]
            if what == "outputs":
                raise ModelError(f"{self._where}: there are metrics of an output {output!r}; the "
                                 f"model has the outputs {', '.join(map(str, value))}")
        return value  # one set of labels for all outputs

    def save(self) -> bytes:
        """The states, for the ledger."""
        file = io.BytesIO()
        np.savez(file, **{key: array for key, array in self._arrays()})
        return file.getvalue()

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        for number, metric in enumerate(self._metrics.values()):
            for part, array in enumerate(metric.state()):
                yield f"{number}.{part}", array

    def add(self, saved: bytes) -> None:
        """Adds states that `save` returned. ValueError: they are of other metrics."""
        with np.load(io.BytesIO(saved), allow_pickle=False) as arrays:
            for number, metric in enumerate(self._metrics.values()):
                parts = sorted((name for name in arrays.files if name.split(".")[0] == str(number)),
                               key=lambda name: int(name.split(".")[1]))
                metric.add([arrays[name] for name in parts])

    def results(self) -> dict[str, Any]:
        """{metric: number}, or {output: {metric: number}}. A metric with several values is a
        list."""
        results: dict[str, Any] = {}
        for (output, name), metric in self._metrics.items():
            place = results if output is None else results.setdefault(output, {})
            place[name] = _plain(metric.result())
        return results


class _Summed:
    """A metric of Keras, whose variables are sums over records."""

    def __init__(self, metric: tf.keras.metrics.Metric) -> None:
        self._metric = metric
        self._added: Optional[list[np.ndarray]] = None

    def reset(self) -> None:
        self._metric.reset_state()
        self._added = None

    def update(self, labels: Any, outputs: Any) -> None:
        if isinstance(self._metric, (tf.keras.metrics.Mean, tf.keras.metrics.Sum)) and not hasattr(
                self._metric, "_fn"):
            self._metric.update_state(outputs)
        else:
            self._metric.update_state(labels, outputs)

    def state(self) -> list[np.ndarray]:
        return [variable.numpy() for variable in self._metric.variables]

    def add(self, state: list[np.ndarray]) -> None:
        self._added = state if self._added is None else [
            ours + theirs for ours, theirs in zip(self._added, state)]

    def result(self) -> Any:
        if self._added is not None:
            for variable, value in zip(self._metric.variables, self._added):
                variable.assign(value)
        return self._metric.result().numpy()


class _Averaged:
    """The average of a function over all records."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.reset()

    def reset(self) -> None:
        self._sum, self._count = 0.0, 0.0

    def update(self, labels: Any, outputs: Any) -> None:
        values = np.asarray(tf.convert_to_tensor(self._function(labels, outputs)), np.float64)
        if values.ndim == 0:  # an average of the batch
            size = float(_batch_size(outputs))
            self._sum, self._count = self._sum + float(values) * size, self._count + size
        else:
            self._sum, self._count = self._sum + float(values.sum()), self._count + values.size

    def state(self) -> list[np.ndarray]:
        return [np.array([self._sum, self._count])]

    def add(self, state: list[np.ndarray]) -> None:
        self._sum, self._count = self._sum + state[0][0], self._count + state[0][1]

    def result(self) -> Any:
        return self._sum / self._count if self._count else float("nan")


class _Raw:
    """A metric of the user, computed from all outputs."""

    def __init__(self, metric: tf.keras.metrics.Metric) -> None:
        self._metric = metric
        self.reset()

    def reset(self) -> None:
        self._labels: list[np.ndarray] = []
        self._outputs: list[np.ndarray] = []

    def update(self, labels: Any, outputs: Any) -> None:
        self._labels.append(np.asarray(labels))
        self._outputs.append(np.asarray(outputs))

    def state(self) -> list[np.ndarray]:
        if not self._labels:
            return []
        return [np.concatenate(self._labels), np.concatenate(self._outputs)]

    def add(self, state: list[np.ndarray]) -> None:
        if state:
            self._labels.append(state[0])
            self._outputs.append(state[1])

    def result(self) -> Any:
        self._metric.reset_state()
        for labels, outputs in zip(self._labels, self._outputs):
            self._metric.update_state(labels, outputs)
        return self._metric.result().numpy()


_Metric = Union[_Summed, _Averaged, _Raw]


def _is_summed(metric: tf.keras.metrics.Metric) -> bool:
    return type(metric).__module__.startswith(("keras.src.metrics", "keras.metrics"))


def _batch_size(outputs: Any) -> int:
    return int(tf.shape(tf.nest.flatten(outputs)[0])[0])


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array.astype(float).tolist()
