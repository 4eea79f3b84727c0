"""MNIST with a convolutional network, built with Keras's functional API.

    --model_def=mnist.mnist_functional_api.custom_model

The data are those of `elasticdl data gen mnist OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    image = tf.keras.Input((28, 28), name="image")
    x = tf.keras.layers.Reshape((28, 28, 1))(image)
    x = tf.keras.layers.Conv2D(16, 3, activation="relu")(x)
    x = tf.keras.layers.MaxPooling2D()(x)
    x = tf.keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = tf.keras.layers.BatchNormalization(momentum=0.95)(x)
    x = tf.keras.layers.MaxPooling2D()(x)
    x = tf.keras.layers.Dropout(0.25)(x)
    x = tf.keras.layers.Flatten()(x)
    return tf.keras.Model(image, tf.keras.layers.Dense(10)(x))


def feed(dataset, mode, metadata):
    """({"image": values 0..1}, label), or only the features for predictions."""
    def parse(record):
        parsed = tf.io.parse_single_example(record, {
            "image": tf.io.FixedLenFeature([28, 28], tf.float32),
            "label": tf.io.FixedLenFeature([], tf.int64, default_value=-1)})
        features = {"image": parsed["image"] / 255.0}
        return features if mode == Mode.PREDICTION else (features, parsed["label"])

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(
        tf.reshape(labels, [-1]), predictions, from_logits=True))


def optimizer(lr=0.01):
    return tf.keras.optimizers.SGD(lr, momentum=0.9)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
