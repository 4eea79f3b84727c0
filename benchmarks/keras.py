"""Steps per second of Keras models: ours, plain Keras in one process, and TensorFlow's ps.

All train the same model file on the same records with one batch size. "plain" is `fit` in one
process. "tf_ps" is the same model as an Estimator in an `elasticdl train` job with one ps of
TensorFlow, where the chief is the first worker. Values are medians of rounds. The first steps of a
program, which trace its graph, are left out.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List

from common import figure, median

ROOT = Path(__file__).resolve().parents[1]
BINARY = os.environ["ELASTICDL_BIN"]
MODELS = {
    "mnist": ("mnist_functional_api.mnist_functional_api", "mnist", 64, "0.1"),
    "deepfm": ("deepfm_functional_api.deepfm_functional_api", "frappe", 512, "0.5"),
}
WARM_UP = 30

COUNT = "import sys, elasticdl; print(len(elasticdl.open_records(sys.argv[1])))"

PLAIN = """
import sys, time
import tensorflow as tf
from elasticdl import open_records
import importlib
model = importlib.import_module("model_zoo." + sys.argv[1])
records = open_records(sys.argv[2])
data = tf.data.Dataset.from_tensor_slices(tf.constant(records.read(0, len(records))))
data = model.feed(data, "training", None).batch(int(sys.argv[3])).repeat(int(sys.argv[4]))


class Times(tf.keras.callbacks.Callback):
    times = []

    def on_train_batch_end(self, batch, logs=None):
        self.times.append(time.monotonic())


net = model.custom_model()
outputs = net.output_names
if isinstance(net.output, dict):
    class Net(tf.keras.Model):
        def train_step(self, batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = model.loss(y, self(x, training=True))
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            return {"loss": loss}
    net = Net(net.inputs, net.output)
    net.compile(model.optimizer())
else:
    net.compile(model.optimizer(), model.loss)
net.fit(data.prefetch(4), verbose=0, callbacks=[Times()])
times = Times.times[%d:]
print("rate", (len(times) - 1) / (times[-1] - times[0]))
""" % WARM_UP

ESTIMATOR = """
import importlib, os, sys
import tensorflow as tf
from elasticdl import open_records
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
model = importlib.import_module("model_zoo." + sys.argv[1])
steps, batch = int(sys.argv[4]), int(sys.argv[3])


def outputs_of(features):
    # The outputs and the updates of the model. A model of layers alone is called. One with other
    # operations cannot be built in a graph with devices of a cluster: its code runs on the batch.
    try:
        net = model.custom_model()
        built = {id(update) for update in net.updates}  # those of the model's own placeholders
        outputs = net(features, training=True)
        return outputs, [each for each in net.updates if id(each) not in built]
    except tf.errors.InvalidArgumentError:
        pass
    keras = tf.keras.Input, tf.keras.Model
    tf.keras.Input = lambda shape, name, dtype=None: features[name]
    tf.keras.Model = lambda inputs, outputs, name: outputs
    try:
        return model.custom_model(), []
    finally:
        tf.keras.Input, tf.keras.Model = keras


def model_fn(features, labels, mode):
    outputs, updates = outputs_of(features)
    loss = model.loss(labels, outputs)
    optimizer = tf.compat.v1.train.AdamOptimizer(0.001)
    with tf.control_dependencies(updates):
        train = optimizer.minimize(loss, tf.compat.v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def input_fn():
    records = open_records(sys.argv[2])
    data = tf.data.Dataset.from_tensor_slices(records.read(0, len(records)))
    return model.feed(data, "training", None).batch(batch).repeat().prefetch(4)


run = tf.estimator.RunConfig(model_dir=sys.argv[5], log_step_count_steps=20,
                             save_checkpoints_secs=600)
estimator = tf.estimator.Estimator(model_fn, config=run)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=steps),
    tf.estimator.EvalSpec(input_fn, steps=1))
"""


def environment(home: Path) -> Dict[str, str]:
    env = dict(os.environ, PYTHONPATH=str(ROOT), ELASTICDL_HOME=str(home),
               TF_CPP_MIN_LOG_LEVEL="2")
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    return env


def run(command: List[str], env: Dict[str, str]) -> str:
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def rate_of_losses(logs: List[str]) -> float:
    """Steps per second, from the times of the lines with losses of all workers."""
    seen = []
    for log in logs:
        for time, step in re.findall(r"\[([^\]]+)\].*Loss = \S+, steps = (\d+)", log):
            at = datetime.datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f").timestamp()
            if int(step) >= WARM_UP * len(logs):
                seen.append((at, int(step)))
    (begin, first), (end, last) = min(seen), max(seen)
    return (last - first) / (end - begin)


def ours(module: str, data: str, batch: int, epochs: int, workers: int, home: Path) -> float:
    name = f"bench-{workers}"
    run([BINARY, "train", "--backend=local", f"--job_name={name}", "--model_zoo=model_zoo",
         f"--model_def={module}.custom_model", f"--training_data={data}",
         f"--minibatch_size={batch}", "--num_minibatches_per_task=32", f"--num_epochs={epochs}",
         f"--num_workers={workers}", "--num_ps_pods=1", "--use_async=true", "--log_loss_steps=10"],
        environment(home))
    logs = [path.read_text() for path in sorted((home / "jobs" / name / "logs").glob("*worker*"))]
    for log in logs:
        print("  " + log.strip().splitlines()[-1].split("] ")[-1])
    run([BINARY, "delete", name], environment(home))
    return rate_of_losses(logs)


def tensorflow_ps(module: str, data: str, batch: int, steps: int, workers: int,
                  home: Path) -> float:
    program = home / "estimator.py"
    program.write_text(ESTIMATOR)
    name = f"estimator-{workers}"
    shutil.rmtree(home / name, ignore_errors=True)  # the checkpoints of an earlier round
    run([BINARY, "train", "--backend=local", f"--job_name={name}", "--need_tf_config=true",
         "--num_ps_pods=1", f"--num_workers={workers - 1}",
         f"--job_command=python {program} {module} {data} {batch} {steps} {home / name}"],
        environment(home))
    log = "".join(p.read_text() for p in (home / "jobs" / name / "logs").glob("*chief*"))
    rates = [float(rate) for rate in re.findall(r"global_step/sec: ([0-9.]+)", log)]
    run([BINARY, "delete", name], environment(home))
    return median(rates[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--models", default="mnist,deepfm")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o700)
        for model in arguments.models.split(","):
            module, dataset, batch, fraction = MODELS[model]
            run([sys.executable, "-m", "elasticdl.data_gen", dataset, str(home / dataset),
                 f"--fraction={fraction}"], environment(home))
            data = str(home / dataset / "train")
            count = int(run([sys.executable, "-c", COUNT, data], environment(home)))
            epochs = max(1, round(arguments.steps * batch / count))
            rates: Dict[str, List[float]] = {}
            for _ in range(arguments.rounds):
                plain = run([sys.executable, "-c", PLAIN, module, data, str(batch), str(epochs)],
                            environment(home))
                rates.setdefault("plain", []).append(float(plain.split()[-1]))
                for workers in (1, 2):
                    rates.setdefault(f"ours.{workers}", []).append(
                        ours(module, data, batch, epochs, workers, home))
                    rates.setdefault(f"tf_ps.{workers}", []).append(
                        tensorflow_ps(module, data, batch, arguments.steps, workers, home))
                print(json.dumps({name: round(values[-1], 1) for name, values in rates.items()}),
                      flush=True)
            for name, values in rates.items():
                figure(f"keras.{model}.{name}", median(values), "steps/s")


if __name__ == "__main__":
    main()
