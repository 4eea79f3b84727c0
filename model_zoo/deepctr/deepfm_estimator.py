"""Click-through rate with DeepCTR's DeepFM estimator.

    python -m model_zoo.deepctr.deepfm_estimator \\
        --training_data=/data/criteo_sample.txt --validation_data=/data/criteo_sample.txt

The files have the format of DeepCTR's criteo_sample.txt; model_zoo.deepctr.gen_criteo_sample
generates such files. Checkpoints are written to `ckpts` beside the training data. In a job, chief
and workers share the records. Without a job it trains on all of them.
"""

import argparse
import csv
import os
from typing import List, Tuple

import tensorflow.compat.v1 as tf

from model_zoo.estimator_job import ShardedInput, run_config

DENSE = [f"I{i}" for i in range(1, 14)]
SPARSE = [f"C{i}" for i in range(1, 27)]

BATCH_SIZE = 64
NUM_EPOCHS = 2
SHUFFLE_BUFFER = 1000
HASH_BUCKETS = 1000
EMBEDDING_DIM = 4

# (numbers of I1..I13, categories of C1..C26, label)
Click = Tuple[List[float], List[str], List[int]]


def read_clicks(path: str) -> List[Click]:
    """The records of `path`. A missing number is 0; a missing category is a separate category."""
    with open(path, newline="") as file:
        return [
            (
                [float(row[name] or 0) for name in DENSE],
                [row[name] for name in SPARSE],
                [int(row["label"])],
            )
            for row in csv.DictReader(file)
        ]


def features_of(batches: tf.data.Dataset) -> tf.data.Dataset:
    def by_name(numbers, categories, labels):
        features = dict(zip(DENSE, tf.unstack(numbers, axis=1)))
        features.update(zip(SPARSE, tf.unstack(categories, axis=1)))
        return features, labels

    return batches.map(by_name)


def build_estimator(model_dir: str) -> tf.estimator.Estimator:
    from deepctr.estimator.models import DeepFMEstimator  # after TensorFlow is configured

    linear, deep = [], []
    for name in SPARSE:
        column = tf.feature_column.categorical_column_with_hash_bucket(name, HASH_BUCKETS)
        linear.append(column)
        # Small initial values: with the default, the products of embeddings dominate the sum.
        deep.append(
            tf.feature_column.embedding_column(
                column, EMBEDDING_DIM, initializer=tf.random_normal_initializer(stddev=0.01)
            )
        )
    for name in DENSE:
        column = tf.feature_column.numeric_column(
            name, normalizer_fn=lambda x: tf.log1p(tf.maximum(x, 0.0))
        )
        linear.append(column)
        deep.append(column)
    return DeepFMEstimator(
        linear,
        deep,
        dnn_hidden_units=(64, 32),
        task="binary",
        dnn_optimizer=lambda: tf.train.AdamOptimizer(0.001),
        model_dir=model_dir,
        config=run_config(model_dir, save_checkpoints_steps=200),
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--training_data", required=True)
    parser.add_argument("--validation_data", required=True)
    parser.add_argument("--model_dir", default="", help="default: ckpts beside the training data")
    parser.add_argument("--batch_size", type=int, default=BATCH_SIZE)
    parser.add_argument("--num_epochs", type=int, default=NUM_EPOCHS)
    parser.add_argument("--batches_per_shard", type=int, default=4)
    args = parser.parse_args()
    if not args.model_dir:
        args.model_dir = os.path.join(os.path.dirname(args.training_data) or ".", "ckpts")
    return args


def main() -> None:
    args = parse_args()
    clicks = read_clicks(args.training_data)
    validation = read_clicks(args.validation_data)
    types = (tf.float32, tf.string, tf.int64)
    shapes = ([len(DENSE)], [len(SPARSE)], [1])
    training = ShardedInput(
        "criteo_training_data", len(clicks), clicks.__getitem__, args.batch_size, args.num_epochs,
        args.batches_per_shard,
    )

    def train_input() -> tf.data.Dataset:
        records = training.records(types, shapes)
        return features_of(records.shuffle(SHUFFLE_BUFFER).batch(args.batch_size))

    def eval_input() -> tf.data.Dataset:
        records = tf.data.Dataset.from_generator(lambda: iter(validation), types, shapes)
        return features_of(records.batch(1024))

    tf.estimator.train_and_evaluate(
        build_estimator(args.model_dir),
        tf.estimator.TrainSpec(train_input, hooks=training.hooks()),
        tf.estimator.EvalSpec(eval_input, steps=None, start_delay_secs=1, throttle_secs=5),
    )


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)
    main()
