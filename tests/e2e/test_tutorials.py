"""The tutorials' commands as printed, but for paths, with real TensorFlow."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest
from harness import ROOT, Job, wait_for

ROLES = ("chief", "evaluator", "ps", "worker")

# As tutorial 1 and 2 print them; the host path is put in.
COMMON = """
  --num_workers=1 --num_ps=1 --num_evaluator=1
  --master_resource_request=cpu=0.2,memory=1024Mi --master_resource_limit=cpu=1,memory=2048Mi
  --ps_resource_request=cpu=0.2,memory=1024Mi --ps_resource_limit=cpu=1,memory=2048Mi
  --worker_resource_request=cpu=0.3,memory=1024Mi --worker_resource_limit=cpu=1,memory=2048Mi
  --chief_resource_request=cpu=0.3,memory=1024Mi --chief_resource_limit=cpu=1,memory=2048Mi
  --evaluator_resource_request=cpu=0.3,memory=1024Mi
  --evaluator_resource_limit=cpu=1,memory=2048Mi
  --distribution_strategy=ParameterServerStrategy --need_tf_config=true
""".split()
IRIS = ["--image_name=elasticdl:1.0.0", "--worker_image=elasticdl:iris_estimator",
        "--ps_image=elasticdl:iris_estimator", "--image_pull_policy=Never", *COMMON]
DEEPFM = ["--image_name=elasticdl/elasticdl:1.0.0",
          "--worker_image=elasticdl:deepctr_estimator",
          "--ps_image=elasticdl:deepctr_estimator", *COMMON]
IRIS_COMMAND = "python -m model_zoo.iris.dnn_estimator"


def iris_data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(ROOT / "model_zoo" / "iris" / "iris.data", data)
    return data


def volume(data: Path) -> str:
    return f"--volume=host_path={data},mount_path=/data"


def log(job: Job, role: str) -> str:
    return "".join(p.read_text(errors="replace")
                   for p in sorted(job.folder.glob(f"logs/*-edljob-{role}-*.log")))


def check_trained(job: Job, seconds: float = 240) -> dict:
    """The job ended well: all records of all epochs done, the last checkpoint judged."""
    assert job.wait(seconds) == 0, job.tail()
    view = job.assert_succeeded()
    dataset = job.dataset(view)
    assert dataset["records_done"] == dataset["records_total"] > 0
    assert dataset["records_not_trained"] == 0
    assert view["evaluated_step"] == view["checkpoint_step"] > 0
    assert view["remarks"] == []
    return view


def evaluation(view: dict, name: str) -> float:
    parts = dict(p.split(" = ") for p in view["evaluation"].split(" (")[0].split(", "))
    return float(parts[name])


def test_tutorial_1_trains_iris_with_four_roles(start: Callable, tmp_path: Path) -> None:
    data = iris_data(tmp_path)
    job = start("test-iris-estimator", IRIS_COMMAND, *IRIS, volume(data))
    view = check_trained(job)
    assert sorted(r["name"] for r in view["replicas"]) == [
        f"test-iris-estimator-edljob-{role}-0" for role in ROLES]
    dataset = job.dataset(view)
    assert dataset["records_total"] % 16 != 0, "the last batch must be a short one"
    assert evaluation(view, "accuracy") > 0.9
    assert list(data.glob("**/model.ckpt-*.index")), "checkpoints lie under the data directory"
    assert "Saving checkpoints for" in log(job, "chief")
    assert "no effect" in job.output(), "of the image flags"


def test_tutorial_2_trains_deepfm_with_four_roles(start: Callable, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    subprocess.run([sys.executable, "-m", "model_zoo.deepctr.gen_criteo_sample", "--records=3001",
                    f"--output={data}/criteo_sample.txt"], cwd=ROOT, check=True)
    job = start("test-deepfm-estimator",
                "python -m model_zoo.deepctr.deepfm_estimator "
                "--training_data=/data/criteo_sample.txt --validation_data=/data/criteo_sample.txt",
                *DEEPFM, volume(data))
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
    lives: List[dict] = [r for r in view["replicas"] if r["role"] == role]
    assert [(r["index"], r["id"]) for r in lives] == [(0, 0), (0, 1)]
    assert evaluation(view, "accuracy") > 0.9
