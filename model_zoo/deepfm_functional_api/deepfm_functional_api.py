"""Frappe (which app is used in which context) with DeepFM.

    --model_def=deepfm_functional_api.deepfm_functional_api.custom_model

The embeddings are those of Keras. Their tables have less than 2 MiB, so each is a dense parameter.
The data are those of `elasticdl data gen frappe OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

NUM_IDS = 5383  # id 0 is for padding
NUM_FIELDS = 10


def custom_model(input_dim=NUM_IDS, embedding_dim=64, input_length=NUM_FIELDS, fc_unit=64):
    ids = tf.keras.Input((input_length,), name="feature", dtype=tf.int64)
    initializer = tf.keras.initializers.RandomUniform(-0.01, 0.01)
    embeddings = tf.keras.layers.Embedding(
        input_dim, embedding_dim, embeddings_initializer=initializer, name="embedding")(ids)
    weights = tf.keras.layers.Embedding(input_dim, 1, name="id_bias")(ids)

    # Padding contributes nothing.
    mask = tf.cast(tf.not_equal(ids, 0), tf.float32)[:, :, None]
    embeddings, weights = embeddings * mask, weights * mask

    first_order = tf.reduce_sum(weights, axis=1)
    sum_of_squares = tf.reduce_sum(tf.square(embeddings), axis=1)
    square_of_sum = tf.square(tf.reduce_sum(embeddings, axis=1))
    second_order = 0.5 * tf.reduce_sum(square_of_sum - sum_of_squares, axis=1, keepdims=True)

    x = tf.keras.layers.Flatten()(embeddings)
    x = tf.keras.layers.Dense(fc_unit, activation="relu")(x)
    deep = tf.keras.layers.Dense(1)(x)

    logits = tf.keras.layers.Add()([first_order, second_order, deep])
    probs = tf.reshape(tf.sigmoid(logits), [-1])
    return tf.keras.Model(ids, {"logits": logits, "probs": probs}, name="deepfm")


def feed(dataset, mode, metadata):
    """({"feature": ids}, label), or only the features for predictions."""
    def parse(record):
        parsed = tf.io.parse_single_example(record, {
            "feature": tf.io.FixedLenFeature([NUM_FIELDS], tf.int64),
            "label": tf.io.FixedLenFeature([], tf.int64, default_value=-1)})
        label = parsed.pop("label")
        return parsed if mode == Mode.PREDICTION else (parsed, label)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(tf.reshape(labels, [-1, 1]), tf.float32), logits=predictions["logits"]))


def optimizer(lr=0.001):
    return tf.keras.optimizers.Adam(lr)


def eval_metrics_fn():
    return {
        "logits": {"accuracy": lambda labels, predictions: tf.equal(
            tf.cast(tf.reshape(predictions, [-1]) > 0.0, tf.int64),
            tf.cast(tf.reshape(labels, [-1]), tf.int64))},
        "probs": {"auc": tf.keras.metrics.AUC()},
    }
