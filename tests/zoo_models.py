"""Trains and evaluates a model file with plain Keras, by the functions that ElasticDL calls."""

import importlib
import struct
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import tensorflow as tf

from elasticdl.data_gen.__main__ import main as generate
from elasticdl.python.common.constants import Mode


class ZooModel:
    """A model of the zoo and a part of its dataset; with `csv`, the dataset as CSV files."""

    def __init__(self, model_def: str, dataset: str, fraction: float, csv: bool = False):
        self.module_name, _, self.function = model_def.rpartition(".")
        self.dataset = dataset
        self.fraction = fraction
        self.csv = csv

    @property
    def module(self) -> Any:
        return importlib.import_module(self.module_name)

    def make(self) -> tf.keras.Model:
        tf.keras.utils.set_random_seed(1)
        return getattr(self.module, self.function)()

    def records(self, folder: Path, part: str) -> List[bytes]:
        """Generates the dataset in `folder` if it is not there. A record is what a reader reads."""
        folder = folder / f"{self.dataset}-{self.fraction}"
        if not folder.exists():
            assert generate([self.dataset, str(folder), f"--fraction={self.fraction}"]) == 0
        if self.csv:
            return (folder / f"{part}.csv").read_bytes().splitlines(keepends=True)
        return [record for file in sorted((folder / part).iterdir())
                for record in uncompressed_records(file.read_bytes())]

    def feed(self, records: List[bytes], mode: str) -> tf.data.Dataset:
        return self.module.feed(tf.data.Dataset.from_tensor_slices(records), mode, None)

    def train(self, records: List[bytes], steps: int, batch_size: int = 64) -> tf.keras.Model:
        model = self.make()
        model.optimizer = self.module.optimizer()
        callbacks = getattr(self.module, "callbacks", list)()
        for callback in callbacks:
            callback.set_model(model)

        @tf.function(reduce_retracing=True)
        def step(features, labels):
            with tf.GradientTape() as tape:
                outputs = model(features, training=True)
                loss = self.module.loss(labels, outputs)
                total = tf.add_n([loss, *model.losses]) if model.losses else loss
            gradients = tape.gradient(total, model.trainable_variables)
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        # A small last batch of an epoch would disturb batch normalization.
        batches = self.feed(records, Mode.TRAINING).repeat().batch(batch_size).take(steps)
        for version, (features, labels) in enumerate(batches):
            for callback in callbacks:
                callback.on_train_batch_begin(version)
            loss = step(features, labels)
            assert loss.shape == () and np.isfinite(loss.numpy())
        return model

    def evaluate(self, model: tf.keras.Model, records: List[bytes]) -> Dict[str, float]:
        """The metrics by name, with the name of the output before it if there are several."""
        metrics = flat(self.module.eval_metrics_fn())
        functions = {name: [] for name in metrics}
        for features, labels in self.feed(records, Mode.EVALUATION).batch(256):
            outputs = model(features, training=False)
            for name, metric in metrics.items():
                output, _, _ = name.rpartition("/")
                predictions = outputs[output] if output else outputs
                if isinstance(metric, tf.keras.metrics.Metric):
                    metric.update_state(labels, predictions)
                else:
                    functions[name].append(np.asarray(metric(labels, predictions), np.float32))
        return {name: float(metric.result()) if isinstance(metric, tf.keras.metrics.Metric)
                else float(np.concatenate(functions[name]).mean())
                for name, metric in metrics.items()}

    def predict(self, model: tf.keras.Model, records: List[bytes]) -> Any:
        (features,) = self.feed(records, Mode.PREDICTION).batch(len(records))
        return model(features, training=False)


def flat(metrics: Dict[str, Any]) -> Dict[str, Any]:
    """{output: {metric: m}} as {"output/metric": m}."""
    return {f"{output}/{name}" if isinstance(value, dict) else output: metric
            for output, value in metrics.items()
            for name, metric in (value if isinstance(value, dict) else {"": value}).items()}


def uncompressed_records(data: bytes) -> List[bytes]:
    records, at = [], 0
    while at < len(data):
        _, _, compressor, size, _ = struct.unpack_from("<5I", data, at)
        assert compressor == 0
        at += 20
        end = at + size
        while at < end:
            (length,) = struct.unpack_from("<I", data, at)
            records.append(data[at + 4:at + 4 + length])
            at += 4 + length
    return records


MODELS = {
    "mnist (tutorial 5)": ZooModel(
        "model_zoo.mnist_functional_api.mnist_functional_api.custom_model", "mnist", 0.1),
    "mnist functional": ZooModel("model_zoo.mnist.mnist_functional_api.custom_model", "mnist", 0.1),
    "mnist subclass": ZooModel("model_zoo.mnist.mnist_subclass.CustomModel", "mnist", 0.1),
    "mnist (tutorial 4)": ZooModel(
        "elasticdl.python.examples.mnist_functional_api.custom_model", "mnist", 0.1),
    "cifar10": ZooModel("model_zoo.cifar10.cifar10_functional_api.custom_model", "cifar10", 0.05),
    "deepfm": ZooModel(
        "model_zoo.deepfm_functional_api.deepfm_functional_api.custom_model", "frappe", 0.2),
    "deepfm edl": ZooModel(
        "model_zoo.deepfm_edl_embedding.deepfm_edl_embedding.custom_model", "frappe", 0.2),
    "wdl": ZooModel("model_zoo.deepctr.wdl.custom_model", "criteo", 0.2),
    "census": ZooModel(
        "model_zoo.census_wide_deep_model.census_wide_deep.custom_model", "census", 0.2),
    "heart": ZooModel(
        "model_zoo.heart_functional_api.heart_functional_api.custom_model", "heart", 1.0),
    "iris": ZooModel("model_zoo.iris.iris_functional_api.custom_model", "iris", 1.0, csv=True),
}
