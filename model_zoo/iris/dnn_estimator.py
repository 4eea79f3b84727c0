"""Iris species from four measurements, with tf.estimator.DNNClassifier.

    python -m model_zoo.iris.dnn_estimator [--data_dir=/data]

In a job (`elasticdl train --need_tf_config=true ...`) chief and workers share the records. Without
a job it trains on all of them. It reads iris.data in the data directory, or else the copy beside
this file, and writes checkpoints to the data directory.
"""

import argparse
import csv
import os
from typing import List, NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from model_zoo.estimator_job import ShardedInput, run_config, scratch_dir

CATEGORY_CODE = {"Iris-setosa": 0, "Iris-versicolor": 1, "Iris-virginica": 2}
FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")
# Mean and standard deviation of each feature, for normalisation.
SCALES = ((5.84, 0.83), (3.06, 0.43), (3.76, 1.76), (1.20, 0.76))

BATCH_SIZE = 16
NUM_EPOCHS = 60  # 9,000 records: 562 batches and a half
SHUFFLE_BUFFER = 100


class Flower(NamedTuple):
    measures: Sequence[float]
    category: int


def read_flowers(path: str) -> List[Flower]:
    """The rows of a file in UCI's format, which ends with an empty line."""
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    return [Flower([float(v) for v in row[:-1]], CATEGORY_CODE[row[-1]]) for row in rows]


def features_of(batches: tf.data.Dataset) -> tf.data.Dataset:
    return batches.map(
        lambda measures, category: (dict(zip(FEATURES, tf.unstack(measures, axis=1))), category)
    )


def build_estimator(model_dir: str) -> tf.estimator.Estimator:
    columns = [
        tf.feature_column.numeric_column(name, normalizer_fn=lambda x, m=mean, d=dev: (x - m) / d)
        for name, (mean, dev) in zip(FEATURES, SCALES)
    ]
    return tf.estimator.DNNClassifier(
        hidden_units=[16, 16],
        feature_columns=columns,
        n_classes=len(CATEGORY_CODE),
        optimizer=lambda: tf.train.AdamOptimizer(0.01),
        config=run_config(model_dir, save_checkpoints_steps=100),
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", default="/data", help="folder of iris.data and ckpts/iris")
    parser.add_argument("--model_dir", default="", help="checkpoints; default: ckpts/iris")
    parser.add_argument("--batch_size", type=int, default=BATCH_SIZE)
    parser.add_argument("--num_epochs", type=int, default=NUM_EPOCHS)
    args = parser.parse_args()
    args.data = os.path.join(args.data_dir, "iris.data")
    if not os.path.exists(args.data):
        args.data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "iris.data")
    if not args.model_dir:
        writable = os.access(args.data_dir, os.W_OK)
        args.model_dir = (
            os.path.join(args.data_dir, "ckpts", "iris") if writable else scratch_dir("iris")
        )
    return args


def main() -> None:
    args = parse_args()
    flowers = read_flowers(args.data)
    tf.logging.info("%d flowers of %s, checkpoints in %s", len(flowers), args.data, args.model_dir)
    types, shapes = (tf.float32, tf.int64), ([len(FEATURES)], [])
    training = ShardedInput(
        "iris_training_data", len(flowers), flowers.__getitem__, args.batch_size, args.num_epochs,
        batches_per_shard=1,
    )

    def train_input() -> tf.data.Dataset:
        records = training.records(types, shapes)
        return features_of(records.shuffle(SHUFFLE_BUFFER).batch(args.batch_size))

    def eval_input() -> tf.data.Dataset:
        records = tf.data.Dataset.from_generator(lambda: iter(flowers), types, shapes)
        return features_of(records.batch(len(flowers)))

    tf.estimator.train_and_evaluate(
        build_estimator(args.model_dir),
        tf.estimator.TrainSpec(train_input, hooks=training.hooks()),
        tf.estimator.EvalSpec(eval_input, steps=None, start_delay_secs=1, throttle_secs=1),
    )


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)
    main()
