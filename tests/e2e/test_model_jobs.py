"""Jobs with --model_def: training, evaluations, the export, and what happens when processes die.

The workers are played by a program without TensorFlow (programs/model_worker.py).
"""

import os
import random
import re
import signal
from pathlib import Path
from typing import Callable

import pytest
from harness import PROGRAMS, Job, draw_seed, wait_for

WORKER = PROGRAMS / "model_worker.py"


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    (tmp_path / "zoo" / "tiny").mkdir(parents=True)
    (tmp_path / "zoo" / "tiny" / "model.py").write_text("custom_model = None\n")
    return tmp_path / "zoo"


def model_flags(zoo: Path, *more: str) -> list:
    return [f"--python={WORKER}", f"--model_zoo={zoo}", "--model_def=tiny.model.custom_model",
            "--minibatch_size=5", "--num_minibatches_per_task=2", *more]


def master_log(job: Job) -> str:
    return next(job.folder.glob("logs/*master*.log")).read_text(errors="replace")


def evaluated(job: Job) -> list:
    """(version, text) of each evaluation in the master's log."""
    return re.findall(r"Evaluation metrics\[step=(\d+)\]: (.*)", master_log(job))


def test_a_model_is_trained_evaluated_and_exported(start: Callable[..., Job], zoo: Path,
                                                   tmp_path: Path) -> None:
    output = tmp_path / "exported"
    job = start("tiny", "", *model_flags(
        zoo, "--training_data=100", "--validation_data=35", "--evaluation_steps=8",
        "--num_epochs=2", "--num_workers=2", f"--output={output}", "--log_loss_steps=1"))

    view = job.assert_succeeded()

    assert view["version"] == 40, "only training counts"
    versions = [int(version) for version, _ in evaluated(job)]
    # A multiple of --evaluation_steps that passes during an evaluation gets none of its own.
    assert versions[-1] == 40 and versions == sorted(versions), versions
    assert {text for _, text in evaluated(job)} == {"{'records': 35}"}
    assert [e["version"] for e in view["evaluations"]] == versions
    assert view["evaluations"][-1]["metrics"] == {"records": 35}
    assert view["evaluation"] == "records = 35 (version 40)"
    assert "records = 35 (version 40)" in job.output()
    assert output.read_text() == "40"
    assert {r["name"] for r in view["replicas"]} == {
        "elasticdl-tiny-worker-0", "elasticdl-tiny-worker-1", "elasticdl-tiny-ps-0"}


@pytest.mark.parametrize("role", ["master", "worker", "ps"])
def test_a_killed_process_changes_nothing_of_the_result(start: Callable[..., Job], zoo: Path,
                                                        tmp_path: Path, role: str) -> None:
    output = tmp_path / "exported"
    job = start("tiny", "", *model_flags(
        zoo, "--training_data=300", "--validation_data=60", "--evaluation_steps=20",
        "--num_workers=2", f"--output={output}", "--log_loss_steps=40"))
    chance = random.Random(draw_seed())
    for kill in range(4):
        goal = chance.randrange(4, 12) + 10 * kill
        wait_for(f"version {goal}", lambda goal=goal: (
            job.process.poll() is not None or (job.try_status() or {}).get("version", 0) >= goal))
        if job.process.poll() is not None:
            break
        if role == "master":
            victim = job.master_pid()
        else:
            victim = next((r["pid"] for r in job.running(role)), None)
        if victim:
            os.kill(victim, signal.SIGKILL)

    view = job.assert_succeeded()

    assert view["version"] == 60
    versions = [e["version"] for e in view["evaluations"]]
    assert versions[-1] == 60 and len(versions) >= 2, versions
    assert all(e["metrics"] == {"records": 60} for e in view["evaluations"])
    assert output.read_text() == "60"


def test_training_ends_at_max_step(start: Callable[..., Job], zoo: Path, tmp_path: Path) -> None:
    output = tmp_path / "exported"
    job = start("tiny", "", *model_flags(
        zoo, "--training_data=300", "--validation_data=20", "--max_step=7", "--num_workers=1",
        f"--output={output}", "--log_loss_steps=1"))

    view = job.assert_succeeded()

    assert view["version"] == 8, "the first version at or above --max_step"
    assert output.read_text() == "8"
    assert "260 of 300 records were not trained" in job.output()


def test_a_checkpoint_is_evaluated_and_predicted(start: Callable[..., Job], zoo: Path,
                                                 tmp_path: Path) -> None:
    trained = start("tiny", "", *model_flags(
        zoo, "--training_data=50", "--num_workers=1", "--log_loss_steps=1",
        f"--checkpoint_dir={tmp_path / 'checkpoints'}"))
    trained.assert_succeeded()
    (checkpoint,) = (tmp_path / "checkpoints" / "tiny").glob("version-10*")

    evaluate = start("tiny-eval", "", *model_flags(
        zoo, "--validation_data=25", f"--checkpoint_dir_for_init={checkpoint}",
        "--num_workers=2", "--log_loss_steps=1", "--num_epochs=3"), verb="evaluate")
    view = evaluate.assert_succeeded()
    assert [(e["version"], e["metrics"]) for e in view["evaluations"]] == [(10, {"records": 25})]
    assert not list(evaluate.folder.glob("checkpoints/version-*"))

    predict = start("tiny-predict", "", *model_flags(
        zoo, "--prediction_data=25", f"--checkpoint_dir_for_init={checkpoint}",
        "--num_workers=2", "--log_loss_steps=1"), verb="predict")
    view = predict.assert_succeeded()
    assert view["datasets"][0]["records_done"] == 25


def test_a_worker_fails_the_job_with_one_message(start: Callable[..., Job], zoo: Path) -> None:
    job = start("tiny", "", *model_flags(
        zoo, "--training_data=10", "--custom_data_reader=fail", "--num_workers=2"))

    assert job.wait() == 1
    message = "cannot import the model: No module named 'nowhere'"
    assert job.output().count(message) == 1, job.output()
    assert re.search(r"elasticdl-tiny-worker-\d: " + re.escape(message), job.status()["reason"])
    assert job.status()["relaunches"] == 0


def test_a_model_that_does_not_exist_starts_nothing(start: Callable[..., Job], zoo: Path) -> None:
    job = start("tiny", "", f"--model_zoo={zoo}", "--model_def=tiny.nothing.custom_model",
                "--training_data=10")

    assert job.wait() == 1
    assert f"{zoo}/tiny/nothing.py does not exist" in job.output()
