"""TFJobs with real replicas on real nodes: what users of the upstream operator asked for. Pods that
are deleted, evicted or preempted are replaced, a failure says why, and limits are kept.

All jobs start together, before the first test. The tests of nodes are at the end, with jobs of
their own.
"""

import json
from typing import Dict, Iterator

import pytest
from cluster import Cluster, fresh_namespace, nightly
from cluster import pod as plain_pod
from tfjob_place import Place, cluster_config, priority_classes
from tfjobs import JOB_NAME, SLEEP, Operator, replicas, tfjob, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

JOBS: Dict[str, Dict] = {}
LIMIT_S = 90
UNTIL_TOLD = "until [ -e /tmp/end ]; do sleep 0.1; done"


def job(name: str, **more: object) -> str:
    """A job that starts before the first test; returns its name."""
    JOBS[name] = tfjob(name, **more)  # type: ignore[arg-type]
    return name


@pytest.fixture(scope="module")
def place(cluster: Cluster, tfjob_crd: None,  # noqa: F811
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with fresh_namespace(cluster, "tfjob-disruptions") as namespace, \
            Operator(namespace, log) as operator:
        made = Place(namespace, operator)
        for manifest in JOBS.values():
            made.create("tfjobs", manifest)
        yield made


def all_run(place: Place, name: str, count: int) -> None:
    place.wait(f"{count} pods of {name} to run", lambda: (
        list(place.phases(name).values()) == ["Running"] * count), LIMIT_S)
    place.wait_condition(name, "Running")


def wait_replaced(place: Place, name: str, pod: str, before: str) -> None:
    """Waits until another pod of that name runs."""
    place.wait(f"another {pod} to run", lambda: place.uids(name).get(pod, before) != before
               and place.phases(name)[pod] == "Running", LIMIT_S)


def retries(place: Place, name: str) -> int:
    """How many failures count for the backoff limit."""
    return place.status(name).get("elasticdl", {}).get("retries", 0)


def assert_undisturbed(place: Place, name: str) -> None:
    """The job never failed and never restarted, and nothing was counted."""
    assert place.conditions(name) == [("Created", "True"), ("Running", "True")]
    assert retries(place, name) == 0
    assert not {"TFJobFailed", "TFJobRestarting"} & place.reasons(name)


DELETED = job("deleted", run_policy={"backoffLimit": 0}, Worker=2, PS=1)


def test_Q3_a_deleted_pod_is_replaced_and_does_not_count(place: Place) -> None:
    all_run(place, DELETED, 3)
    before = place.uids(DELETED)
    configs = {name: cluster_config(pod) for name, pod in place.pods(DELETED).items()}
    for pod in ("deleted-worker-1", "deleted-ps-0"):
        place.delete("pods", pod)
    for pod in ("deleted-worker-1", "deleted-ps-0"):
        wait_replaced(place, DELETED, pod, before[pod])
    assert {name: cluster_config(pod) for name, pod in place.pods(DELETED).items()} == configs
    assert None not in configs.values()
    assert place.uids(DELETED)["deleted-worker-0"] == before["deleted-worker-0"]
    assert_undisturbed(place, DELETED)
    assert any(reason == "ReplacingPod" and "deleted-worker-1" in message
               for reason, message in place.events(DELETED))


EVICTED = job("evicted", run_policy={"backoffLimit": 0}, Worker=2)


def test_Q3_an_evicted_pod_is_replaced_and_does_not_count(place: Place) -> None:
    all_run(place, EVICTED, 2)
    before = place.uids(EVICTED)
    place.ask("POST", place.path("pods", "evicted-worker-0", "eviction"), {
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "evicted-worker-0", "namespace": place.namespace.name}})
    wait_replaced(place, EVICTED, "evicted-worker-0", before["evicted-worker-0"])
    assert_undisturbed(place, EVICTED)


ROLE_WITH_SIDECAR = replicas(1, "exit 0")
ROLE_WITH_SIDECAR["template"]["spec"]["containers"].append(
    {"name": "proxy", "image": "busybox:1", "imagePullPolicy": "IfNotPresent",
     "command": ["sh", "-c", SLEEP]})
FAILING_WITH_SIDECAR = json.loads(
    json.dumps(ROLE_WITH_SIDECAR).replace("exit 0\"]", "exit 7\"]", 1))
SIDECAR = job("sidecar", run_policy={"cleanPodPolicy": "Running"}, Worker=ROLE_WITH_SIDECAR)
SIDECAR_FAILED = job("sidecar-failed", run_policy={"cleanPodPolicy": "Running"},
                     Worker=FAILING_WITH_SIDECAR)


def test_a_sidecar_that_never_exits_does_not_keep_a_job_from_ending(place: Place) -> None:
    place.wait_condition(SIDECAR, "Succeeded", seconds=LIMIT_S)
    place.wait_condition(SIDECAR_FAILED, "Failed", seconds=LIMIT_S)
    assert "sidecar-failed-worker-0: exit code 7" in place.condition(
        SIDECAR_FAILED, "Failed")["message"]
    for name in (SIDECAR, SIDECAR_FAILED):
        place.wait("the sidecar to go", lambda: not place.pods(name), LIMIT_S)


WHY = job("why", Worker=replicas(1, 'echo "reading /data"; echo "KeyError: images" >&2; exit 3'),
          PS=1)


def test_a_failure_says_why(place: Place) -> None:
    place.wait_condition(WHY, "Failed", seconds=LIMIT_S)
    shown = place.namespace.kubectl("describe", "tfjob", WHY)
    place.wait("the last lines of the log to be told", lambda: "KeyError: images" in
               place.namespace.kubectl("describe", "tfjob", WHY), LIMIT_S)
    assert "why-worker-0" in shown and "exit code 3 (Error)" in shown
    place.wait("the event about its log", lambda: any(
        reason == "PodLog" and "KeyError: images" in message
        for reason, message in place.events(WHY)), LIMIT_S)
    assert place.condition(WHY, "Failed")["message"].startswith(
        f"TFJob {place.namespace.name}/why has failed because 1 Worker replica(s) failed.")


STUCK = job("stuck", Worker=replicas(1, image="no-such-image:1"))
LARGE = job("large", Worker=replicas(1, container={"resources": {"requests": {"cpu": "900"}}}))


def test_a_pod_that_cannot_start_says_why(place: Place) -> None:
    place.wait("the image to be named", lambda: any(
        reason in ("ErrImagePull", "ImagePullBackOff") and "no-such-image:1" in message
        for reason, message in place.events(STUCK)), LIMIT_S)
    place.wait("the missing capacity to be told", lambda: any(
        reason == "Unschedulable" and "Insufficient cpu" in message
        for reason, message in place.events(LARGE)), LIMIT_S)


SCALED = job("scaled", spec={"enableDynamicWorker": True}, Worker=1, PS=1)


def test_workers_are_added_to_and_taken_from_a_running_job(place: Place) -> None:
    def scale(count: int) -> None:
        place.patch("tfjobs", SCALED, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": count}}}})

    all_run(place, SCALED, 2)
    before = place.uids(SCALED)
    scale(3)
    all_run(place, SCALED, 4)
    assert before.items() <= place.uids(SCALED).items(), "no replica was restarted"
    where = place.namespace.name
    assert json.loads(cluster_config(place.pods(SCALED)["scaled-worker-2"]) or "") == {
        "cluster": {"worker": {"2": f"scaled-worker-2.{where}.svc:2222"},
                    "ps": [f"scaled-ps-0.{where}.svc:2222"]},
        "task": {"type": "worker", "index": 2}}
    scale(2)
    all_run(place, SCALED, 3)
    place.wait("the service of the third worker to go",
               lambda: "scaled-worker-2" not in place.services(SCALED), LIMIT_S)
    assert before.items() <= place.uids(SCALED).items(), "no replica was restarted"
    assert_undisturbed(place, SCALED)


COMPLETED = job("completed", spec={"successPolicy": "AllWorkers"}, Worker=replicas(
    2, f'case "$HOSTNAME" in *-1) exit 0;; esac; {UNTIL_TOLD}'))


def test_Q14_a_replica_that_has_succeeded_is_not_run_again(place: Place) -> None:
    place.wait("the second worker to be counted", lambda: place.status(COMPLETED).get(
        "replicaStatuses", {}).get("Worker") == {"active": 1, "succeeded": 1}, LIMIT_S)
    place.delete("pods", "completed-worker-1")
    place.wait("its pod to go", lambda: "completed-worker-1" not in place.pods(COMPLETED), LIMIT_S)
    place.barrier()
    assert set(place.pods(COMPLETED)) == {"completed-worker-0"}
    place.namespace.kubectl("exec", "completed-worker-0", "--", "touch", "/tmp/end")
    done = place.wait_condition(COMPLETED, "Succeeded", seconds=LIMIT_S)
    assert done["status"]["replicaStatuses"]["Worker"] == {"succeeded": 2}
    assert set(place.pods(COMPLETED)) == {"completed-worker-0"}


BACKOFF = job("backoff", run_policy={"backoffLimit": 2}, Worker=replicas(
    1, "exit 137", restart="ExitCode"))


def test_Q2_the_backoff_limit_counts_pods_that_were_replaced(place: Place) -> None:
    place.wait_condition(BACKOFF, "Failed", seconds=LIMIT_S)
    assert place.condition(BACKOFF, "Failed")["message"].startswith(
        "Job backoff has failed because it has reached the specified backoff limit")
    assert retries(place, BACKOFF) == 2
    place.wait("the replacement to be told", lambda: [
        reason for reason, _ in place.events(BACKOFF)].count("TFJobRestarting") >= 1)


CRASHES = job("crashes", run_policy={"backoffLimit": 1}, Worker=replicas(
    1, "exit 1", restart="OnFailure"))


def test_the_backoff_limit_counts_restarts_in_place(place: Place) -> None:
    place.wait_condition(CRASHES, "Failed", seconds=LIMIT_S)
    assert "it has reached the specified backoff limit" in place.condition(
        CRASHES, "Failed")["message"]


DEADLINE = job("deadline", run_policy={"activeDeadlineSeconds": 3, "cleanPodPolicy": "Running"},
               Worker=1)


def test_Q1_a_deadline_ends_a_job_although_nothing_happens(place: Place) -> None:
    place.wait_condition(DEADLINE, "Failed", seconds=LIMIT_S)
    place.wait("its pod to go", lambda: not place.pods(DEADLINE), LIMIT_S)


# From here on, tests use whole nodes.

def test_Q3_a_preempted_pod_is_replaced_once_and_waits_for_its_turn(place: Place) -> None:
    most = {"resources": {"requests": {"cpu": "1100m"}}}
    with priority_classes(place, {"tfjob-low": -10, "tfjob-high": 1000}):
        place.start("preempted", run_policy={"backoffLimit": 0}, Worker=replicas(
            2, container=most, priorityClassName="tfjob-low"))
        all_run(place, "preempted", 2)
        before = place.uids("preempted")
        important = plain_pod("important", SLEEP, container=most, priorityClassName="tfjob-high")
        place.create("pods", important)
        place.wait("the important pod to run", lambda: (place.get("pods", "important") or {})[
            "status"].get("phase") == "Running", LIMIT_S)
        place.wait("a replacement to wait", lambda: sorted(
            place.phases("preempted").values()) == ["Pending", "Running"], LIMIT_S)
        after = place.uids("preempted")
        (lost,) = [pod for pod in before if after[pod] != before[pod]]
        place.barrier()
        assert place.uids("preempted") == after, "the replacement was replaced again"
        place.delete("pods", "important", gracePeriodSeconds=0)
        all_run(place, "preempted", 2)
        assert place.uids("preempted") == after
    assert_undisturbed(place, "preempted")
    told = [message for reason, message in place.events("preempted") if reason == "ReplacingPod"]
    assert [message for message in told if lost in message] and len(told) == 1
    place.delete("tfjobs", "preempted")


def test_K45_Q3_node_drain_moves_the_replicas_to_another_node(place: Place) -> None:
    place.start("drained", run_policy={"backoffLimit": 0}, Chief=replicas(1, UNTIL_TOLD),
                Worker=2, PS=1)
    all_run(place, "drained", 4)
    before = place.pods("drained")
    node = before["drained-worker-0"]["spec"]["nodeName"]
    moved = [name for name, pod in before.items() if pod["spec"]["nodeName"] == node]
    cluster = place.namespace.cluster
    try:
        cluster("kubectl", "drain", node, f"--pod-selector={JOB_NAME}=drained", "--force",
                "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
        for name in moved:
            wait_replaced(place, "drained", name, before[name]["metadata"]["uid"])
        assert node not in {pod["spec"]["nodeName"] for pod in place.pods("drained").values()}
        assert_undisturbed(place, "drained")
    finally:
        cluster("kubectl", "uncordon", node)
    place.namespace.kubectl("exec", "drained-chief-0", "--", "touch", "/tmp/end")
    place.wait_condition("drained", "Succeeded", seconds=LIMIT_S)


@nightly
def test_Q3_a_replica_on_a_lost_node_is_replaced(place: Place) -> None:
    at_once = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 1} for key in ("not-ready", "unreachable")]
    place.start("lost", run_policy={"backoffLimit": 0}, Worker=replicas(2, tolerations=at_once),
                PS=replicas(1, tolerations=at_once))
    all_run(place, "lost", 3)
    before = place.pods("lost")
    node = before["lost-worker-0"]["spec"]["nodeName"]
    cluster = place.namespace.cluster
    cluster("node-off", node[1:])
    try:
        for name, pod in before.items():
            if pod["spec"]["nodeName"] == node:
                place.wait(f"another {name} to run", lambda: place.uids("lost").get(name) not in (
                    None, pod["metadata"]["uid"]) and place.phases("lost")[name] == "Running", 180)
        assert_undisturbed(place, "lost")
    finally:
        cluster("node-on", node[1:])
        cluster("kubectl", "wait", "--for=condition=Ready", f"node/{node}", "--timeout=120s",
                timeout=150)
