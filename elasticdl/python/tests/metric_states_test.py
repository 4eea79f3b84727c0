"""Metrics of an evaluation that several workers compute in parts."""

import numpy as np
import pytest
import tensorflow as tf

from elasticdl.model.errors import ModelError
from elasticdl.worker.metric_states import MetricStates

LABELS = np.array([0, 1, 1, 0, 1, 1, 0, 1, 0, 1])[:, np.newaxis]
OUTPUTS = np.array([0.1, 0.8, 0.4, 0.3, 0.9, 0.35, 0.6, 0.7, 0.2, 0.55],
                   np.float32)[:, np.newaxis]


class SortedGap(tf.keras.metrics.Metric):
    """A metric of a user whose state cannot be summed."""

    def __init__(self):
        super().__init__(name="gap")
        self.seen = []

    def update_state(self, labels, outputs, sample_weight=None):
        self.seen.extend(np.asarray(outputs).ravel().tolist())

    def result(self):
        return tf.constant(max(np.diff(sorted(self.seen))))

    def reset_state(self):
        self.seen = []


def merged(make, cuts=(3, 7)):
    """The results of `make()` when three workers evaluate a part each."""
    whole = MetricStates(make(), "eval_metrics_fn()")
    for labels, outputs in zip(np.split(LABELS, cuts), np.split(OUTPUTS, cuts)):
        part = MetricStates(make(), "eval_metrics_fn()")
        part.update(labels, outputs)
        whole.add(part.save())
    return whole.results()


@pytest.mark.parametrize("metric", [
    tf.keras.metrics.AUC, tf.keras.metrics.BinaryAccuracy, tf.keras.metrics.Precision,
    tf.keras.metrics.MeanSquaredError, SortedGap])
def test_merged_parts_equal_the_whole(metric):
    whole = metric()
    whole.update_state(LABELS, OUTPUTS)
    assert merged(lambda: {"m": metric()})["m"] == pytest.approx(float(whole.result()), rel=1e-6)


def test_a_function_is_averaged_over_records():
    each = lambda labels, outputs: tf.abs(tf.cast(labels, tf.float32) - outputs)  # noqa: E731
    mean = lambda labels, outputs: tf.reduce_mean(each(labels, outputs))  # noqa: E731
    expected = float(np.abs(LABELS - OUTPUTS).mean())
    results = merged(lambda: {"each": each, "mean": mean})
    assert results["each"] == pytest.approx(expected)
    assert results["mean"] == pytest.approx(expected)


def test_metrics_of_several_outputs():
    metrics = MetricStates({"logits": {"auc": tf.keras.metrics.AUC()},
                            "probs": {"accuracy": tf.keras.metrics.BinaryAccuracy()}}, "f()")
    metrics.update(LABELS, {"logits": OUTPUTS, "probs": OUTPUTS})
    results = metrics.results()
    assert set(results) == {"logits", "probs"}
    assert results["probs"]["accuracy"] == pytest.approx(0.7)


def test_an_unknown_output_is_named():
    metrics = MetricStates({"nothing": {"auc": tf.keras.metrics.AUC()}}, "f()")
    with pytest.raises(ModelError, match="output 'nothing'; the model has the outputs logits"):
        metrics.update(LABELS, {"logits": OUTPUTS})


def test_a_metric_that_is_neither_a_function_nor_a_metric_is_named():
    with pytest.raises(ModelError, match="metric 'accuracy' is a str"):
        MetricStates({"accuracy": "accuracy"}, "f()")
