"""Trains a model that writes the title of a GitHub issue, as one replica of a TFJob.

TF_CONFIG says which one: a parameter server, the master (or chief), or a worker. Without TF_CONFIG
the program trains alone. The master prepares the features and exports the model. Everything is
written to the folder MODEL, which all replicas share:

    features/          word indexes and rows of word numbers
    checkpoint, model.ckpt-*
    export/issues/N/   the trained model with its word indexes, for summarize.py
"""

import json
import os
import sys
import time
from typing import Callable, Dict, Tuple

import tensorflow as tf
from features import ASSETS, Features, prepare

BODIES, TITLES = "body", "title"  # the inputs of the model


def number(name: str, default: int) -> int:
    """An environment variable that is a positive number."""
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) == 0:
        sys.exit(f"{name}={text}: must be a positive number")
    return int(text)


DATA = os.environ.get("DATA", "/data/github_issues.csv")
MODEL = os.environ.get("MODEL", "/model")
STEPS = number("STEPS", 1000)  # batches that all replicas train together
BATCH = number("BATCH", 64)
UNITS = number("UNITS", 96)  # size of the states and of the embeddings
WAIT = number("WAIT", 1800)  # seconds to wait for the data, and for the features
SETTINGS = {"rows": number("ROWS", 5000),
            "body_words": number("BODY_WORDS", 8000), "body_length": number("BODY_LENGTH", 50),
            "title_words": number("TITLE_WORDS", 4500), "title_length": number("TITLE_LENGTH", 12)}
FEATURES = os.path.join(MODEL, "features")


def read_task() -> Tuple[Dict, str, int]:
    """The cluster, and the role and number of this process in it."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task = config.get("task", {})
    return config.get("cluster", {}), task.get("type", "master"), task.get("index", 0)


def wait_for(path: str, who: str) -> None:
    """Waits until another process has written `path`."""
    deadline = time.monotonic() + WAIT
    print(f"waiting for {path}", flush=True)
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            sys.exit(f"{path} does not exist after {WAIT} s; {who} writes it: look at its log, and "
                     "check that both pods mount the same claim. WAIT changes the number of "
                     "seconds")
        time.sleep(0.5)


def make_features(is_master: bool) -> Features:
    """The master prepares the features, unless it did so before it was restarted. Workers wait
    until it has also started to train."""
    if not is_master:
        wait_for(FEATURES, "the master")
        # The master writes its first checkpoint when the variables are initialized. A worker that
        # starts earlier would look for that every 30 s only, and would write the initial weights
        # to the folder at the same time as the master.
        wait_for(os.path.join(MODEL, "checkpoint"), "the master")
    elif not os.path.exists(FEATURES):
        wait_for(DATA, "the job 'download'")
        prepare(DATA, FEATURES, SETTINGS)
    return Features(FEATURES, SETTINGS)


def make_model(body_words: int, title_words: int) -> tf.keras.Model:
    """Encodes the body, and predicts each word of the title from the state and the words before."""
    layers = tf.keras.layers
    bodies = layers.Input(shape=(None,), dtype="int32", name=BODIES)
    embedded = layers.Embedding(body_words, UNITS, name="Body-Embedding")(bodies)
    _, state = layers.GRU(UNITS, return_state=True, name="Encoder")(embedded)

    titles = layers.Input(shape=(None,), dtype="int32", name=TITLES)
    embedded = layers.Embedding(title_words, UNITS, name="Title-Embedding")(titles)
    decoded = layers.GRU(UNITS, return_sequences=True, name="Decoder")(
        embedded, initial_state=state)
    words = layers.Dense(title_words, activation="softmax", name="Words")(decoded)

    model = tf.keras.Model([bodies, titles], words)
    # Estimators know only the legacy optimizers. Replicas do not wait for each other, so a gradient
    # may belong to older parameters: limits how far it moves them.
    model.compile(tf.keras.optimizers.legacy.Nadam(0.005, clipnorm=1.0),
                  "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def input_of(features: Features, part: str, epochs: "int | None") -> Callable:
    """Slices the rows into batches. The decoder reads a title up to each word, and predicts it."""
    bodies, titles = features.arrays(part)
    return tf.compat.v1.estimator.inputs.numpy_input_fn(
        x={BODIES: bodies, TITLES: titles[:, :-1]}, y=titles[:, 1:, None],
        batch_size=BATCH, num_epochs=epochs, shuffle=epochs is None)


def serving_input() -> tf.estimator.export.ServingInputReceiver:
    inputs = {name: tf.compat.v1.placeholder(tf.int32, (None, None), name)
              for name in (BODIES, TITLES)}
    return tf.estimator.export.ServingInputReceiver(inputs, inputs)


def train(features: Features, index: int) -> None:
    """Trains until all replicas together have trained STEPS batches. The master also evaluates and
    exports the model."""
    config = tf.estimator.RunConfig(
        model_dir=MODEL, save_checkpoints_steps=max(1, STEPS // 2), save_summary_steps=STEPS,
        log_step_count_steps=100, experimental_max_worker_delay_secs=0,
        tf_random_seed=index + 1)  # replicas shuffle the rows differently
    estimator = tf.keras.estimator.model_to_estimator(
        make_model(len(features.bodies), len(features.titles)), config=config)
    exporter = tf.estimator.FinalExporter("issues", serving_input, assets_extra={
        name: os.path.join(FEATURES, name) for name in ASSETS})
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_of(features, "train", None), max_steps=STEPS),
        tf.estimator.EvalSpec(input_of(features, "test", 1), steps=None, exporters=exporter,
                              start_delay_secs=1, throttle_secs=10))


def main() -> None:
    tf.compat.v1.disable_v2_behavior()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    cluster, role, index = read_task()
    if role == "ps":
        server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=role,
                                      task_index=index)
        print(f"parameter server {index} of {len(cluster['ps'])} at {server.target}", flush=True)
        server.join()  # never returns; the operator deletes the pod
    is_master = role in ("chief", "master")
    features = make_features(is_master)
    print(f"{role} {index} trains with {len(features.bodies)} words of bodies and "
          f"{len(features.titles)} words of titles", flush=True)
    train(features, 0 if is_master else index + 1)
    print(f"{role} {index} has finished")
    if is_master:
        print(f"the model is in {os.path.join(MODEL, 'export/issues')}")


if __name__ == "__main__":
    main()
