"""Tutorial 5 from top to bottom: the printed commands, except for sizes and how quickly a worker
reads its data, which the test controls with a file."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import ROOT, wait_for
from zoo import IMAGE, publish

EXAMPLES = ROOT / "elasticdl/manifests/examples"
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": "fileserver-claim"},
         "spec": {"accessModes": ["ReadWriteMany"],
                  "resources": {"requests": {"storage": "1Gi"}}}}
# A shard to train takes six seconds until the file exists, so that the job outlasts the story.
PACED = """

import os, time

_feed = feed


def feed(dataset, mode, metadata):
    deadline = time.monotonic() + (6 if mode == "training" else 0)
    while not os.path.exists("/data/fast") and time.monotonic() < deadline:
        time.sleep(0.1)
    return _feed(dataset, mode, metadata)
"""
# Two nodes have two CPUs each. Four workers and one nginx have room beside master and ps; of five
# nginx pods, the last one fits only when three workers are gone.
SMALL, WORKER, NGINX = "cpu=0.1,memory=256Mi", "cpu=0.6,memory=1024Mi", "0.55"
RECORDS, EPOCHS = 6_000, 5


def resources(role: str, size: str) -> list:
    # A CPU limit would only make the start of four workers on two cores slower.
    return [f"--{role}_resource_request={size}",
            f"--{role}_resource_limit=cpu=2,{size.split(',')[1]}"]


def evaluations(log: str) -> dict:
    """{step: accuracy} of the lines that the tutorial greps."""
    found = re.findall(r"Evaluation metrics\[step=(\d+)\]: \{.*'accuracy': ([0-9.e-]+)", log)
    return {int(step): float(accuracy) for step, accuracy in found}


def records_trained(job) -> int:
    return next(each["records_done"] for each in job.status()["datasets"]
                if each["name"] == "training")


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """data/mnist, as scripts/gen_dataset.sh makes it, with a tenth of the records."""
    subprocess.run([str(ROOT / "scripts/gen_dataset.sh"), "data", "--fraction=0.1"], cwd=tmp_path,
                   check=True, timeout=180, env={"PATH": str(Path(sys.executable).parent)
                                                 + ":/usr/bin:/bin"})
    return tmp_path / "data/mnist"


def create(namespace, name: str, **replaced: str) -> None:
    """kubectl create -f FILE, with other sizes."""
    text = (EXAMPLES / name).read_text()
    for printed, here in replaced.items():
        assert f"{printed}: " in text
        text = re.sub(rf"\b{printed}: .*", f"{printed}: {here}", text)
    namespace.cluster("kubectl", "-n", namespace.name, "create", "-f", "-", stdin=text)


def prepare(job, mnist: Path) -> None:
    """Priority classes, claim and data."""
    # Earlier tests may have made the classes of this cluster.
    job.namespace.kubectl("delete", "priorityclass", "high", "low", "--ignore-not-found")
    create(job.namespace, "high.yaml")
    create(job.namespace, "low.yaml")
    job.namespace.apply(CLAIM)
    create(job.namespace, "my-pod.yaml")
    job.namespace.wait_for_phase("my-pod", "Running")
    job.namespace.kubectl("cp", str(mnist), "my-pod:/data")


def test_tutorial_5_trains_mnist_while_the_cluster_changes(images, zoo, job, mnist):
    prepare(job, mnist)
    model = zoo.folder / "mnist_functional_api/mnist_functional_api.py"
    model.write_text(model.read_text() + PACED)
    publish(zoo)
    job.name = "test-mnist"

    job.cli("train", f"--image_name={IMAGE}", "--model_zoo=model_zoo",
            "--model_def=mnist_functional_api.mnist_functional_api.custom_model",
            "--training_data=/data/mnist/train", "--validation_data=/data/mnist/test",
            f"--num_epochs={EPOCHS}", *resources("master", SMALL), "--master_pod_priority=high",
            *resources("worker", WORKER), "--worker_pod_priority=low",
            *resources("ps", SMALL), "--ps_pod_priority=high", "--minibatch_size=64",
            "--num_minibatches_per_task=8", "--num_ps_pods=2", "--num_workers=4",
            "--evaluation_steps=50", "--log_loss_steps=20", "--grads_to_wait=1",
            "--job_name=test-mnist", "--log_level=INFO", "--image_pull_policy=Always",
            "--volume=mount_path=/data,claim_name=fileserver-claim;" + job.packages(),
            "--distribution_strategy=ParameterServerStrategy",
            # Four programs of TensorFlow share two cores.
            "--envs=TF_NUM_INTRAOP_THREADS=1,TF_NUM_INTEROP_THREADS=1")

    # kubectl get pods
    names = [f"elasticdl-test-mnist-{end}" for end in (
        "master", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2", "worker-3")]
    wait_for("the pods of the tutorial to run", lambda: {
        name: pod["status"]["phase"] for name, pod in job.pods().items()
    } == dict.fromkeys(names, "Running"), 120)

    def loss_lines(worker: str) -> list:
        log = job.namespace.kubectl("logs", f"elasticdl-test-mnist-{worker}")
        return re.findall(r"Loss = [0-9.e+-]+, steps = \d+", log)

    def master_log() -> str:
        return job.namespace.kubectl("logs", "elasticdl-test-mnist-master")

    wait_for("worker 0 to print its loss", lambda: loss_lines("worker-0"), 120)
    wait_for("the master to print an evaluation", lambda: evaluations(master_log()), 120)

    # Fault tolerance.
    job.namespace.kubectl("delete", "pod", "elasticdl-test-mnist-worker-0")
    job.wait_for_workers({"worker-1", "worker-2", "worker-3", "worker-4"})
    wait_for("worker 4 to train", lambda: loss_lines("worker-4"), 120)

    # Elastic scheduling.
    create(job.namespace, "nginx.yaml", cpu=NGINX, memory="64Mi", **{"ephemeral-storage": "16Mi"})
    wait_for("one worker to be left", lambda: len(job.workers("Running")) == 1
             and len(job.workers("Pending")) == 3, 90)
    assert job.workers("Pending") == {"worker-5", "worker-6", "worker-7"}
    wait_for("the status to say why they wait", lambda: [
        "Insufficient cpu" in each["reason"] for each in job.status()["replicas"]
        if each["state"] == "pending"] == [True] * 3, 20)
    wait_for("five nginx pods to run", lambda: job.namespace.kubectl(
        "get", "deployment", "test-nginx", "-o", "jsonpath={.status.readyReplicas}") == "5", 60)
    trained = records_trained(job)
    wait_for("the worker that is left to train a shard",
             lambda: records_trained(job) > trained, 60)
    job.namespace.kubectl("scale", "deployment.v1.apps/test-nginx", "--replicas=1")
    wait_for("four workers to train again", lambda: len(job.workers("Running")) == 4, 90)

    job.namespace.kubectl("exec", "my-pod", "--", "touch", "/data/fast")
    view = job.wait_for_end(300)
    assert view["state"] == "succeeded", f"{view}\n{master_log()[-3000:]}"
    assert records_trained(job) == RECORDS * EPOCHS
    assert [each["records_not_trained"] for each in view["datasets"]] == [0] * len(view["datasets"])
    steps = -(-RECORDS // 64) * EPOCHS
    assert view["version"] == steps
    by_step = evaluations(master_log())
    print("evaluations", by_step)
    assert max(by_step) == steps and by_step[steps] > 0.9
    assert view["relaunches"] == 4
