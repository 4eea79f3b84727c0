"""The operator when things go wrong around it: the faults in docs/robustness.md, section TFJobs.

The tests write the status of pods, because most faults are between the operator and the API server.
The drained node is in test_tfjob_disruptions.py, and clocks that jump are in the unit tests of
src/reconciler. The tests that disturb the whole
cluster are at the end.
"""

import json
import os
import random
import re
import signal
import time
from pathlib import Path
from typing import Dict, Iterator, List, Set

import pytest
from cluster import Cluster, Namespace, nightly, wait_for, wait_for_crd
from e2e.relay import Relay
from operator_rights import config_with_token, edited_config
from tfjob_place import (
    GROUPS,
    Place,
    condition,
    moment,
    pod_status,
    role,
)
from tfjobs import MANIFESTS, READY, Operator, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

NIGHTLY = "ELASTICDL_NIGHTLY" in os.environ


@pytest.fixture
def place(namespace: Namespace, tmp_path: Path) -> Iterator[Place]:
    with Operator(namespace, tmp_path / "operator.log") as operator:
        yield Place(namespace, operator)


@pytest.fixture
def relay(namespace: Namespace) -> Iterator[Relay]:
    config = json.loads(namespace.kubectl("config", "view", "--raw", "-o", "json"))
    address = config["clusters"][0]["cluster"]["server"].split("//")[1]
    made = Relay(lambda: address, seed=1)
    yield made
    made.close()


@pytest.fixture
def relayed(namespace: Namespace, tmp_path: Path, relay: Relay) -> Iterator[Place]:
    """A place whose operator reaches the API server over the relay only."""
    def edit(server: Dict, _: Dict) -> None:
        server["server"] = f"https://{relay.address}"

    config = edited_config(namespace, tmp_path / "relayed", edit)
    with Operator(namespace, tmp_path / "operator.log", config=config) as operator:
        yield Place(namespace, operator)


def assert_works(place: Place, seconds: float = 60) -> None:
    """The operator runs a new job to its end."""
    name = f"works-{time.monotonic_ns()}"
    place.start(name, Worker=role(1))
    place.wait_pods(name, 1, seconds)
    place.set_pod(f"{name}-worker-0", "Succeeded")
    place.wait_condition(name, "Succeeded", seconds=seconds)


# Foreign objects, quotas, admission, permissions.

def test_K45_name_collision_with_a_foreign_pod_and_service_is_reported_and_waited_out(
        place: Place) -> None:
    foreign = {"metadata": {"name": "taken-worker-0"}, "spec": {
        "schedulerName": "nobody", "containers": [{"name": "main", "image": "busybox:1"}]}}
    pod = place.create("pods", foreign)["metadata"]["uid"]
    service = place.create("services", {"metadata": {"name": "taken-ps-0"}, "spec": {
        "ports": [{"port": 80}]}})["metadata"]["uid"]
    place.start("taken", Worker=role(2), PS=role(1))
    place.wait("both to be told", lambda: {"FailedCreatePod", "FailedCreateService"}
               <= place.reasons("taken"))
    messages = [message for reason, message in place.events("taken") if "Failed" in reason]
    assert any("taken-worker-0" in message and "already exists" in message
               for message in messages), messages
    place.wait("the other replicas", lambda: set(place.pods("taken")) == {
        "taken-worker-1", "taken-ps-0"})
    place.barrier()
    for kind, name, uid in (("pods", "taken-worker-0", pod), ("services", "taken-ps-0", service)):
        found = place.get(kind, name)
        assert found is not None and found["metadata"]["uid"] == uid
        assert "ownerReferences" not in found["metadata"] and "labels" not in found["metadata"]
        place.delete(kind, name)
    place.wait_pods("taken", 3, 60)


def test_K45_quota_403_on_pod_create_is_reported_and_waited_out(place: Place) -> None:
    place.create("resourcequotas", {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    place.wait("the quota to count", lambda: "hard" in (place.get("resourcequotas", "small") or {})[
        "status"])
    place.start("large", Worker=role(3))
    place.wait("the quota to be told", lambda: any(
        reason == "FailedCreatePod" and "exceeded quota: small" in message
        for reason, message in place.events("large")))
    assert len(place.pods("large")) == 1
    assert place.conditions("large") == [("Created", "True")], "it waits"
    place.patch("resourcequotas", "small", {"spec": {"hard": {"pods": "9"}}})
    place.wait_pods("large", 3, 60)


def test_K45_admission_mutated_pod_spec_is_left_as_it_is(place: Place) -> None:
    place.create("limitranges", {"metadata": {"name": "defaults"}, "spec": {"limits": [{
        "type": "Container", "default": {"memory": "64Mi", "cpu": "200m"}}]}})
    place.start("changed", Worker=role(2), PS=role(1))
    pods = place.wait_pods("changed", 3)
    for pod in pods.values():
        assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Mi"
    place.set_pods("changed", "Running")
    place.wait_condition("changed", "Running")
    before = place.uids("changed"), place.uids("changed", "services")
    with place.without_operator():
        pass
    place.patch("tfjobs", "changed", {"metadata": {"labels": {"looked": "at"}}})
    place.barrier()
    assert (place.uids("changed"), place.uids("changed", "services")) == before
    assert place.conditions("changed") == [("Created", "True"), ("Running", "True")]


def rules(without: Dict[str, Set[str]]) -> List[Dict]:
    """What the operator may do in a namespace, without some verbs of a resource."""
    every = {
        ("kubeflow.org", "tfjobs"): {"get", "list", "watch", "delete"},
        ("kubeflow.org", "tfjobs/status"): {"update"},
        ("", "pods"): {"get", "list", "watch", "create", "delete", "patch"},
        ("", "services"): {"get", "list", "watch", "create", "delete", "patch"},
        ("", "pods/log"): {"get"},
        ("", "events"): {"create", "patch"},
    }
    # A rule without a verb is not valid.
    return [{"apiGroups": [group], "resources": [resource],
             "verbs": sorted(verbs - without.get(resource, set()))}
            for (group, resource), verbs in every.items() if verbs - without.get(resource, set())]


class operator_ends:
    """Ends an operator that was started without `with`."""

    def __init__(self, *operators: Operator) -> None:
        self.operators = operators

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: object, *_: object) -> None:
        for operator in self.operators:
            if operator.process is not None:
                operator.__exit__(error)


class Limited:
    """An operator whose permissions a test takes away."""

    def __init__(self, namespace: Namespace, folder: Path, *flags: str) -> None:
        self.place = Place(namespace)
        self.place.create("serviceaccounts", {"metadata": {"name": "operator"}})
        self.place.create("roles", {"metadata": {"name": "operator"}, "rules": rules({})})
        self.place.create("rolebindings", {
            "metadata": {"name": "operator"}, "subjects": [
                {"kind": "ServiceAccount", "name": "operator", "namespace": namespace.name}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                        "name": "operator"}})
        self.operator = self.place.operator = Operator(
            namespace, folder / "operator.log", *flags,
            config=config_with_token(namespace, folder / "limited", "operator"),
            env={"MY_POD_NAMESPACE": namespace.name})

    def deny(self, resource: str, *verbs: str) -> None:
        """Allows everything but these verbs of a resource."""
        self.place.patch("roles", "operator", {"rules": rules({resource: set(verbs)})})
        # The server remembers permissions for a moment.
        self.place.wait(f"the server to deny {resource}", lambda: not any(
            self.is_allowed(resource, verb) for verb in verbs))

    def allow_all(self) -> None:
        self.place.patch("roles", "operator", {"rules": rules({})})

    def is_allowed(self, resource: str, verb: str) -> bool:
        name, _, sub = resource.partition("/")
        namespace = self.place.namespace.name
        answer = json.loads(self.place.ask(
            "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
                "user": f"system:serviceaccount:{namespace}:operator", "resourceAttributes": {
                    "namespace": namespace, "verb": verb, "resource": name, "subresource": sub,
                    "group": "kubeflow.org" if name == "tfjobs" else ""}}}))
        return answer["status"]["allowed"]

    def wait_told(self, job: str, reason: str) -> None:
        self.place.wait(f"{reason} to be told", lambda: any(
            found == reason and "forbidden" in message
            for found, message in self.place.events(job)))


@pytest.fixture
def limited(namespace: Namespace, tmp_path: Path) -> Iterator[Limited]:
    made = Limited(namespace, tmp_path)
    with operator_ends(made.operator):
        yield made


def test_K45_rbac_denied_on_one_verb_watch_is_waited_out(limited: Limited) -> None:
    limited.deny("pods", "watch")
    limited.operator.start(wait=False)
    limited.operator.wait_for_log("forbidden")
    limited.allow_all()
    limited.operator.wait_for_log(READY, 60)
    assert_works(limited.place)


def test_K45_an_operator_without_permission_for_its_lease_is_not_ready(
        namespace: Namespace, tmp_path: Path) -> None:
    limited = Limited(namespace, tmp_path, "--leader-elect")
    with operator_ends(limited.operator):
        limited.operator.start(wait=False)
        limited.operator.wait_for_log("cannot get or renew the lease")
        assert not limited.operator.is_ready()
        of_leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                     "verbs": ["get", "create", "update"]}
        limited.place.patch("roles", "operator", {"rules": [*rules({}), of_leases]})
        limited.operator.wait_for_log(READY, 60)
        assert limited.operator.is_ready()


def test_K45_rbac_denied_on_one_verb_create_is_reported_and_waited_out(limited: Limited) -> None:
    place = limited.place
    limited.operator.start()
    for resource, found, reason in (("pods", place.pods, "FailedCreatePod"),
                                    ("services", place.services, "FailedCreateService")):
        limited.deny(resource, "create")
        job = f"no-{resource}"
        place.start(job, Worker=role(1), PS=role(1))
        limited.wait_told(job, reason)
        assert not found(job)
        limited.allow_all()
        place.wait_pods(job, 2, 60)


def test_K45_rbac_denied_on_one_verb_of_the_status_is_logged_and_waited_out(
        limited: Limited) -> None:
    place = limited.place
    limited.operator.start()
    limited.deny("tfjobs/status", "update")
    place.start("silent", Worker=role(1), PS=role(1))
    limited.operator.wait_for_log("forbidden")
    assert not place.status("silent")
    limited.allow_all()
    place.wait_pods("silent", 2, 60)
    place.set_pods("silent", "Running")
    place.wait_condition("silent", "Running", seconds=60)


def test_K45_rbac_denied_on_one_verb_delete_is_reported_and_waited_out(limited: Limited) -> None:
    place = limited.place
    limited.operator.start()
    cases: Dict[str, Dict] = {"pods": {"cleanPodPolicy": "All"},
                              "services": {"cleanPodPolicy": "All"},
                              "tfjobs": {"ttlSecondsAfterFinished": 0}}
    for resource, policy in cases.items():
        job = f"keeps-{resource}"
        place.start(job, run_policy=policy, Worker=role(1))
        place.wait_pods(job, 1)
        limited.deny(resource, "delete")
        place.set_pod(f"{job}-worker-0", "Succeeded")
        # The status does not wait for it.
        place.wait_condition(job, "Succeeded")
        limited.wait_told(job, {"pods": "FailedDeletePod", "services": "FailedDeleteService",
                                "tfjobs": "FailedDeleteJob"}[resource])
        name = job if resource == "tfjobs" else f"{job}-worker-0"
        assert place.get(resource, name) is not None
        limited.allow_all()
        place.wait(f"{name} to go", lambda: place.get(resource, name) is None, 60)


def test_K45_rbac_denied_on_one_verb_of_events_costs_the_events_only(limited: Limited) -> None:
    place = limited.place
    limited.operator.start()
    limited.deny("events", "create")
    place.start("unheard", run_policy={"cleanPodPolicy": "All"}, Worker=role(1), PS=role(1))
    place.wait_pods("unheard", 2)
    place.set_pods("unheard", "Running")
    place.wait_condition("unheard", "Running")
    place.set_pod("unheard-worker-0", "Succeeded")
    place.wait_condition("unheard", "Succeeded")
    place.wait("its pods to go", lambda: not place.pods("unheard"))
    limited.operator.wait_for_log("cannot record the event")
    assert not place.events("unheard")
    limited.allow_all()
    place.start("heard", Worker=role(1))
    place.wait("an event", lambda: place.events("heard"))


# Many jobs, large jobs.

def test_K45_finished_jobs_at_start_are_not_written_again(place: Place) -> None:
    count = 5000 if NIGHTLY else 300
    with place.without_operator():
        for number in range(count):
            name = f"old-{number}"
            job = place.start(name, Worker=role(1))
            if number % 10 == 0:
                place.add_pods(job, "worker", ["Succeeded"])
            # As the upstream operator wrote it.
            place.patch("tfjobs", name, {"status": {
                "conditions": [condition("Created"), condition("Running", "False"),
                               condition("Succeeded")],
                "replicaStatuses": {"Worker": {"succeeded": 1}}, "startTime": moment(3600),
                "completionTime": moment(3600)}}, "status")
        before = versions(place)
        began = time.monotonic()
    assert_works(place)
    assert time.monotonic() - began < 10, "from the start of the operator"
    after = versions(place)
    assert {name: after[name] for name in before} == before
    assert not place.events("old-0") and not place.events("old-1")


def versions(place: Place) -> Dict[str, str]:
    return {name: job["metadata"]["resourceVersion"]
            for name, job in place.list("tfjobs").items()}


def test_K45_one_job_with_many_replicas(place: Place) -> None:
    count = 1000 if NIGHTLY else 200
    place.start("wide", run_policy={"cleanPodPolicy": "All"}, Chief=role(1),
                Worker=role(count - 2), PS=role(1))
    place.wait_pods("wide", count, 120)
    place.set_pods("wide", "Running")
    place.wait("all to be counted", lambda: place.status("wide")["replicaStatuses"] == {
        "Chief": {"active": 1}, "PS": {"active": 1}, "Worker": {"active": count - 2}}, 60)
    place.set_pod("wide-chief-0", "Succeeded")
    place.wait_condition("wide", "Succeeded", seconds=60)
    place.wait("everything to go", lambda: not place.pods("wide") and not place.services("wide"),
               120)


# The operator dies.

ENDS = {
    # name: (roles, run policy, exit codes of the replicas)
    "led": ({"Chief": role(1), "Worker": role(2), "PS": role(1)}, {"cleanPodPolicy": "Running"},
            {"chief": 0}),
    "fails": ({"Worker": role(1), "PS": role(1)}, {}, {"worker": 1}),
    "retries": ({"Worker": role(1, "ExitCode")}, {"backoffLimit": 3}, {"worker": 130}),
    "all": ({"Worker": role(3)}, {"cleanPodPolicy": "All"}, {"worker": 0}),
    "short": ({"Worker": role(1)}, {"ttlSecondsAfterFinished": 0}, {"worker": 0}),
}


def start_all(place: Place) -> None:
    for name, (roles, policy, _) in ENDS.items():
        place.start(name, run_policy=policy, spec={
            "successPolicy": "AllWorkers"} if name == "all" else {}, **roles)


class Kubelet:
    """Advances the pods of all jobs: they run, and then exit as ENDS says."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.seen: Dict[str, Set[str]] = {name: set() for name in ENDS}  # uids of pods by job

    def step(self) -> None:
        pods = list(self.place.list("pods").values())
        for pod in pods:
            self.seen[pod["metadata"]["name"].split("-")[0]].add(pod["metadata"]["uid"])
        if not pods:
            return
        pod = self.chance.choice(pods)
        job, kind, _ = pod["metadata"]["name"].split("-")
        code = ENDS[job][2].get(kind)
        phase = pod["status"].get("phase")
        try:
            if phase == "Pending":
                self.place.set_pod(pod["metadata"]["name"], "Running")
            elif phase == "Running" and code is not None:
                self.place.set_pod(pod["metadata"]["name"], pod_status(
                    "Failed" if code else "Succeeded", exit_code=code))
        except AssertionError as error:
            if "404" not in str(error):  # it was deleted meanwhile
                raise


def still_running(place: Place) -> str:
    return f"not ended: {[name for name in ENDS if not is_over(place, name)]}"


def is_over(place: Place, name: str) -> bool:
    job = place.get("tfjobs", name)
    return job is None or bool({("Succeeded", "True"), ("Failed", "True")}
                               & set(place.conditions(name)))


def written(place: Place) -> Set[str]:
    """What only operators write: versions of the jobs, and uids of pods and services."""
    return {f"{name} {version}" for name, version in versions(place).items()} | {
        item["metadata"]["uid"] for kind in ("pods", "services")
        for item in place.list(kind).values()}


class Lives:
    """Operators that are killed soon after they have begun to work."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.killed = self.wrote = 0

    def next(self, kubelet: Kubelet) -> None:
        """Starts an operator, and kills it some time after it was ready, or after its first
        write. Counts whether it has written anything."""
        operator = self.place.operator
        assert operator is not None
        kubelet.step()  # so that there is something to write
        before = written(self.place)
        operator.start(wait=False)
        operator.wait_for_log(READY)
        until = time.monotonic() + self.chance.choice([0.02, 0.1, 0.5]) * self.chance.random()
        if self.chance.random() < 0.5:
            # In the middle of its first writes, if it has any.
            while time.monotonic() < until and not written(self.place) - before:
                pass
        else:
            while time.monotonic() < until:
                kubelet.step()
        operator.kill()
        self.killed += 1
        self.wrote += bool(written(self.place) - before)


def delete_all(place: Place) -> None:
    for name in place.list("tfjobs"):
        place.delete("tfjobs", name)
    place.wait("the objects of all jobs to be deleted", lambda: not any(
        place.list(kind) for kind in ("tfjobs", "pods", "services")), 90)


def test_K45_operator_kill_between_pod_create_and_status_write_and_anywhere_else(
        place: Place) -> None:
    seed = int(os.environ.get("ELASTICDL_TEST_SEED", time.time_ns() % 1000000))
    print(f"ELASTICDL_TEST_SEED={seed}")
    chance = random.Random(seed)
    operator = place.operator
    assert operator is not None
    lives = Lives(place, chance)
    enough = 200 if NIGHTLY else 20
    end = time.monotonic() + 15 * enough
    while lives.wrote < enough:
        operator.kill()
        kubelet = Kubelet(place, chance)
        start_all(place)
        while not all(is_over(place, name) for name in ENDS):
            assert time.monotonic() < end, (
                f"only {lives.wrote} of {lives.killed} killed operators had written anything, and "
                f"{enough} must have; {still_running(place)}")
            lives.next(kubelet)
        operator.start()
        assert_ends(place, kubelet)
        delete_all(place)
    print(f"killed {lives.killed} operators; {lives.wrote} of them had written something")


def test_K45_operator_kill_between_pod_create_and_status_write_repeats_nothing(
        limited: Limited) -> None:
    place, operator = limited.place, limited.operator
    limited.deny("tfjobs/status", "update")
    operator.start()
    place.start("between", Worker=role(2), PS=role(1))
    place.wait_pods("between", 3)
    operator.wait_for_log("forbidden")
    assert not place.status("between")
    before = place.uids("between"), place.uids("between", "services")
    operator.kill()
    limited.allow_all()
    operator.start()
    place.wait_condition("between", "Created", seconds=60)
    place.set_pods("between", "Running")
    place.wait_condition("between", "Running")
    place.wait("all to be counted", lambda: place.status("between")["replicaStatuses"] == {
        "PS": {"active": 1}, "Worker": {"active": 2}})
    place.set_pod("between-worker-0", "Succeeded")
    place.wait_condition("between", "Succeeded")
    place.barrier()
    assert (place.uids("between"), place.uids("between", "services")) == before
    created = [message for reason, message in place.events("between")
               if reason == "SuccessfulCreatePod"]
    assert len(created) == len(set(created)) == 3, created
    assert place.conditions("between") == [
        ("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    # The replicas that still ran when the job ended have succeeded with it.
    status = place.status("between")
    assert status["replicaStatuses"] == {"PS": {"succeeded": 1}, "Worker": {"succeeded": 2}}
    assert status["elasticdl"] == {"completed": {"Worker": "0"}}


def test_K45_operator_kill_between_status_write_and_pod_delete_counts_a_failure_once(
        limited: Limited) -> None:
    place, operator = limited.place, limited.operator
    operator.start()
    place.start("twice", run_policy={"backoffLimit": 2}, Worker=role(1, "ExitCode"))
    first = place.wait_pods("twice", 1)["twice-worker-0"]["metadata"]["uid"]
    limited.deny("pods", "delete")
    place.set_pod("twice-worker-0", pod_status("Failed", exit_code=130))
    place.wait_condition("twice", "Restarting")
    limited.wait_told("twice", "FailedDeletePod")
    assert place.uids("twice") == {"twice-worker-0": first}
    counted = {"retries": 1, "replacing": [first]}
    assert place.status("twice")["elasticdl"] == counted
    operator.kill()
    operator.start()
    place.barrier()
    assert place.status("twice")["elasticdl"] == counted
    limited.allow_all()
    place.wait("the pod to be replaced", lambda: place.uids("twice").get(
        "twice-worker-0", first) != first, 60)
    place.set_pods("twice", "Running")
    place.wait_condition("twice", "Running")
    place.wait("the deleted pod to be forgotten", lambda: place.status("twice")["elasticdl"] == {
        "retries": 1})


def assert_ends(place: Place, kubelet: Kubelet) -> None:
    """The jobs of ENDS end as with one operator that never dies."""
    place.wait("the short job to be deleted", lambda: place.get("tfjobs", "short") is None)
    place.wait("the pods of led to go", lambda: set(place.pods("led")) == {"led-chief-0"})
    place.wait("the pods of all to go", lambda: not place.pods("all"))
    place.barrier()
    found = {name: [kind for kind, status in place.conditions(name) if status == "True"]
             for name in ENDS}
    assert found == {"led": ["Created", "Succeeded"], "fails": ["Created", "Failed"],
                     "retries": ["Created", "Failed"], "all": ["Created", "Succeeded"],
                     "short": []}
    status = place.status("retries")
    assert status["elasticdl"]["retries"] == 3, status
    assert {name: len(uids) for name, uids in kubelet.seen.items() if name != "short"} == {
        "led": 4, "fails": 2, "retries": 3, "all": 3}, "each replica had one pod, or one per try"
    assert len(kubelet.seen["short"]) == 1
    assert place.status("all")["replicaStatuses"] == {"Worker": {"succeeded": 3}}


def test_K45_duplicate_operators_without_leader_election_come_to_the_same_ends(
        place: Place, tmp_path: Path) -> None:
    kubelet = Kubelet(place, random.Random(1))
    with Operator(place.namespace, tmp_path / "second.log") as second:
        start_all(place)
        end = time.monotonic() + 60
        while not all(is_over(place, name) for name in ENDS):
            assert time.monotonic() < end, still_running(place)
            for _ in range(10):
                kubelet.step()
        assert_ends(place, kubelet)
        assert place.operator is not None
        for operator in (place.operator, second):
            assert re.search(r'reconcile_total{.*result="success"} [1-9]', operator.metrics())


def test_answers_that_are_lost_change_nothing(relayed: Place, relay: Relay) -> None:
    relay.lose = 0.02
    for number in range(10):
        relayed.start(f"lossy-{number}", run_policy={"cleanPodPolicy": "All"}, Chief=role(1),
                      Worker=role(2))
    for number in range(10):
        name = f"lossy-{number}"
        relayed.wait_pods(name, 3, 90)
        relayed.set_pods(name, "Running")
        relayed.wait_condition(name, "Running", seconds=90)
        relayed.set_pod(f"{name}-chief-0", "Succeeded")
    for number in range(10):
        name = f"lossy-{number}"
        relayed.wait_condition(name, "Succeeded", seconds=90)
        relayed.wait("its pods to go", lambda: not relayed.pods(name), 90)
    print(f"{relay.lost} answers were lost")
    assert relay.lost > 0


@pytest.mark.parametrize("fault", [
    "SIGKILL", pytest.param("SIGSTOP", marks=nightly)])
def test_K45_duplicate_operator_replicas_work_one_after_the_other(
        namespace: Namespace, tmp_path: Path, fault: str) -> None:
    place = Place(namespace)
    first, second = (Operator(namespace, tmp_path / f"{name}.log", "--leader-elect",
                              env={"MY_POD_NAMESPACE": namespace.name})
                     for name in ("first", "second"))
    with operator_ends(first, second):
        place.operator = first
        first.start()
        second.start(wait=False)
        assert_works(place)
        (lease,) = place.list("leases").values()
        assert lease["metadata"]["name"] == "1ca428e5.training-operator.kubeflow.org"
        assert READY not in second.text()
        second.wait_for_log("waiting for the lease")
        assert second.is_ready(), "it can take over"
        # An operator without the lease serves its metrics, too.
        for operator, leads in ((first, 1), (second, 0)):
            assert f'leader_election_master_status{{name="tfjob-controller"}} {leads}\n' in (
                operator.metrics())
        holder = lease["spec"]["holderIdentity"]
        assert first.process is not None
        first.process.send_signal(getattr(signal, fault))
        place.operator = second
        place.start("orphan", Worker=role(1))
        second.wait_for_log(READY, 40)
        place.wait_pods("orphan", 1)
        (lease,) = place.list("leases").values()
        assert lease["spec"]["holderIdentity"] not in ("", holder)
        if fault == "SIGSTOP":
            # It has lost its lease, and must not write.
            first.process.send_signal(signal.SIGCONT)
            first.process.wait(timeout=20)
            first.process = None
        else:
            first.kill()
        # An operator that is told to end gives its lease away.
        first.start(wait=False)
        assert second.stop() == 0
        place.operator = first
        first.wait_for_log(READY, 10)
        assert_works(place)


# The namespace, the API server and the CRD go away.

def test_K45_namespace_deleted_while_running_leaves_an_operator_that_works(
        cluster: Cluster, namespace: Namespace, tmp_path: Path) -> None:
    # An administrator's permissions: those of the manifests would be deleted with the namespace.
    config = edited_config(namespace, tmp_path / "kubeconfig", lambda *_: None)
    with Operator(namespace, tmp_path / "operator.log", config=config) as operator:
        place = Place(namespace, operator)
        for number in range(3):
            place.start(f"doomed-{number}", Worker=role(2, "OnFailure"), PS=role(1))
            place.wait_pods(f"doomed-{number}", 3)
            place.set_pods(f"doomed-{number}", "Running")
        lines = len(operator.text().splitlines())
        cluster("kubectl", "delete", "namespace", namespace.name, "--timeout=60s")
        # It neither creates pods again and again, nor logs an error for each.
        assert len(operator.text().splitlines()) - lines < 100
        place.namespace = Namespace(cluster, namespace.name)
        assert_works(place)


def test_K45_api_server_restart_mid_watch_loses_nothing(cluster: Cluster, place: Place) -> None:
    for name in ("ends", "stays"):
        place.start(name, Worker=role(2), PS=role(1))
        place.wait_pods(name, 3)
        place.set_pods(name, "Running")
        place.wait_condition(name, "Running")
    before = {name: place.uids(name) for name in ("ends", "stays")}
    assert place.operator is not None
    cluster("api-kill")
    try:
        # Its watches were open, and the next attempts find no server.
        place.operator.wait_for_log("cannot follow pods")
    finally:
        cluster("api-start")
    place.set_pod("ends-worker-0", "Succeeded")
    place.wait_condition("ends", "Succeeded")
    assert {name: place.uids(name) for name in before} == before, "a replica was replaced"
    assert place.conditions("stays") == [("Created", "True"), ("Running", "True")]
    assert_works(place)


def test_K45_etcd_compaction_and_dropped_delete_event_while_the_operator_hears_nothing(
        cluster: Cluster, relayed: Place, relay: Relay) -> None:
    place = relayed
    for name in ("loses", "ends", "stays"):
        place.start(name, Worker=role(2), PS=role(1))
        place.wait_pods(name, 3)
        place.set_pods(name, "Running")
        place.wait_condition(name, "Running")
    before = {name: place.uids(name) for name in ("loses", "ends", "stays")}
    # From now on, the operator hears nothing.
    relay.lose = 1.0
    place.delete("pods", "loses-worker-1", gracePeriodSeconds=0)
    place.delete("services", "loses-ps-0")
    place.set_pod("ends-worker-0", "Succeeded")
    place.start("new", Worker=role(1))
    cluster("api-kill")
    try:
        # The watches cannot be continued: the server answers 410.
        cluster("compact")
    finally:
        cluster("api-start")
    relay.lose = 0.0
    place.wait_pods("new", 1, 60)
    place.wait_condition("ends", "Succeeded", seconds=60)
    place.wait("the deleted pod to be replaced", lambda: place.uids("loses").get(
        "loses-worker-1", before["loses"]["loses-worker-1"]) != before["loses"]["loses-worker-1"])
    place.wait("its service too", lambda: "loses-ps-0" in place.services("loses"))
    assert place.uids("stays") == before["stays"]
    for name in ("loses", "stays"):
        assert place.conditions(name) == [("Created", "True"), ("Running", "True")]
    assert place.operator is not None
    assert re.search(r"cannot follow \w+: .*(too old|compacted)", place.operator.text())
    assert_works(place)


def test_K45_crd_removed_and_added_again(cluster: Cluster, place: Place) -> None:
    # The garbage collector learns of a new resource each 30 s. It ignores the jobs of one that is
    # removed before that.
    place.start("known", Worker=role(1))
    place.wait_pods("known", 1)
    place.delete("tfjobs", "known")
    place.wait("the garbage collector to know TFJobs", lambda: not place.pods("known"), 90)
    place.start("gone", Worker=role(1))
    place.wait_pods("gone", 1)
    crd = str(MANIFESTS / "crd.yaml")
    try:
        cluster("kubectl", "delete", "-f", crd, "--timeout=60s")
        wait_for("the API to go", lambda: cluster.run(
            "kubectl", "get", "--raw", GROUPS["tfjobs"]).returncode != 0)
        place.wait("the pods of its jobs to go", lambda: not place.pods("gone"), 90)
    finally:
        cluster("kubectl", "apply", "-f", crd)
        wait_for_crd(cluster, "tfjobs.kubeflow.org")
    wait_for("the API to come back", lambda: cluster.run(
        "kubectl", "get", "tfjobs").returncode == 0)
    assert_works(place)
