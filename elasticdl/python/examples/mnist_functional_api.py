"""A small model for MNIST, for tests by hand: a hidden layer of 64 units.

The data are those of `elasticdl data gen mnist OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    image = tf.keras.Input((28, 28), name="image")
    hidden = tf.keras.layers.Dense(64, activation="relu")(tf.keras.layers.Flatten()(image))
    return tf.keras.Model(image, tf.keras.layers.Dense(10)(hidden))


def feed(dataset, mode, metadata):
    """(image with values 0..1, label), or only the image for predictions."""
    description = {"image": tf.io.FixedLenFeature([28, 28], tf.float32)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([], tf.int64)

    def parse(record):
        features = tf.io.parse_single_example(record, description)
        image = features["image"] / 255.0
        return image if mode == Mode.PREDICTION else (image, features["label"])

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions))


def optimizer(lr=0.1):
    return tf.keras.optimizers.SGD(lr)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: tf.equal(
        tf.argmax(predictions, 1), tf.cast(tf.reshape(labels, [-1]), tf.int64))}
