"""MNIST with a convolutional network, built with Keras's functional API (tutorial 5).

    elasticdl train --model_zoo=model_zoo \\
        --model_def=mnist_functional_api.mnist_functional_api.custom_model \\
        --training_data=data/mnist/train --validation_data=data/mnist/test ...

The data are those of `elasticdl data gen mnist data/mnist`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    image = tf.keras.Input((28, 28), name="image")
    x = tf.keras.layers.Reshape((28, 28, 1))(image)
    x = tf.keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = tf.keras.layers.Conv2D(64, 3, activation="relu", strides=2)(x)
    x = tf.keras.layers.BatchNormalization(momentum=0.95)(x)
    x = tf.keras.layers.MaxPooling2D()(x)
    x = tf.keras.layers.Dropout(0.25)(x)
    x = tf.keras.layers.Flatten()(x)
    logits = tf.keras.layers.Dense(10, name="logits")(x)
    return tf.keras.Model(image, logits, name="mnist")


def feed(dataset, mode, metadata):
    """({"image": values 0..1}, label), or only the features for predictions."""
    description = {"image": tf.io.FixedLenFeature([28, 28], tf.float32)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([], tf.int64)

    def parse(record):
        parsed = tf.io.parse_single_example(record, description)
        features = {"image": parsed["image"] / 255.0}
        return features if mode == Mode.PREDICTION else (features, parsed["label"])

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions))


def optimizer(lr=0.001):
    return tf.keras.optimizers.Adam(lr)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: tf.equal(
        tf.argmax(predictions, 1), tf.cast(tf.reshape(labels, [-1]), tf.int64))}
