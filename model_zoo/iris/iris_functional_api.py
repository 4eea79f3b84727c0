"""Iris species from four measurements, with a small network and records in a CSV file.

    --model_def=iris.iris_functional_api.custom_model --training_data=data/iris/train.csv

A line has four numbers and the species, 0 to 2. The data are those of
`elasticdl data gen iris data/iris`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

MEANS = [5.84, 3.06, 3.76, 1.20]
DEVIATIONS = [0.83, 0.43, 1.76, 0.76]


def custom_model():
    measures = tf.keras.Input((4,), name="measures")
    x = tf.keras.layers.Dense(16, activation="relu")(measures)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    return tf.keras.Model(measures, tf.keras.layers.Dense(3)(x), name="iris")


def feed(dataset, mode, metadata):
    """(standardized measures, species), or only the measures for predictions. A line for
    predictions may end after the measures."""
    def parse(line):
        texts = tf.strings.split(tf.strings.strip(line), ",")
        measures = tf.strings.to_number(texts[:4])
        measures = (tf.ensure_shape(measures, [4]) - MEANS) / DEVIATIONS
        if mode == Mode.PREDICTION:
            return measures
        return measures, tf.strings.to_number(texts[4], tf.int64)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(200)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions))


def optimizer(lr=0.1):
    return tf.keras.optimizers.SGD(lr)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: tf.equal(
        tf.argmax(predictions, 1), tf.cast(tf.reshape(labels, [-1]), tf.int64))}
