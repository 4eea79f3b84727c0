"""Census incomes with a Wide & Deep model, whose columns are transformed by preprocessing layers.

    --model_def=census_wide_deep_model.census_wide_deep.custom_model

The data are the RecordIO files of `elasticdl data gen census OUT`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler
from elasticdl_preprocessing.layers import (
    ConcatenateWithOffset,
    Discretization,
    Hashing,
    IndexLookup,
    Normalizer,
)

WORK_CLASSES = ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov",
                "State-gov", "Without-pay", "Never-worked"]
MARITAL_STATUS = ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
                  "Married-spouse-absent", "Married-AF-spouse"]
RELATIONSHIPS = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
RACES = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
SEXES = ["Female", "Male"]

NUMBERS = ["age", "capital_gain", "capital_loss", "hours_per_week"]
TEXTS = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
         "native_country"]


def id_columns():
    """The groups of columns that share an embedding: (column, layer, number of ids)."""
    def lookup(column, words):
        layer = IndexLookup(words)
        return column, layer, layer.vocab_size()

    def hashing(column, bins):
        return column, Hashing(bins), bins

    def buckets(column, boundaries):
        layer = Discretization(boundaries)
        return column, layer, layer.num_bins()

    return {
        "person": [hashing("education", 30), lookup("marital_status", MARITAL_STATUS),
                   lookup("relationship", RELATIONSHIPS), lookup("race", RACES),
                   lookup("sex", SEXES), hashing("native_country", 100)],
        "work": [lookup("workclass", WORK_CLASSES), hashing("occupation", 30)],
        "numbers": [buckets("age", [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]),
                    buckets("capital_gain", [1, 3000, 6000, 10000, 20000]),
                    buckets("capital_loss", [1, 1500, 2000, 2500]),
                    buckets("hours_per_week", [10, 20, 30, 40, 41, 50, 60])],
    }


def custom_model():
    inputs = {name: tf.keras.Input((1,), name=name) for name in NUMBERS}
    inputs.update({name: tf.keras.Input((1,), name=name, dtype=tf.string) for name in TEXTS})

    wide, deep = [], []
    for group, columns in id_columns().items():
        offsets = [sum(size for _, _, size in columns[:i]) for i in range(len(columns))]
        ids = ConcatenateWithOffset(offsets)([layer(inputs[name]) for name, layer, _ in columns])
        total = sum(size for _, _, size in columns)
        weights = tf.keras.layers.Embedding(total, 1, name=f"wide_{group}")(ids)
        vectors = tf.keras.layers.Embedding(total, 8, name=f"deep_{group}")(ids)
        wide.append(tf.reduce_sum(weights, axis=1))
        deep.append(tf.keras.layers.Flatten()(vectors))
    for name, mean, deviation in (("age", 38.6, 13.6), ("hours_per_week", 40.4, 12.3)):
        deep.append(Normalizer(mean, deviation)(inputs[name]))

    x = tf.keras.layers.Concatenate()(deep)
    for units in (32, 16):
        x = tf.keras.layers.Dense(units, activation="relu")(x)
    logits = tf.keras.layers.Add()([*wide, tf.keras.layers.Dense(1)(x)])
    probs = tf.reshape(tf.sigmoid(logits), [-1])
    return tf.keras.Model(inputs, {"logits": logits, "probs": probs}, name="wide_deep")


def feed(dataset, mode, metadata):
    """(values by column, label), or only the values for predictions."""
    description = {name: tf.io.FixedLenFeature([1], tf.float32) for name in NUMBERS}
    description.update({name: tf.io.FixedLenFeature([1], tf.string) for name in TEXTS})
    description["label"] = tf.io.FixedLenFeature([], tf.int64, -1)

    def parse(record):
        parsed = tf.io.parse_single_example(record, description)
        label = parsed.pop("label")
        return parsed if mode == Mode.PREDICTION else (parsed, label)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(1024)
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(tf.reshape(labels, [-1, 1]), tf.float32), logits=predictions["logits"]))


def optimizer(lr=0.003):
    return tf.keras.optimizers.Adam(lr)


def eval_metrics_fn():
    return {
        "logits": {"accuracy": lambda labels, predictions: tf.equal(
            tf.cast(tf.reshape(predictions, [-1]) > 0.0, tf.int64),
            tf.cast(tf.reshape(labels, [-1]), tf.int64))},
        "probs": {"auc": tf.keras.metrics.AUC()},
    }


def callbacks():
    def schedule(version):
        return 0.003 if version < 5000 else 0.002 if version < 12000 else 0.001

    return [LearningRateScheduler(schedule)]
