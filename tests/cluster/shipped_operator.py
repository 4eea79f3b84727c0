"""The operator of the shipped manifests, installed by the commands of a page of docs: a Deployment
in the namespace kubeflow, for the TFJobs of all namespaces.
"""

import contextlib
import re
from typing import Iterator, List

from cluster import ROOT, Cluster
from images import Images
from tfjobs import MANIFESTS

LABEL = "control-plane=kubeflow-training-operator"


def push_its_image(images: Images) -> None:
    """Builds our image, and pushes it under the name that the manifests have."""
    (name,) = re.findall(r"image: (elasticdl/\S+)", images.cluster(
        "kubectl", "kustomize", str(MANIFESTS / "operator")))
    with images.builder.locked():
        images.builder.build_ours("base", "master")
        images.push(name, name)


def run_kubectl(cluster: Cluster, command: List[str]) -> str:
    """Runs a kubectl command of a page as a user does in the root of the tree."""
    assert command[0] == "kubectl", command
    return cluster("kubectl", *(str(ROOT / word) if word.startswith("elasticdl/") else word
                                for word in command[1:]))


def wait_for_rollout(cluster: Cluster) -> None:
    cluster("kubectl", "-n", "kubeflow", "rollout", "status", "--timeout=120s",
            "deployment/training-operator", timeout=150)


def log_of(cluster: Cluster) -> str:
    return cluster("kubectl", "-n", "kubeflow", "logs", "--prefix", "--tail=-1", "-l", LABEL)


@contextlib.contextmanager
def log_on_failure(cluster: Cluster) -> Iterator[None]:
    """Prints the operator's state and log if the block fails."""
    try:
        yield
    except BaseException:
        for words in (["describe", "pods"], ["logs", "--prefix", "--tail=-1"]):
            about = cluster.run("kubectl", "-n", "kubeflow", *words, "-l", LABEL)
            print(about.stdout, about.stderr)
        raise


@contextlib.contextmanager
def removed_at_the_end(cluster: Cluster) -> Iterator[None]:
    """Removes the operator and its namespace after the block. The CRD stays, because other tests
    need it."""
    try:
        with log_on_failure(cluster):
            yield
    finally:
        cluster("kubectl", "delete", "--ignore-not-found", "-k", str(MANIFESTS / "operator"),
                timeout=150)
        cluster("kubectl", "delete", "--ignore-not-found", "namespace/kubeflow", timeout=300)
