"""Jobs of Keras models: training, evaluation, prediction and export on this machine."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import numpy as np
import pytest
from harness import ROOT, Job
from test_counting import Killing
from waiting import wait_for

nightly = pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="make nightly")
MNIST = "mnist_functional_api.mnist_functional_api.custom_model"
TRAINED = 12_000
# Programs of the tests use one thread each, so that several of them run well on two cores.
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def generate_mnist(folder: Path, fraction: float) -> Path:
    subprocess.run([sys.executable, "-m", "elasticdl.data_gen", "mnist", str(folder),
                    f"--fraction={fraction}"], cwd=ROOT, check=True, timeout=120,
                   env=dict(os.environ, PYTHONPATH=str(ROOT)))
    return folder


@pytest.fixture(scope="session")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated MNIST, 12,000 records to train and 2,000 to test."""
    return generate_mnist(tmp_path_factory.mktemp("data") / "mnist", 0.2)


def model_flags(data: Path, *more: str) -> List[str]:
    """The flags of tutorial 5, apart from paths, sizes and what only a cluster has."""
    return ["--model_zoo=model_zoo", f"--model_def={MNIST}", f"--training_data={data}/train",
            f"--validation_data={data}/test", "--minibatch_size=64", "--num_minibatches_per_task=8",
            "--distribution_strategy=ParameterServerStrategy", "--log_level=INFO", *more]


def evaluations(job: Job) -> Dict[int, float]:
    """{step: accuracy} of the evaluation lines of the master's log."""
    log = "".join(path.read_text() for path in job.folder.glob("logs/*master*.log"))
    found = re.findall(r"Evaluation metrics\[step=(\d+)\]: \{.*'accuracy': ([0-9.e-]+)", log)
    return {int(step): float(accuracy) for step, accuracy in found}


def losses(job: Job) -> List[Tuple[int, float]]:
    """(step, loss) of the lines of all workers."""
    log = "".join(path.read_text() for path in job.folder.glob("logs/*worker*.log"))
    return [(int(step), float(loss))
            for loss, step in re.findall(r"Loss = ([0-9.e+-]+), steps = (\d+)", log)]


def newest_checkpoint(job: Job) -> Path:
    return job.folder / "checkpoints" / job.status()["checkpoint"]


def predictions(folder: Path) -> np.ndarray:
    rows: List[List[float]] = []
    for path in sorted(folder.glob("part-*.csv")):
        with path.open() as file:
            rows += [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    return np.array(rows)


def accuracy_of_saved_model(model: Path, data: Path, expected: np.ndarray) -> float:
    """Runs a SavedModel in a process with plain TensorFlow. Its outputs must be `expected`."""
    program = f"""
import sys
import numpy as np, tensorflow as tf
sys.path.insert(0, {str(ROOT)!r})
from elasticdl import open_records
records = open_records({str(data / "test")!r})
parsed = tf.io.parse_example(records.read(0, len(records)), {{
    "image": tf.io.FixedLenFeature([28, 28], tf.float32),
    "label": tf.io.FixedLenFeature([1], tf.int64)}})
labels = parsed["label"].numpy().ravel()
model = tf.saved_model.load({str(model)!r})
infer = model.signatures["serving_default"]
name = list(infer.structured_input_signature[1])[0]
outputs = np.concatenate([list(infer(**{{name: part}}).values())[0].numpy()
                          for part in np.split(parsed["image"].numpy() / 255.0, 20)])
np.save({str(model) + ".npy"!r}, outputs)
print((outputs.argmax(1) == labels).mean())
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(str(model) + ".npy"), expected, atol=1e-3)
    return float(done.stdout.split()[-1])


def test_trains_evaluates_predicts_and_exports(start: Callable[..., Job], mnist: Path,
                                               tmp_path: Path) -> None:
    check_tutorial_5(start, mnist, tmp_path, TRAINED, "--num_epochs=2", "--evaluation_steps=50",
                     "--log_loss_steps=20")


@nightly
def test_tutorial_5_at_full_size(start: Callable[..., Job], tmp_path: Path) -> None:
    data = generate_mnist(tmp_path / "mnist", 1.0)
    check_tutorial_5(start, data, tmp_path, 60_000, "--num_epochs=5", "--evaluation_steps=200",
                     "--num_minibatches_per_task=64")


def check_tutorial_5(start: Callable[..., Job], mnist: Path, tmp_path: Path, records: int,
                     *sizes: str) -> None:
    """Trains with the flags of tutorial 5 and `sizes`, evaluates, predicts, and runs the exported
    model: all agree."""
    job = start("mnist", None, *model_flags(
        mnist, "--num_ps_pods=2", "--num_workers=4", "--grads_to_wait=1",
        f"--output={tmp_path}/model", f"--tensorboard_log_dir={tmp_path}/events", *sizes),
        env=ONE_THREAD)
    view = job.assert_succeeded(1200)
    epochs = int(sizes[0].split("=")[1])
    interval = int(sizes[1].split("=")[1])
    steps = -(-records // 64) * epochs
    assert view["version"] == steps
    by_step = evaluations(job)
    print("evaluations", by_step)
    assert max(by_step) == steps and by_step[steps] > 0.95
    # One at the first version at or above each multiple, unless several were passed at once.
    assert len(by_step) >= 4 and all(step >= interval for step in by_step)
    assert len(losses(job)) >= 8
    assert losses(job)[0][1] > losses(job)[-1][1]
    assert list((tmp_path / "events").glob("evaluation/*tfevents*"))
    assert view["metrics"]["time.step"] > 0.05

    checkpoint = newest_checkpoint(job)
    again = start("again", None, *model_flags(mnist, f"--checkpoint_dir_for_init={checkpoint}",
                                              "--num_workers=2"), verb="evaluate",
                  env=ONE_THREAD)
    again.assert_succeeded(200)
    assert list(evaluations(again).values()) == [pytest.approx(by_step[steps], abs=1e-6)]

    predict = start("predict", None, "--model_zoo=model_zoo", f"--model_def={MNIST}",
                    f"--prediction_data={mnist}/test", f"--checkpoint_dir_for_init={checkpoint}",
                    "--num_workers=2", f"--output={tmp_path}/predictions", verb="predict",
                    env=ONE_THREAD)
    predict.assert_succeeded(200)
    predicted = predictions(tmp_path / "predictions")
    assert predicted.shape == (records // 6, 10)
    accuracy = accuracy_of_saved_model(tmp_path / "model", mnist, predicted)
    assert accuracy == pytest.approx(by_step[steps], abs=1e-6)


def test_embeddings_without_bounds_are_trained_and_exported(start: Callable[..., Job],
                                                            tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "elasticdl.data_gen", "frappe", str(tmp_path / "frappe"),
                    "--fraction=0.2"], cwd=ROOT, check=True, timeout=120,
                   env=dict(os.environ, PYTHONPATH=str(ROOT)))
    job = start("deepfm", None, "--model_zoo=model_zoo",
                "--model_def=deepfm_edl_embedding.deepfm_edl_embedding.custom_model",
                f"--training_data={tmp_path}/frappe/train",
                f"--validation_data={tmp_path}/frappe/test", "--minibatch_size=128",
                "--num_workers=2", "--num_ps_pods=2", "--use_async=true",
                f"--output={tmp_path}/model", env=ONE_THREAD)
    view = job.assert_succeeded(300)
    (evaluation,) = view["evaluations"]
    print(evaluation)
    auc = evaluation["metrics"]["probs.auc"]
    assert auc > 0.79
    assert sum(server["rows"] for server in view["servers"]) > 1000

    again = start("again", None, "--model_zoo=model_zoo",
                  "--model_def=deepfm_edl_embedding.deepfm_edl_embedding.custom_model",
                  f"--validation_data={tmp_path}/frappe/test", "--num_workers=1",
                  f"--checkpoint_dir_for_init={newest_checkpoint(job)}", verb="evaluate",
                  env=ONE_THREAD)
    (repeated,) = again.assert_succeeded(200)["evaluations"]
    assert repeated["metrics"]["probs.auc"] == pytest.approx(auc, abs=1e-4)

    # The SavedModel has the rows, and computes the same metric without servers.
    program = f"""
import sys
import tensorflow as tf
sys.path.insert(0, {str(ROOT)!r})
from elasticdl import open_records
records = open_records({str(tmp_path / "frappe" / "test")!r})
parsed = tf.io.parse_example(records.read(0, len(records)), {{
    "feature": tf.io.FixedLenFeature([10], tf.int64),
    "label": tf.io.FixedLenFeature([], tf.int64)}})
infer = tf.saved_model.load({str(tmp_path / "model")!r}).signatures["serving_default"]
metric = tf.keras.metrics.AUC()
metric.update_state(parsed["label"], infer(feature=parsed["feature"])["probs"])
print(float(metric.result()))
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) == pytest.approx(auc, abs=1e-3)


BROKEN = {
    "a syntax error": (("def loss(", "def loss("), "def oops(:\n", "syntax error"),
    "a missing symbol": (("def loss(", "def no_loss("), "", "there is no 'loss'"),
    "a wrong signature": (("def feed(dataset, mode, metadata)", "def feed(dataset)"), "",
                          "cannot be called as feed(dataset, mode, metadata)"),
    "a loss that is NaN": (("def loss(", "def old_loss("),
                           "def loss(labels, predictions):\n"
                           "    return tf.reduce_sum(predictions) * float('nan')\n",
                           "NaN or infinite"),
    "a feed that cannot parse": (('"image"', '"no_such_feature"'), "", "cannot parse a record"),
    "a feed that does not repeat": (
        ("def feed(", "def old_feed("),
        "import itertools\n_calls = itertools.count()\n"
        "def feed(dataset, mode, metadata):\n"
        "    n = float(next(_calls))\n"
        "    return old_feed(dataset, mode, metadata).map(\n"
        "        lambda x, y: (x, y * 0 + tf.cast(n, y.dtype)))\n",
        "gave different batches"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_of_the_model_is_one_clear_message(start: Callable[..., Job], mnist: Path,
                                                   tmp_path: Path, fault: str) -> None:
    (old, new), added, expected = BROKEN[fault]
    text = (ROOT / "model_zoo/mnist_functional_api/mnist_functional_api.py").read_text()
    assert old in text
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "broken.py").write_text(text.replace(old, new) + "\n\n" + added)
    job = start("broken", None, f"--model_zoo={tmp_path}/zoo", "--model_def=broken.custom_model",
                f"--training_data={mnist}/train", "--num_workers=1", "--num_ps_pods=1",
                env=ONE_THREAD)
    assert job.wait(200) != 0
    output = job.output()
    assert expected in output
    assert "Traceback" not in output, output
    job.assert_nothing_left()


def test_an_empty_data_folder_is_named(start: Callable[..., Job], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    job = start("empty", None, "--model_zoo=model_zoo", f"--model_def={MNIST}",
                f"--training_data={tmp_path}/empty", "--num_workers=1", env=ONE_THREAD)
    assert job.wait(100) != 0
    assert f"--training_data={tmp_path}/empty" in job.output()
    assert "Traceback" not in job.output()


def test_no_parameter_server_is_an_error(start: Callable[..., Job], mnist: Path) -> None:
    job = start("none", None, *model_flags(mnist, "--num_ps_pods=0"))
    assert job.wait(20) != 0
    assert "--num_ps_pods=0" in job.output()


def test_a_worker_that_is_told_to_leave_gives_its_shards_back(
        start: Callable[..., Job], mnist: Path) -> None:
    job = start("leave", None, *model_flags(mnist, "--num_epochs=1", "--num_workers=2"),
                env=ONE_THREAD)
    await_trained(job, 0.05)
    victim = job.running("worker")[0]
    os.kill(victim["pid"], 15)
    view = job.assert_succeeded(300)
    assert view["version"] == -(-TRAINED // 64)


def await_trained(job: Job, share: float) -> None:
    def trained() -> bool:
        view = job.try_status()
        done = [d["records_done"] for d in view["datasets"] if d["name"] == "training"
                ] if view else []
        return job.process.poll() is not None or (bool(done) and done[0] >= share * 2 * TRAINED)

    wait_for(f"{share:.0%} of the records", trained, 240)


def kill_and_train(start: Callable[..., Job], mnist: Path, name: str, kills: List[str]) -> float:
    """Trains with three workers while processes are killed. Returns the last accuracy."""
    job = start(name, None, *model_flags(
        mnist, "--num_epochs=2", "--num_workers=3", "--num_ps_pods=2",
        "--recovery_checkpoint_secs=2", "--relaunch_on_worker_failure=100"), env=ONE_THREAD)
    killing = Killing(job)
    for number, role in enumerate(kills):
        await_trained(job, (number + 0.5) / (len(kills) + 1))
        killing.kill_now(role)
    view = job.assert_succeeded(400)
    killing.report()
    steps = -(-TRAINED // 64) * 2
    assert view["version"] == steps
    trained = next(d for d in view["datasets"] if d["name"] == "training")
    assert trained["records_done"] == 2 * TRAINED
    return evaluations(job)[steps]


def test_kills_of_all_roles_change_nothing_but_time(start: Callable[..., Job],
                                                    mnist: Path) -> None:
    accuracy = kill_and_train(start, mnist, "killed", ["worker", "ps", "master", "worker"])
    print("accuracy", accuracy)
    assert accuracy > 0.93


@nightly
def test_kills_do_not_change_the_accuracy(start: Callable[..., Job], mnist: Path) -> None:
    medians = {}
    for kind, kills in (("undisturbed", []), ("killed", ["worker", "ps", "master", "worker"])):
        found = [kill_and_train(start, mnist, f"{kind}-{run}", kills) for run in range(3)]
        medians[kind] = sorted(found)[1]
    print(medians)
    assert abs(medians["killed"] - medians["undisturbed"]) < 0.01
