"""Gang scheduling of TFJobs: PodGroups of two schedulers, and pods that start together or not."""

import contextlib
import json
from pathlib import Path
from typing import Dict, Iterator, List

import pytest
from cluster import Cluster, Namespace, wait_for, wait_for_crd
from peers import GANG, GANG_SCHEDULER, gang_scheduler, needs_peer
from tfjob_place import Place, pod_status, priority_classes, role, stays
from tfjobs import (
    Operator,
    conditions_of,
    pods_of,
    tfjob,
    tfjob_crd,  # noqa: F401
    wait_for_condition,
)

pytestmark = pytest.mark.usefixtures("tfjob_crd")

VOLCANO = "podgroups.scheduling.volcano.sh"
PLUGINS = "podgroups.scheduling.x-k8s.io"


def types_of(namespace: Namespace, job: str) -> List[str]:
    return [condition["type"] for condition in conditions_of(namespace, job)]


@contextlib.contextmanager
def pod_groups(cluster: Cluster, resource: str, version: str) -> Iterator[None]:
    """PodGroups without their scheduler: what the operator reads and writes of them."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = resource.removeprefix("podgroups.")
    crd: Dict = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": resource},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups",
                      "singular": "podgroup"},
            "versions": [{
                "name": version, "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": anything, "status": anything}}}}]}}
    # The CRD of the real scheduler may be there.
    cluster("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-",
            stdin=json.dumps(crd))
    wait_for_crd(cluster, resource)
    try:
        yield
    finally:
        cluster("kubectl", "delete", "crd", resource, "--timeout=60s")


@pytest.fixture
def volcano_crd(cluster: Cluster) -> Iterator[None]:
    with pod_groups(cluster, VOLCANO, "v1beta1"):
        yield


@needs_peer(GANG)
def test_T_E2E2_a_gang_that_is_too_small_does_not_start(
        cluster: Cluster, namespace: Namespace, tmp_path: Path) -> None:
    with gang_scheduler(cluster, tmp_path) as scheduler, Operator(
            namespace, tmp_path / "operator.log", f"--gang-scheduler-name={scheduler}"):
        namespace.apply(tfjob("gang", command="exit 0", Worker=1, run_policy={
            "schedulingPolicy": {"minAvailable": 10}}))
        wait_for_condition(namespace, "gang", "Created")
        wait_for("the pod", lambda: pods_of(namespace, "gang"))
        group = namespace.get(PLUGINS, "gang")
        assert group is not None and group["spec"]["minMember"] == 10
        (pod,) = pods_of(namespace, "gang").values()
        assert pod["spec"]["schedulerName"] == scheduler
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "gang"
        # The scheduler has looked at the pod, and said no.
        wait_for("the scheduler to reject the pod", lambda: any(
            condition.get("reason") == "Unschedulable" for condition in
            pods_of(namespace, "gang")["gang-worker-0"]["status"].get("conditions", [])))
        assert stays(15, lambda: types_of(namespace, "gang") == ["Created"])
        namespace.kubectl("patch", "tfjob", "gang", "--type=merge", "-p",
                          '{"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}}')
        wait_for_condition(namespace, "gang", "Succeeded", seconds=120)
        wait_for("the PodGroup to be deleted", lambda: namespace.get(
            PLUGINS, "gang") is None)
        wait_for("the events about it", lambda: {"JobTerminated", "SuccessfulDeletePodGroup"} <=
                 Place(namespace).reasons("gang"))


@needs_peer(GANG)
def test_T_E2E2_a_gang_that_fits_runs(
        cluster: Cluster, namespace: Namespace, tmp_path: Path) -> None:
    with gang_scheduler(cluster, tmp_path) as scheduler, Operator(
            namespace, tmp_path / "operator.log", f"--gang-scheduler-name={scheduler}"):
        namespace.apply(tfjob("gang", command="exit 0", Worker=2, PS=1, spec={
            "successPolicy": "AllWorkers"}))
        wait_for_condition(namespace, "gang", "Succeeded", seconds=120)


def test_T_E2E2_pods_wait_for_the_pod_group_of_volcano(
        volcano_crd: None, namespace: Namespace, tmp_path: Path) -> None:
    with Operator(namespace, tmp_path / "operator.log", "--gang-scheduler-name=volcano"):
        namespace.apply(tfjob("gang", Worker=2, PS=1, annotations={"example.org/team": "vision"},
                              run_policy={"schedulingPolicy": {
                                  "minAvailable": 2, "queue": "night", "priorityClass": "low"}}))
        wait_for("the PodGroup", lambda: namespace.get(VOLCANO, "gang"))
        group, job = namespace.get(VOLCANO, "gang"), namespace.get("tfjob", "gang")
        assert group is not None and job is not None
        assert {key: group["spec"].get(key) for key in (
            "minMember", "queue", "priorityClassName", "minResources")} == {
            "minMember": 2, "queue": "night", "priorityClassName": "low",
            "minResources": {"cpu": "20m"}}
        assert group["metadata"]["annotations"]["example.org/team"] == "vision"
        assert group["metadata"]["ownerReferences"] == [{
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "gang",
            "uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]
        # Without a phase, and with Pending, there are no pods.
        assert stays(3, lambda: not pods_of(namespace, "gang"))
        set_phase(namespace, "Pending")
        assert stays(3, lambda: not pods_of(namespace, "gang"))
        set_phase(namespace, "Inqueue")
        wait_for("the pods", lambda: len(pods_of(namespace, "gang")) == 3)
        for name, pod in pods_of(namespace, "gang").items():
            assert pod["spec"]["schedulerName"] == "volcano"
            annotations = pod["metadata"]["annotations"]
            assert annotations["scheduling.k8s.io/group-name"] == "gang"
            assert annotations["volcano.sh/task-spec"] == name.split("-")[1]


def set_phase(namespace: Namespace, phase: str, job: str = "gang") -> None:
    namespace.kubectl("patch", VOLCANO, job, "--subresource=status", "--type=merge", "-p",
                      f'{{"status": {{"phase": "{phase}"}}}}')


def test_T_E2E2_a_pod_group_of_volcano_needs_no_policy(
        volcano_crd: None, namespace: Namespace, tmp_path: Path) -> None:
    with Operator(namespace, tmp_path / "operator.log", "--gang-scheduler-name=volcano"):
        namespace.apply(tfjob("plain", Worker=2, PS=role(1)))
        wait_for("an event about the other scheduler", lambda: "SetPodTemplateSchedulerName" in
                 Place(namespace).reasons("plain"))
        wait_for("the PodGroup", lambda: namespace.get(VOLCANO, "plain"))
        spec = (namespace.get(VOLCANO, "plain") or {})["spec"]
        assert spec["minMember"] == 3 and spec["queue"] == "default"
        assert "priorityClassName" not in spec or spec["priorityClassName"] == ""


def test_Q10_the_pods_of_highest_priority_count_and_a_pod_group_is_written_once(
        volcano_crd: None, namespace: Namespace, tmp_path: Path) -> None:
    def needing(cpu: str, priority: str, count: int) -> Dict:
        return role(count, priorityClassName=priority,
                    container={"resources": {"requests": {"cpu": cpu}}})

    classes = {"gang-first": 1000, "gang-last": 10}
    place = Place(namespace)
    with priority_classes(place, classes), Operator(
            namespace, tmp_path / "operator.log", "--gang-scheduler-name=volcano") as operator:
        place.operator = operator
        place.start("gang", run_policy={"schedulingPolicy": {"minAvailable": 2}},
                    PS=needing("30m", "gang-last", 2), Worker=needing("200m", "gang-first", 1))
        # The worker and one parameter server. In the order of the roles, it would be two of these.
        place.wait("the resources of two pods", lambda: group_of(namespace)["spec"].get(
            "minResources") == {"cpu": "230m"})
        set_phase(namespace, "Inqueue")
        before = group_of(namespace)
        # The operator looks at the group whenever pods or the job change.
        place.wait_pods("gang", 3)
        place.set_pods("gang", "Running")
        place.wait_condition("gang", "Running")
        place.delete("pods", "gang-ps-1", gracePeriodSeconds=0)
        place.wait_pods("gang", 3)
        place.patch("tfjobs", "gang", {"spec": {"tfReplicaSpecs": {"PS": {"replicas": 1}}}})
        place.wait_pods("gang", 2)
        assert group_of(namespace) == before
        place.set_pod("gang-worker-0", "Succeeded")
        place.wait_condition("gang", "Succeeded")
        place.wait("the PodGroup to be deleted", lambda: group_of(namespace) == {"spec": {}})
        place.wait("the events about it", lambda: {"JobTerminated", "SuccessfulDeletePodGroup"} <=
                   place.reasons("gang"))


def group_of(namespace: Namespace) -> Dict:
    """The PodGroup of the job `gang`, without anything if there is none."""
    return namespace.get(VOLCANO, "gang") or {"spec": {}}


@pytest.mark.parametrize("scheduler, resource, version", [
    ("volcano", VOLCANO, "v1beta1"), (GANG_SCHEDULER, PLUGINS, "v1alpha1")],
    ids=["volcano", "plugins"])
def test_a_pod_group_goes_with_a_suspension_and_at_a_limit(
        cluster: Cluster, namespace: Namespace, tmp_path: Path, scheduler: str, resource: str,
        version: str) -> None:
    place = Place(namespace)

    def uid_of_group(job: str) -> str:
        return (namespace.get(resource, job) or {"metadata": {"uid": ""}})["metadata"]["uid"]

    def admit(job: str) -> str:
        """Waits for the PodGroup of a job and for its pods, which run then. Returns its uid."""
        place.wait(f"the PodGroup of {job}", lambda: uid_of_group(job))
        if scheduler == "volcano":
            assert not place.pods(job), "the PodGroup is not admitted yet"
            set_phase(namespace, "Inqueue", job)
        place.wait_pods(job, 2)
        place.set_pods(job, "Running")
        place.wait_condition(job, "Running")
        return uid_of_group(job)

    with pod_groups(cluster, resource, version), Operator(
            namespace, tmp_path / "operator.log", f"--gang-scheduler-name={scheduler}") as operator:
        place.operator = operator
        for job in ("nap", "restarts", "slow"):
            place.start(job, run_policy={"backoffLimit": 1}, Worker=role(2, "OnFailure"))
        first = admit("nap")
        place.patch("tfjobs", "nap", {"spec": {"runPolicy": {"suspend": True}}})
        place.wait_condition("nap", "Suspended")
        place.wait("the PodGroup of nap to go", lambda: not uid_of_group("nap"))
        place.wait("the pods of nap to go", lambda: not place.pods("nap"))
        place.wait("the event about it", lambda: "SuccessfulDeletePodGroup" in
                   place.reasons("nap"))
        place.patch("tfjobs", "nap", {"spec": {"runPolicy": {"suspend": False}}})
        assert admit("nap") != first
        assert ("Suspended", "False") in place.conditions("nap")

        for job in ("restarts", "slow"):
            admit(job)
        place.set_pod("restarts-worker-1", pod_status("Running", restarts=1))
        place.patch("tfjobs", "slow", {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})
        for job, why in (("restarts", "it has reached the specified backoff limit"),
                         ("slow", "it was active longer than specified deadline")):
            place.wait_condition(job, "Failed")
            assert why in place.condition(job, "Failed")["message"]
            place.wait(f"the PodGroup of {job} to go", lambda: not uid_of_group(job))
            # cleanPodPolicy is None.
            assert len(place.pods(job)) == 2
        assert uid_of_group("nap"), "this job goes on"
