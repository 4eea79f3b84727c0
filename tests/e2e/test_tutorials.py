"""The commands of the tutorials, except for paths, with real TensorFlow."""

import os
import signal
from pathlib import Path
from typing import Callable, List

import pytest
from harness import Job, wait_for
from tutorials import (
    DEEPFM,
    DEEPFM_COMMAND,
    IRIS,
    IRIS_COMMAND,
    ROLES,
    assert_trained,
    criteo_data,
    evaluation,
    iris_data,
)


def volume(data: Path) -> str:
    return f"--volume=host_path={data},mount_path=/data"


def log(job: Job, role: str) -> str:
    return "".join(p.read_text(errors="replace")
                   for p in sorted(job.folder.glob(f"logs/*-edljob-{role}-*.log")))


def check_trained(job: Job, seconds: float = 240) -> dict:
    assert job.wait(seconds) == 0, job.tail()
    view = job.assert_succeeded()
    assert_trained(view)
    return view


def test_tutorial_1_trains_iris_with_four_roles(start: Callable, tmp_path: Path) -> None:
    data = iris_data(tmp_path)
    job = start("test-iris-estimator", IRIS_COMMAND, *IRIS, volume(data))
    view = check_trained(job)
    assert sorted(r["name"] for r in view["replicas"]) == [
        f"test-iris-estimator-edljob-{role}-0" for role in ROLES]
    dataset = job.dataset(view)
    assert dataset["records_total"] % 16 != 0, "the last batch must be shorter than the others"
    assert evaluation(view, "accuracy") > 0.9
    assert list(data.glob("**/model.ckpt-*.index")), "checkpoints must be in the data directory"
    assert "Saving checkpoints for" in log(job, "chief")
    assert "no effect" in job.output(), "the image flags must be reported"


def test_tutorial_2_trains_deepfm_with_four_roles(start: Callable, tmp_path: Path) -> None:
    job = start("test-deepfm-estimator", DEEPFM_COMMAND, *DEEPFM, volume(criteo_data(tmp_path)))
    view = check_trained(job, 400)
    assert evaluation(view, "AUC") > 0.6
    assert "global_step/sec" in log(job, "chief")
    assert "into /data/ckpts/model.ckpt" in log(job, "chief")


@pytest.mark.parametrize("role", ["ps", "chief"])
def test_iris_recovers_from_the_loss_of(role: str, start: Callable, tmp_path: Path) -> None:
    job = start(f"iris-{role}", IRIS_COMMAND, *IRIS, volume(iris_data(tmp_path)))
    wait_for("a checkpoint and a third of the records", lambda: (
        (v := job.try_status()) and v["checkpoint_step"] > 0 and v["datasets"]
        and v["datasets"][0]["records_done"] * 3 > v["datasets"][0]["records_total"]), 120)
    (victim,) = job.running(role)
    assert victim["pid"] in job.leftovers()
    os.kill(victim["pid"], signal.SIGKILL)
    view = check_trained(job, 300)
    replicas: List[dict] = [r for r in view["replicas"] if r["role"] == role]
    assert [(r["index"], r["id"]) for r in replicas] == [(0, 0), (0, 1)]
    assert evaluation(view, "accuracy") > 0.9
