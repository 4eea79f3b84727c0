"""Frappe (which app is used in which context) with DeepFM and embeddings on parameter servers.

    --model_def=deepfm_edl_embedding.deepfm_edl_embedding.custom_model

The rows of the embeddings are on the parameter servers, and are made when an id is first used, so
the model does not say how many there are. The data are those of `elasticdl data gen frappe OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

NUM_FIELDS = 10


def custom_model(embedding_dim=64, input_length=NUM_FIELDS, fc_unit=64):
    from elasticdl.layers import Embedding

    ids = tf.keras.Input((input_length,), name="feature", dtype=tf.int64)
    table = Embedding(output_dim=embedding_dim, mask_zero=True, input_length=input_length,
                      name="embedding")
    biases = Embedding(output_dim=1, mask_zero=True, input_length=input_length, name="id_bias")
    # Padding (id 0) contributes nothing.
    mask = tf.cast(table.compute_mask(ids), tf.float32)[:, :, None]
    embeddings = table(ids) * mask
    first_order = tf.reduce_sum(biases(ids) * mask, axis=1)

    total = tf.reduce_sum(embeddings, axis=1)
    pairs = tf.square(total) - tf.reduce_sum(tf.square(embeddings), axis=1)
    second_order = 0.5 * tf.reduce_sum(pairs, axis=1, keepdims=True)

    x = tf.keras.layers.Flatten()(embeddings)
    x = tf.keras.layers.Dense(fc_unit, activation="relu")(x)
    deep = tf.keras.layers.Dense(1)(x)

    logits = tf.keras.layers.Add()([first_order, second_order, deep])
    probs = tf.reshape(tf.sigmoid(logits), [-1])
    return tf.keras.Model(ids, {"logits": logits, "probs": probs}, name="deepfm_edl")


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
