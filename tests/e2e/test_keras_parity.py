"""One worker trains a Keras model exactly like `fit` on the same batches."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest
from harness import ROOT, Job

nightly = pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="make nightly")
STEPS, BATCH, SEED = 200, 16, 7
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}

# Both programs import this file: the model, its data and its loss.
MODEL = '''
import numpy as np
import tensorflow as tf

EMBEDDING = {embedding}


def custom_model():
    if EMBEDDING:
        inputs = tf.keras.Input((3,), dtype=tf.int64)
        words = {layer}(inputs)
        return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(tf.reshape(words, [-1, 12])))
    return tf.keras.Sequential([
        tf.keras.layers.Dense(16, activation="relu", input_shape=(4,)),
        tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)])


def parse(line):
    numbers = tf.strings.to_number(tf.strings.split(line, ","))
    features = tf.cast(numbers[:3], tf.int64) if EMBEDDING else numbers[3:7]
    return features, numbers[7:]


def feed(dataset, mode, metadata):
    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(tf.square(labels - predictions))


def optimizer():
    return tf.keras.optimizers.{optimizer}
'''

PLAIN = '''
import sys
import tensorflow as tf
sys.path.insert(0, sys.argv[1])
import plain as model

tf.keras.utils.set_random_seed({seed})
net = model.custom_model()
lines = tf.data.TextLineDataset(sys.argv[2])
data = model.feed(lines, "training", None).batch({batch})


class Losses(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        print("Loss = %.9g" % logs["loss"])


net.compile(model.optimizer(), model.loss)
net.fit(data, verbose=0, shuffle=False, callbacks=[Losses()])
'''

LAYERS = {
    "ours": '__import__("elasticdl.layers", fromlist=["x"]).Embedding(4, name="words", '
            'embeddings_initializer=tf.keras.initializers.Constant(0.05))',
    "plain": 'tf.keras.layers.Embedding(50, 4, name="words", '
             'embeddings_initializer=tf.keras.initializers.Constant(0.05))',
}


def write_data(path: Path) -> None:
    import numpy as np

    random = np.random.default_rng(3)
    ids = random.integers(0, 50, (STEPS * BATCH, 3))
    numbers = random.normal(size=(STEPS * BATCH, 4)).round(4)
    labels = (ids.sum(1, keepdims=True) / 75 + numbers.sum(1, keepdims=True) / 4).round(4)
    rows = [",".join(map(str, [*a, *b, *c])) for a, b, c in zip(ids, numbers, labels)]
    path.write_text("\n".join(rows) + "\n")


def losses(text: str) -> List[float]:
    return [float(value) for value in re.findall(r"Loss = ([0-9.e+-]+)", text)]


@pytest.mark.parametrize("optimizer, embedding", [
    ("SGD(0.05)", False),
    ("Adam(0.01)", False),
    ("Adagrad(0.05)", True),
    pytest.param("Adagrad(0.05)", False, marks=nightly),
    pytest.param("SGD(0.05)", True, marks=nightly),
])
def test_the_losses_are_those_of_keras(start: Callable[..., Job], tmp_path: Path, optimizer: str,
                                       embedding: bool) -> None:
    for name, layer in LAYERS.items():
        (tmp_path / f"{name}.py").write_text(
            MODEL.format(embedding=embedding, layer=layer, optimizer=optimizer))
    write_data(tmp_path / "data.csv")
    job = start("parity", None, f"--model_zoo={tmp_path}", "--model_def=ours.custom_model",
                f"--training_data={tmp_path}/data.csv", f"--minibatch_size={BATCH}",
                "--num_minibatches_per_task=8", "--num_workers=1", "--num_ps_pods=1",
                "--use_async=false", "--grads_to_wait=1", "--log_loss_steps=1", f"--seed={SEED}",
                env=ONE_THREAD)
    plain = subprocess.run(
        [sys.executable, "-c", PLAIN.format(seed=SEED, batch=BATCH), str(tmp_path),
         str(tmp_path / "data.csv")], text=True, capture_output=True, timeout=120,
        env=dict(os.environ, PYTHONPATH=str(ROOT), **ONE_THREAD))
    assert plain.returncode == 0, plain.stderr
    job.assert_succeeded(200)

    expected = losses(plain.stdout)
    found = losses("".join(p.read_text() for p in job.folder.glob("logs/*worker*.log")))
    assert len(expected) == len(found) == STEPS
    far = [abs(a - b) / abs(b) for a, b in zip(found, expected)]
    print(f"largest difference: {max(far[:50]):.2g} in 50 steps, {max(far):.2g} in {STEPS}")
    assert found[-1] < found[0] / 2  # it learns
    assert max(far[:50]) < 1e-4 and max(far) < 1e-2
