"""CIFAR-10 with a convolutional network, a learning rate that falls, and predictions in files.

    --model_def=cifar10.cifar10_functional_api.custom_model

The data are those of `elasticdl data gen cifar10 OUT`.
"""

import os

import numpy as np
import tensorflow as tf

from elasticdl.python.common.constants import Mode
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler
from elasticdl.python.worker.prediction_outputs_processor import BasePredictionOutputsProcessor


def custom_model():
    layers = tf.keras.layers
    image = tf.keras.Input((32, 32, 3), name="image")
    x = image
    for filters in (32, 64):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.95)(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.2)(layers.Flatten()(x))
    return tf.keras.Model(image, layers.Dense(10, name="logits")(x), name="cifar10")


def feed(dataset, mode, metadata):
    """({"image": values 0..1}, label), or only the features for predictions."""
    def parse(record):
        parsed = tf.io.parse_single_example(record, {
            "image": tf.io.FixedLenFeature([32, 32, 3], tf.float32),
            "label": tf.io.FixedLenFeature([], tf.int64, default_value=-1)})
        features = {"image": parsed["image"] / 255.0}
        return features if mode == Mode.PREDICTION else (features, parsed["label"])

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions))


def optimizer(lr=0.01):
    return tf.keras.optimizers.SGD(lr)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: tf.equal(
        tf.argmax(predictions, 1), tf.cast(tf.reshape(labels, [-1]), tf.int64))}


def callbacks():
    def schedule(version):
        return 0.01 if version < 5000 else 0.003 if version < 15000 else 0.001

    return [LearningRateScheduler(schedule)]


class PredictionOutputsProcessor(BasePredictionOutputsProcessor):
    """Appends the classes of the images to predictions-<worker>.txt, one per line, in the folder
    $PREDICTIONS_DIR (default: predictions)."""

    def __init__(self):
        self._folder = os.environ.get("PREDICTIONS_DIR", "predictions")

    def process(self, predictions, worker_id):
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"predictions-{worker_id}.txt")
        with open(path, "a", encoding="ascii") as file:
            file.writelines(f"{label}\n" for label in np.argmax(predictions, axis=1))
