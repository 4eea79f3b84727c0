"""Heart diseases with feature columns: numbers, buckets of ages, an embedding of hashes.

    --model_def=heart_functional_api.heart_functional_api.custom_model

The data are the RecordIO files of `elasticdl data gen heart OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

# Mean and deviation of each number; feed() standardizes them.
NUMBERS = {"trestbps": (131.0, 17.0), "chol": (246.0, 50.0), "thalach": (149.0, 23.0),
           "oldpeak": (1.0, 1.1), "slope": (1.6, 0.6), "ca": (0.7, 0.9), "cp": (3.1, 1.0),
           "sex": (0.7, 0.5), "exang": (0.3, 0.5)}
AGES = [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]


def custom_model():
    columns = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    columns.append(tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column("age"), AGES))
    columns.append(tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_hash_bucket("thal", 100), dimension=8))

    inputs = {name: tf.keras.Input((1,), name=name) for name in (*NUMBERS, "age")}
    inputs["thal"] = tf.keras.Input((1,), name="thal", dtype=tf.string)
    x = tf.keras.layers.DenseFeatures(columns)(inputs)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1, activation="sigmoid")(x), name="heart")


def feed(dataset, mode, metadata):
    """(values by column, target), or only the values for predictions."""
    description = {name: tf.io.FixedLenFeature([1], tf.int64) for name in (*NUMBERS, "age")}
    description["oldpeak"] = tf.io.FixedLenFeature([1], tf.float32)
    description["thal"] = tf.io.FixedLenFeature([1], tf.string)
    description["target"] = tf.io.FixedLenFeature([], tf.int64, -1)

    def parse(record):
        parsed = tf.io.parse_single_example(record, description)
        target = parsed.pop("target")
        parsed["age"] = tf.cast(parsed["age"], tf.float32)
        for name, (mean, deviation) in NUMBERS.items():
            parsed[name] = (tf.cast(parsed[name], tf.float32) - mean) / deviation
        return parsed if mode == Mode.PREDICTION else (parsed, target)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    labels = tf.cast(tf.reshape(labels, [-1, 1]), tf.float32)
    return tf.reduce_mean(tf.keras.losses.binary_crossentropy(labels, predictions))


def optimizer(lr=0.05):
    return tf.keras.optimizers.SGD(lr, momentum=0.9)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.cast(tf.reshape(predictions, [-1]) > 0.5, tf.int64),
            tf.cast(tf.reshape(labels, [-1]), tf.int64)),
        "auc": tf.keras.metrics.AUC(),
    }
