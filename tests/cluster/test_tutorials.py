"""Tutorials 1 and 2 in a cluster: the printed commands, except for image tags and paths."""

from pathlib import Path

import pytest
from cluster import ROOT, nightly, wait_for
from images import BAKED
from jobs import Job
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

EXAMPLES = ROOT / "elasticdl/manifests/examples"


def submit(job, name: str, flags, command: str, *volumes: str) -> None:
    job.name = name
    job.cli("train", *flags, f"--job_name={name}", f"--job_command={command}",
            "--volume=" + ";".join(volumes))


def check_story(job, seconds: float = 300) -> dict:
    """Checks the pods that the tutorials list, and that the job succeeds."""
    running = dict.fromkeys(["master", *(f"{role}-0" for role in ROLES)], "Running")
    wait_for("the tutorial's pods to run", lambda: job.shown() == running, 120)
    view = job.wait_for_end(seconds)
    assert_trained(view)
    ended = dict.fromkeys(["master", "chief-0", "worker-0"], "Succeeded")
    wait_for("ps and evaluator to be stopped", lambda: job.shown() == ended, 30)
    return view


def data_volume(data: Path) -> str:
    return f"host_path={data},mount_path=/data"


def test_tutorial_1_trains_iris_with_four_roles(job, tmp_path):
    data = iris_data(tmp_path)
    submit(job, "test-iris-estimator", IRIS, IRIS_COMMAND, data_volume(data), job.packages())
    view = check_story(job)
    assert evaluation(view, "accuracy") > 0.9
    assert list(data.glob("**/model.ckpt-*.index")), "checkpoints are on the volume"


@nightly  # beyond tutorial 1 it only shows that DeepFM trains, as local jobs do
def test_tutorial_2_trains_deepfm_with_four_roles(job, tmp_path):
    data = criteo_data(tmp_path)
    submit(job, "test-deepfm-estimator", DEEPFM, DEEPFM_COMMAND, data_volume(data), job.packages())
    view = check_story(job)
    assert evaluation(view, "AUC") > 0.6
    assert list(data.glob("**/model.ckpt-*.index")), "checkpoints are on the volume"


@pytest.fixture(scope="session")
def baked_image(images) -> str:
    images.push_baked()
    return BAKED


@nightly
def test_tutorial_1_from_an_image_with_tensorflow_in_it(job, baked_image, tmp_path):
    replaced = ("--worker_image", "--ps_image", "--image_pull_policy")
    flags = [flag for flag in IRIS if not flag.startswith(replaced)]
    data = iris_data(tmp_path)
    submit(job, "test-iris-estimator",
           [*flags, f"--worker_image={baked_image}", f"--ps_image={baked_image}",
            "--image_pull_policy=IfNotPresent"], IRIS_COMMAND, data_volume(data))
    assert evaluation(check_story(job, 600), "accuracy") > 0.9


class Demo:
    """The demo of tutorial 4: a pod that submits the job named demo."""

    def __init__(self, job, manifest: str, **replaced: str) -> None:
        """`replaced`: names of images in the manifest."""
        self.job, job.name = job, "demo"
        self.text = (EXAMPLES / manifest).read_text()
        for printed, here in replaced.items():
            self.text = self.text.replace(printed, here)

    def run(self) -> str:
        """Applies the manifest, and returns the phase in which the pod ends."""
        namespace = self.job.namespace
        namespace.cluster("kubectl", "-n", namespace.name, "apply", "-f", "-", stdin=self.text)
        return namespace.wait_for_phase("elasticdl-demo", "Succeeded", "Failed", seconds=600)

    def log(self) -> str:
        return self.job.namespace.kubectl("logs", "elasticdl-demo")


@nightly
def test_tutorial_4_submits_the_demo_from_a_pod_once_it_has_permissions(images, namespace,
                                                                        baked_image, tmp_path):
    job = Job(namespace, "demo", tmp_path)
    demo = Demo(job, "elasticdl-demo-k8s.yaml", **{"registry.example/elasticdl:dev": baked_image})
    assert demo.run() == "Failed"
    assert "apply -f elasticdl/manifests/examples/elasticdl-rbac.yaml" in demo.log()

    namespace.kubectl("apply", "-f", str(EXAMPLES / "elasticdl-rbac.yaml"))
    namespace.kubectl("delete", "pod", "elasticdl-demo")
    assert demo.run() == "Succeeded", demo.log()
    assert_trained(job.status())


@nightly
def test_tutorial_4_runs_the_demo_for_minikube_from_an_image_on_the_nodes(images, namespace,
                                                                          baked_image, tmp_path):
    images.load(baked_image, "elasticdl:dev")
    namespace.kubectl("apply", "-f", str(EXAMPLES / "elasticdl-rbac.yaml"))
    demo = Demo(Job(namespace, "demo", tmp_path), "elasticdl-demo-minikube.yaml")
    assert demo.run() == "Succeeded", demo.log()
    assert_trained(demo.job.status())
