"""The jobs of tutorials 1 and 2, for tests on this machine and in a cluster."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROLES = ("chief", "evaluator", "ps", "worker")

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
IRIS_COMMAND = "python -m model_zoo.iris.dnn_estimator"
DEEPFM = ["--image_name=elasticdl/elasticdl:1.0.0",
          "--worker_image=elasticdl:deepctr_estimator",
          "--ps_image=elasticdl:deepctr_estimator", *COMMON]
DEEPFM_COMMAND = ("python -m model_zoo.deepctr.deepfm_estimator "
                  "--training_data=/data/criteo_sample.txt "
                  "--validation_data=/data/criteo_sample.txt")


def iris_data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    shutil.copy(ROOT / "model_zoo" / "iris" / "iris.data", data)
    return data


def criteo_data(folder: Path, records: int = 3001) -> Path:
    data = folder / "data"
    data.mkdir()
    subprocess.run([sys.executable, "-m", "model_zoo.deepctr.gen_criteo_sample",
                    f"--records={records}", f"--output={data}/criteo_sample.txt"],
                   cwd=ROOT, check=True)
    return data


def assert_trained(view: dict) -> None:
    """All records of all epochs are done, and the last checkpoint was evaluated."""
    assert view["state"] == "succeeded", view
    (dataset,) = view["datasets"]
    assert dataset["records_done"] == dataset["records_total"] > 0
    assert dataset["records_not_trained"] == 0
    assert view["evaluated_step"] == view["checkpoint_step"] > 0
    assert view["remarks"] == []


def evaluation(view: dict, name: str) -> float:
    parts = dict(p.split(" = ") for p in view["evaluation"].split(" (")[0].split(", "))
    return float(parts[name])
