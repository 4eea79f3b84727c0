"""Click-through rate with DeepCTR's Wide & Deep model.

    --model_def=deepctr.wdl.custom_model --dataset_fn=feed

The data are those of `elasticdl data gen criteo OUT`.
"""

import tensorflow as tf
from deepctr.feature_column import DenseFeat, SparseFeat
from deepctr.models import WDL

from elasticdl.python.common.constants import Mode

NUMBERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
HASH_BUCKETS = 1000
EMBEDDING_DIM = 4


def custom_model():
    columns = [SparseFeat(name, HASH_BUCKETS, EMBEDDING_DIM, use_hash=True, dtype="string")
               for name in CATEGORIES]
    columns += [DenseFeat(name, 1) for name in NUMBERS]
    return WDL(columns, columns, dnn_hidden_units=(64, 32), task="binary")


def feed(dataset, mode, metadata):
    """(values by column, label), or only the values for predictions. Numbers are on a logarithmic
    scale, because they span many orders of magnitude."""
    description = {name: tf.io.FixedLenFeature([1], tf.float32, 0.0) for name in NUMBERS}
    description.update({name: tf.io.FixedLenFeature([1], tf.string, "") for name in CATEGORIES})
    description["label"] = tf.io.FixedLenFeature([], tf.int64, -1)

    def parse(record):
        parsed = tf.io.parse_single_example(record, description)
        label = parsed.pop("label")
        for name in NUMBERS:
            parsed[name] = tf.math.log1p(tf.maximum(parsed[name], 0.0))
        return parsed if mode == Mode.PREDICTION else (parsed, label)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    labels = tf.cast(tf.reshape(labels, [-1, 1]), tf.float32)
    return tf.reduce_mean(tf.keras.losses.binary_crossentropy(labels, predictions))


def optimizer(lr=0.001):
    return tf.keras.optimizers.Adam(lr)


def eval_metrics_fn():
    return {"auc": tf.keras.metrics.AUC()}
