"""MNIST with a convolutional network, as a subclass of tf.keras.Model.

    --model_def=mnist.mnist_subclass.CustomModel

The data are those of `elasticdl data gen mnist OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


class CustomModel(tf.keras.Model):
    """`channel_last` False puts the channel before the rows and columns, as some GPUs prefer."""

    def __init__(self, channel_last=True):
        super().__init__(name="mnist_model")
        order = "channels_last" if channel_last else "channels_first"
        layers = tf.keras.layers
        self._reshape = layers.Reshape((28, 28, 1) if channel_last else (1, 28, 28))
        self._convolutions = [
            layers.Conv2D(16, 3, activation="relu", data_format=order),
            layers.Conv2D(32, 3, strides=2, activation="relu", data_format=order)]
        self._normalize = layers.BatchNormalization(
            axis=-1 if channel_last else 1, momentum=0.95)
        self._pool = layers.MaxPooling2D(data_format=order)
        self._dropout = layers.Dropout(0.25)
        self._flatten = layers.Flatten()
        self._dense = layers.Dense(10)

    def call(self, inputs, training=False):
        x = self._reshape(inputs["image"])
        for convolution in self._convolutions:
            x = convolution(x)
        x = self._pool(self._normalize(x, training=training))
        return self._dense(self._flatten(self._dropout(x, training=training)))


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
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions))


def optimizer(lr=0.02):
    return tf.keras.optimizers.SGD(lr)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
