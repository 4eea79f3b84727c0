"""The cluster of tools/cluster, for tests: one per session, with a namespace per test.

A conftest.py imports the fixtures with `from cluster import cluster, namespace`; benchmarks use the
context managers.
"""

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Union

import pytest
from waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "cluster"
# For slow tests that add little to the other tests.
nightly = pytest.mark.skipif("ELASTICDL_NIGHTLY" not in os.environ, reason="left to make nightly")
NEEDS_ROOT = 77  # exit code of the tool if this machine cannot run a cluster


class Cluster:
    """A cluster under test. `name` selects a second one beside the default of the checkout."""

    def __init__(self, name: Optional[str] = None) -> None:
        self.env = dict(os.environ)
        if name:
            self.env["ELASTICDL_CLUSTER"] = name

    def run(self, *arguments: str, timeout: float = 120,
            stdin: Optional[str] = None) -> subprocess.CompletedProcess:
        """Runs tools/cluster; any exit code is allowed."""
        return subprocess.run([str(TOOL), *arguments], env=self.env, text=True, timeout=timeout,
                              input=stdin, capture_output=True, check=False)

    def __call__(self, *arguments: str, timeout: float = 120, stdin: Optional[str] = None) -> str:
        """Runs tools/cluster, which must succeed, and returns its output."""
        done = self.run(*arguments, timeout=timeout, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def kubeconfig(self) -> Path:
        return Path(self("kubeconfig"))


class Namespace:
    """A namespace for one test; every kubectl of it works there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        cluster("kubectl", "create", "namespace", name)
        # A pod that is created before these exist is rejected, or waits for its token.
        wait_for("the namespace's service account", lambda: cluster.run(
            "kubectl", "-n", name, "get", "sa/default", "cm/kube-root-ca.crt").returncode == 0)

    def kubectl(self, *arguments: str, timeout: float = 120) -> str:
        return self.cluster("kubectl", "-n", self.name, *arguments, timeout=timeout)

    def apply(self, *manifests: Dict) -> None:
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.cluster("kubectl", "-n", self.name, "apply", "-f", "-", stdin=items)

    def get(self, kind: str, name: str) -> Optional[Dict]:
        done = self.cluster.run("kubectl", "-n", self.name, "get", kind, name, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def phase(self, pod: str) -> Optional[str]:
        found = self.get("pod", pod)
        return found["status"].get("phase") if found else None

    def wait_for_phase(self, pod: str, *phases: str, seconds: float = 60) -> str:
        try:
            return wait_for(f"pod {pod}", lambda: self.phase(pod) in phases and self.phase(pod),
                            seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.kubectl('describe', 'pod', pod)}") from None

    def delete(self) -> None:
        self.cluster.run("kubectl", "delete", "namespace", self.name, "--wait=false")


def wait_for_crd(cluster: Cluster, name: str) -> None:
    """Waits until a resource can be used. `kubectl wait` alone fails if the CRD was created just
    now and has no conditions."""
    wait_for(f"the CRD {name} to be established", lambda: cluster.run(
        "kubectl", "wait", "--for=condition=Established", "--timeout=60s",
        f"crd/{name}").returncode == 0)


def kubelet_of(node: str) -> int:
    """The process id of the kubelet of a node."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]) == b"kubelet" and any(
                word.decode(errors="replace").endswith(f"={node}") for word in words):
            found.append(int(entry.name))
    (kubelet,) = found
    return kubelet


def pod(name: str, command: Union[str, List[str], None] = None, image: str = "busybox:1",
        node: Optional[str] = None, cpu: str = "10m", **spec: object) -> Dict:
    """A pod that runs once. `command` is a shell command, or a list."""
    container: Dict = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
                       "resources": {"requests": {"cpu": cpu}}}
    if command:
        container["command"] = ["sh", "-c", command] if isinstance(command, str) else command
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    container.update(spec.pop("container", {}))  # type: ignore[call-overload]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [container], "restartPolicy": "Never",
                     "terminationGracePeriodSeconds": 5, **spec}}


class NoCluster(Exception):
    """This machine cannot run a cluster; the message says why."""


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """The cluster of the checkout. A running one is used and kept; otherwise it ends at exit."""
    made = Cluster()
    was_up = made.run("status").returncode == 0
    # If Kubernetes was not compiled yet, that takes a quarter of an hour.
    done = made.run("up", timeout=3600)
    if done.returncode == NEEDS_ROOT:
        raise NoCluster(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        yield made
    finally:
        if not was_up:
            # A pulled image with TensorFlow has 60,000 files, which some disks delete slowly.
            made("down", timeout=600)


@contextlib.contextmanager
def fresh_namespace(cluster: Cluster, name: str) -> Iterator[Namespace]:
    """A namespace with that name and a number, deleted at the end."""
    made = Namespace(cluster, f"{name}-{int(time.time() * 1000) % 100000}")
    try:
        yield made
    finally:
        made.delete()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(running_cluster())
        except NoCluster as why:
            pytest.skip(str(why))
        yield made


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A fresh namespace, named after the test."""
    name = request.node.name.split("[")[0].replace("_", "-").lower()[:50].rstrip("-")
    with fresh_namespace(cluster, name) as made:
        yield made
