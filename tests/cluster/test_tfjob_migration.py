"""A running TFJob goes from the upstream operator to ours and back, and no pod is restarted."""

import contextlib
import json
import re
import shlex
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional

import pytest
from cluster import ROOT, Cluster, Namespace, wait_for, wait_for_crd
from images import Images
from peers import (
    UPSTREAM,
    UpstreamOperator,
    apply_crd,
    folder_of,
    installed_upstream,
    needs_peer,
)
from shipped_operator import (
    LABEL,
    log_of,
    log_on_failure,
    push_its_image,
    run_kubectl,
    wait_for_rollout,
)
from tfjobs import (
    MANIFESTS,
    SLEEP,
    Operator,
    conditions_of,
    pods_of,
    replicas,
    tfjob,
    wait_for_condition,
)

pytestmark = needs_peer(UPSTREAM)

ROLES = {"Chief": 1, "PS": 1, "Worker": 2}
Start = Callable[[], contextlib.AbstractContextManager]


def apply_ours(cluster: Cluster) -> None:
    """The command of docs/tfjob.md."""
    cluster("kubectl", "apply", "-f", str(MANIFESTS / "crd.yaml"))
    wait_for_crd(cluster, "tfjobs.kubeflow.org")


@pytest.fixture
def ours(cluster: Cluster, namespace: Namespace, tmp_path: Path) -> Start:
    def start() -> Operator:
        apply_ours(cluster)
        return Operator(namespace, tmp_path / "operator.log")
    return start


@pytest.fixture
def upstream(cluster: Cluster, namespace: Namespace, tmp_path: Path) -> Iterator[Start]:
    def start() -> Operator:
        apply_crd(cluster, UPSTREAM, "tfjobs.kubeflow.org")
        return UpstreamOperator(namespace, tmp_path)
    yield start
    apply_ours(cluster)  # other tests need it


def upstream_examples() -> List[str]:
    """The manifests of TFJobs among the examples of the upstream operator."""
    texts = [path.read_text()
             for path in sorted((folder_of(UPSTREAM) / "tensorflow").rglob("*.yaml"))]
    # Some name a namespace, which would have to exist.
    return [text.replace("  namespace: kubeflow\n", "") for text in texts
            if re.search(r"^kind: \"?TFJob", text, re.MULTILINE)]


def identities(namespace: Namespace, kind: str) -> Dict[str, str]:
    """The uids of all objects of that kind, by name."""
    listed = json.loads(namespace.kubectl("get", kind, "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed}


def restarts(namespace: Namespace, job: str) -> Dict[str, int]:
    return {name: pod["status"]["containerStatuses"][0]["restartCount"]
            for name, pod in pods_of(namespace, job).items()}


def all_run(namespace: Namespace, job: str) -> bool:
    pods = pods_of(namespace, job)
    return len(pods) == sum(ROLES.values()) and all(
        pod["status"].get("phase") == "Running" for pod in pods.values())


def moving_job() -> Dict:
    """A job whose chief exits when the file /tmp/end exists; then the job has succeeded."""
    until_told = "until [ -e /tmp/end ]; do sleep 0.1; done"
    roles = {role: replicas(count, until_told if role == "Chief" else SLEEP,
                            restart="OnFailure") for role, count in ROLES.items()}
    return tfjob("moved", run_policy={"cleanPodPolicy": "Running"}, **roles)


def migrate(namespace: Namespace, first: Start, second: Start,
            between: Callable[[], None] = lambda: None) -> None:
    with first():
        namespace.apply(moving_job())
        wait_for("all pods to run", lambda: all_run(namespace, "moved"), 120)
        begun = wait_for_condition(namespace, "moved", "Running")
    pods, services = identities(namespace, "pods"), identities(namespace, "services")
    assert len(services) == sum(ROLES.values())
    between()
    with second():
        # A second job runs, so the operator has looked at the first.
        namespace.apply(tfjob("next", command="exit 0", Worker=1))
        wait_for_condition(namespace, "next", "Succeeded")
        namespace.kubectl("delete", "tfjob", "next")
        wait_for("the second job's pods to go", lambda: not pods_of(namespace, "next"))
        assert identities(namespace, "pods") == pods
        assert set(restarts(namespace, "moved").values()) == {0}
        assert [condition["type"] for condition in conditions_of(namespace, "moved")] == [
            "Created", "Running"]
        namespace.kubectl("exec", "moved-chief-0", "--", "touch", "/tmp/end")
        ended = wait_for_condition(namespace, "moved", "Succeeded", seconds=120)
        # Its policy about pods that run still holds for pods of the first operator.
        wait_for("all others to be deleted", lambda: set(pods_of(namespace, "moved")) == {
            "moved-chief-0"}, 60)
    assert ended["metadata"]["uid"] == begun["metadata"]["uid"]
    assert ended["status"]["startTime"] == begun["status"]["startTime"]
    assert not any(condition["type"] in ("Failed", "Restarting")
                   for condition in ended["status"]["conditions"])


def test_our_operator_takes_over_a_running_job(
        namespace: Namespace, upstream: Start, ours: Start) -> None:
    migrate(namespace, upstream, ours)


def test_the_upstream_operator_takes_a_running_job_back(
        cluster: Cluster, namespace: Namespace, upstream: Start, ours: Start) -> None:
    def remembered() -> Optional[Dict]:
        return (namespace.get("tfjob", "moved") or {})["status"].get("elasticdl")

    def remember() -> None:
        namespace.kubectl("patch", "tfjob", "moved", "--subresource=status", "--type=merge", "-p",
                          '{"status": {"elasticdl": {"retries": 1}}}')
        assert remembered() == {"retries": 1}

    migrate(namespace, ours, upstream, remember)
    # What our operator remembers is lost, also for one of ours that comes later.
    apply_ours(cluster)
    assert remembered() is None


def commands_of_the_page(heading: str) -> List[List[str]]:
    """The commands of the first block below a heading."""
    text = (ROOT / "docs/tfjob.md").read_text()
    section = text[text.index(f"{heading}\n"):]
    block = re.search(r"^```bash\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [shlex.split(line) for line in block[1].splitlines()]


def test_the_five_commands_of_the_page_move_a_cluster(
        images: Images, namespace: Namespace, tmp_path: Path) -> None:
    cluster = namespace.cluster
    commands = commands_of_the_page("## Move a cluster from Kubeflow's operator")
    assert len(commands) == 5
    push_its_image(images)
    try:
        with installed_upstream(images, tmp_path), log_on_failure(cluster):
            namespace.apply(moving_job())
            wait_for("all pods to run", lambda: all_run(namespace, "moved"), 120)
            begun = wait_for_condition(namespace, "moved", "Running")
            pods, services = identities(namespace, "pods"), identities(namespace, "services")

            for command in commands:
                printed = run_kubectl(cluster, command)
            assert re.search(rf"^{namespace.name} +moved +Running", printed, re.MULTILINE), printed
            wait_for_rollout(cluster)

            # New jobs are accepted, and the operator has looked at the first one when they run.
            namespace.apply(tfjob("next", command="exit 0", Worker=1))
            wait_for_condition(namespace, "next", "Succeeded")
            assert pods.items() <= identities(namespace, "pods").items()
            assert services.items() <= identities(namespace, "services").items()
            assert set(restarts(namespace, "moved").values()) == {0}
            namespace.kubectl("exec", "moved-chief-0", "--", "touch", "/tmp/end")
            ended = wait_for_condition(namespace, "moved", "Succeeded", seconds=120)
            assert ended["status"]["startTime"] == begun["status"]["startTime"]
            assert "operator: watching TFJobs" in log_of(cluster)
    finally:
        apply_ours(cluster)


def test_both_operators_run_side_by_side(
        images: Images, namespace: Namespace, tmp_path: Path) -> None:
    cluster = namespace.cluster
    commands = commands_of_the_page("### Keep Kubeflow's operator for other kinds of jobs")
    push_its_image(images)
    try:
        with installed_upstream(images, tmp_path), log_on_failure(cluster):
            namespace.apply(moving_job())
            wait_for("all pods to run", lambda: all_run(namespace, "moved"), 120)
            pods = identities(namespace, "pods")

            for command in commands:
                run_kubectl(cluster, command)
            cluster("kubectl", "-n", "elasticdl-operator", "rollout", "status", "--timeout=120s",
                    "deployment/elasticdl-training-operator", timeout=150)

            # Ours has the TFJobs, and the other one the PyTorchJobs.
            namespace.apply(tfjob("next", command="exit 0", Worker=1),
                            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
                             "metadata": {"name": "torch"},
                             "spec": {"pytorchReplicaSpecs": {"Master": {
                                 "replicas": 1, "template": {"spec": {"containers": [
                                     {"name": "pytorch", "image": "busybox:1",
                                      "command": ["true"]}]}}}}}})
            wait_for_condition(namespace, "next", "Succeeded")
            wait_for("the PyTorchJob to succeed", lambda: "Succeeded" in {
                condition["type"] for condition in (namespace.get("pytorchjob", "torch") or {}).get(
                    "status", {}).get("conditions", [])}, 120)
            logs = cluster("kubectl", "-n", "elasticdl-operator", "logs", "--tail=-1", "-l", LABEL)
            assert "operator: watching TFJobs" in logs
            assert "forbidden" not in logs.lower()
            assert pods.items() <= identities(namespace, "pods").items()
            namespace.kubectl("exec", "moved-chief-0", "--", "touch", "/tmp/end")
            wait_for_condition(namespace, "moved", "Succeeded", seconds=120)
    finally:
        cluster("kubectl", "delete", "--ignore-not-found", "-k",
                str(MANIFESTS / "beside-kubeflow"), timeout=300)
        apply_ours(cluster)


def test_the_examples_of_the_upstream_operator_are_valid(namespace: Namespace) -> None:
    apply_ours(namespace.cluster)
    examples = upstream_examples()
    assert len(examples) >= 4
    for example in examples:
        # Strict: a field that our CRD does not have is an error.
        namespace.cluster("kubectl", "-n", namespace.name, "create", "--dry-run=server",
                          "--validate=strict", "-f", "-", stdin=example)


def test_a_finished_job_stays_as_it_is(
        namespace: Namespace, upstream: Start, ours: Start) -> None:
    with upstream():
        namespace.apply(tfjob("done", command="exit 0", Worker=1))
        wait_for_condition(namespace, "done", "Succeeded")
        wait_for("its pod to be counted", lambda: (namespace.get("tfjob", "done") or {})[
            "status"]["replicaStatuses"] == {"Worker": {"succeeded": 1}})
    before, pods = conditions_of(namespace, "done"), identities(namespace, "pods")
    with ours():
        namespace.apply(tfjob("next", command="exit 0", Worker=1))
        wait_for_condition(namespace, "next", "Succeeded")
        namespace.kubectl("delete", "tfjob", "next")
        wait_for("the second job's pods to go", lambda: not pods_of(namespace, "next"))
    assert conditions_of(namespace, "done") == before
    assert identities(namespace, "pods") == pods
