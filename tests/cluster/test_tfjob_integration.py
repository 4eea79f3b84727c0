"""The operator and a real API server, without kubelets: the integration tests of upstream's suite,
with the ids of tools/tfjob_acceptance. The tests write the status of pods.

All tests share a namespace and an operator, and each has jobs of its own.
"""

import json
import re
import time
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest
from cluster import Cluster, Namespace, fresh_namespace
from tfjob_place import (
    PAST,
    Place,
    cluster_config,
    condition,
    labels_of,
    moment,
    owner_of,
    pod_status,
    role,
    seconds_of,
)
from tfjobs import JOB_NAME, Operator, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

EMPTY = (0, 0)


@pytest.fixture(scope="module")
def place(cluster: Cluster, tfjob_crd: None,  # noqa: F811
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with fresh_namespace(cluster, "tfjob-integration") as namespace, \
            Operator(namespace, log) as operator:
        yield Place(namespace, operator)


def counts(place: Place, job: str) -> Tuple[int, int]:
    """The number of pods and of services."""
    return len(place.pods(job)), len(place.services(job))


def is_gone(place: Place, job: str) -> bool:
    return place.get("tfjobs", job) is None


def write_end(place: Place, job: str, kind: str, **more: object) -> None:
    """Writes the status of a job that has ended."""
    place.patch("tfjobs", job, {"status": {
        "conditions": [condition("Created"), condition("Running", "False"), condition(kind)],
        "startTime": PAST, **more}}, "status")


def test_T_I2_labels_and_annotations_of_the_template_are_those_of_the_pod(place: Place) -> None:
    place.start("template", Worker=role(1, metadata={
        "labels": {"team": "vision", "training.kubeflow.org/job-name": "another"},
        "annotations": {"example.org/note": "night", "example.org/empty": ""},
        "name": "ignored", "namespace": "ignored"}))
    metadata = place.wait_pods("template", 1)["template-worker-0"]["metadata"]
    assert metadata["annotations"] == {"example.org/note": "night", "example.org/empty": ""}
    assert metadata["labels"] == {
        "team": "vision",
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "template",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
        "training.kubeflow.org/job-role": "master"}


def test_T_I3_a_job_that_succeeded_keeps_the_pods_that_its_policy_names(place: Place) -> None:
    cases = {"clean-running-all": ("Running", "All", EMPTY),
             "clean-running-running": ("Running", "Running", EMPTY),
             "clean-ended-running": ("Succeeded", "Running", (6, 6)),
             "clean-ended-none": ("Succeeded", "None", (6, 6))}
    with place.without_operator():
        for name, (phase, policy, _) in cases.items():
            job = place.start(name, run_policy={"cleanPodPolicy": policy},
                              Worker=role(4), PS=role(2))
            place.add_pods(job, "worker", [phase] * 4)
            place.add_pods(job, "ps", [phase] * 2)
            write_end(place, name, "Succeeded", completionTime=moment())
    for name in cases:
        place.wait(f"the policy of {name}", lambda: counts(place, name) == cases[name][2])
    place.barrier()
    assert {name: counts(place, name) for name in cases} == {
        name: left for name, (_, _, left) in cases.items()}


def test_T_I4_Q1_a_deadline_deletes_what_is_left(place: Place) -> None:
    roles = {"Worker": role(4), "PS": role(2)}
    place.start("deadline-none", run_policy={"cleanPodPolicy": "All"}, **roles)
    place.start("deadline-two", run_policy={"cleanPodPolicy": "All", "activeDeadlineSeconds": 2},
                **roles)
    place.wait_pods("deadline-none", 6)
    # Q1, fixed: it fires although nothing else happens.
    status = place.wait_condition("deadline-two", "Failed", seconds=15)["status"]
    assert seconds_of(status["completionTime"]) - seconds_of(status["startTime"]) >= 2
    assert place.condition("deadline-two", "Failed")["message"].startswith(
        "Job deadline-two has failed because it was active longer than specified deadline")
    place.wait("its pods to go", lambda: counts(place, "deadline-two") == EMPTY)
    assert counts(place, "deadline-none") == (6, 6)


def test_T_I5_restarts_of_containers_reach_the_backoff_limit(place: Place) -> None:
    place.start("backoff", run_policy={"backoffLimit": 4, "cleanPodPolicy": "All"},
                Worker=role(4, "OnFailure"), PS=role(2))
    place.wait_pods("backoff", 6)
    place.set_pods("backoff", "Running")
    for index in range(3):
        place.set_pod(f"backoff-worker-{index}", pod_status("Running", restarts=1))
    place.barrier()
    assert ("Failed", "True") not in place.conditions("backoff")
    place.set_pod("backoff-worker-3", pod_status("Running", restarts=1))
    place.wait_condition("backoff", "Failed")
    assert place.condition("backoff", "Failed")["message"].startswith(
        "Job backoff has failed because it has reached the specified backoff limit")
    place.wait("everything to go", lambda: counts(place, "backoff") == EMPTY)


def test_T_I6_a_job_disappears_when_its_time_to_live_is_over(place: Place) -> None:
    due: Dict[str, int] = {}
    for name, phase in {"ttl-succeeded": "Succeeded", "ttl-failed": "Failed"}.items():
        place.start(name, run_policy={"ttlSecondsAfterFinished": 3}, Worker=role(1))
        place.wait_pods(name, 1)
        place.set_pod(f"{name}-worker-0", phase)
        due[name] = 3 + seconds_of(place.wait_condition(name, phase)["status"]["completionTime"])
    gone: Dict[str, float] = {}

    def all_gone() -> bool:
        for name in due:
            if name not in gone and is_gone(place, name):
                gone[name] = time.time()
        return len(gone) == len(due)
    place.wait("both to be deleted", all_gone, 15)
    assert [name for name in due if gone[name] < due[name]] == [], "deleted too early"
    for name in due:
        place.wait("its pods to go", lambda: counts(place, name) == EMPTY)
        place.wait("the event", lambda: "SuccessfulDeleteJob" in place.reasons(name))


def test_T_I7_Q6_the_time_to_live_counts_from_the_end_of_a_job(place: Place) -> None:
    a_day = 24 * 3600
    ended = {"completionTime": moment(a_day)}
    kept: Dict[str, Tuple[Dict, Dict]] = {
        "life-nil": ({}, ended),
        "life-long": ({"ttlSecondsAfterFinished": 2 * a_day}, ended),
    }
    gone: Dict[str, Tuple[Dict, Dict]] = {
        "life-180": ({"ttlSecondsAfterFinished": 180}, ended),
        "life-0": ({"ttlSecondsAfterFinished": 0}, {"completionTime": moment()}),
        # Q6, fixed: the time of the condition is used.
        "life-unknown": ({"ttlSecondsAfterFinished": 180}, {}),
    }
    with place.without_operator():
        for name, (policy, status) in {**kept, **gone}.items():
            place.start(name, run_policy=policy, Worker=role(1))
            write_end(place, name, "Succeeded", **status)
        place.start("life-suspended", run_policy={"suspend": True}, Worker=role(1))
        place.start("life-suspended-0", run_policy={"suspend": True, "ttlSecondsAfterFinished": 0},
                    Worker=role(1))
    for name in gone:
        place.wait(f"{name} to be deleted", lambda: is_gone(place, name))
    for name in ("life-suspended", "life-suspended-0"):
        place.wait_condition(name, "Suspended")
    place.barrier()
    assert not any(is_gone(place, name) for name in kept)
    assert not is_gone(place, "life-suspended-0")
    assert place.operator is not None and "life-suspended" not in place.operator.text()


def test_T_I8_Q11_a_service_is_headless_and_selects_its_pod(place: Place) -> None:
    job = place.start("serve", Chief=role(1), PS=role(1, container={
        "ports": [{"containerPort": 6006}, {"name": "debug", "containerPort": 7000}]}))
    place.wait_pods("serve", 2)
    service = place.services("serve")["serve-chief-0"]
    labels = {"training.kubeflow.org/operator-name": "tfjob-controller",
              "training.kubeflow.org/job-name": "serve",
              "training.kubeflow.org/replica-type": "chief",
              "training.kubeflow.org/replica-index": "0"}
    assert service["metadata"]["labels"] == service["spec"]["selector"] == labels
    assert service["metadata"]["ownerReferences"] == [owner_of(job)]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["ports"] == [
        {"name": "tfjob-port", "port": 2222, "protocol": "TCP", "targetPort": 2222}]
    # Q11, fixed: a port without a name gets one.
    ports = place.services("serve")["serve-ps-0"]["spec"]["ports"]
    assert sorted((port["name"], port["port"]) for port in ports) == [
        ("debug", 7000), ("port-6006", 6006), ("tfjob-port", 2222)]
    # Upstream refuses a container without ports here; the API server refuses the wrong ones.
    place.start("serve-own", Worker=role(1, container={
        "ports": [{"name": "tfjob-port", "containerPort": 3333}]}))
    place.wait_pods("serve-own", 1)
    assert place.services("serve-own")["serve-own-worker-0"]["spec"]["ports"][0]["port"] == 3333


@pytest.mark.parametrize("domain", ["", "tf.training.org"], ids=["plain", "custom"])
def test_T_I9_TF_CONFIG_names_all_replicas(
        place: Place, namespace: Namespace, tmp_path: Path, domain: str) -> None:
    if domain:
        with Operator(namespace, tmp_path / "operator.log",
                      env={"CUSTOM_CLUSTER_DOMAIN": domain}) as operator:
            check_cluster_config(Place(namespace, operator), f".{domain}")
    else:
        check_cluster_config(place, "")


def check_cluster_config(place: Place, suffix: str) -> None:
    def host(pod: str, port: int = 2222) -> str:
        return f"{pod}.{place.namespace.name}.svc{suffix}:{port}"

    place.start("config-local", Worker=role(1))
    place.start("config-two", Worker=role(1), PS=role(1))
    place.start("config-all", Worker=role(1), PS=role(1), Evaluator=role(1, container={
        "ports": [{"name": "tfjob-port", "containerPort": 3333}]}))
    assert cluster_config(place.wait_pods("config-local", 1)["config-local-worker-0"]) is None
    ps, worker = host("config-two-ps-0"), host("config-two-worker-0")
    for name, pod in place.wait_pods("config-two", 2).items():
        assert cluster_config(pod) == (
            f'{{"cluster":{{"ps":["{ps}"],"worker":["{worker}"]}},'
            f'"task":{{"type":"{name.split("-")[2]}","index":0}},"environment":"cloud"}}')
    for name, pod in place.wait_pods("config-all", 3).items():
        assert json.loads(cluster_config(pod) or "") == {
            "cluster": {"evaluator": [host("config-all-evaluator-0", 3333)],
                        "ps": [host("config-all-ps-0")], "worker": [host("config-all-worker-0")]},
            "task": {"type": name.split("-")[2], "index": 0}, "environment": "cloud"}


def test_T_I10_only_a_distributed_job_has_TF_CONFIG(place: Place) -> None:
    # A job with one PS only is rejected: test_T_I10_Q13_... of test_tfjob_crd.py.
    cases = {"alone-worker": ({"Worker": role(1)}, False),
             "alone-chief": ({"Chief": role(1)}, False),
             "both-ps": ({"Worker": role(1), "PS": role(1)}, True),
             "both-chief": ({"Worker": role(1), "Chief": role(1)}, True),
             "two-workers": ({"Worker": role(2)}, True)}
    for name, (roles, _) in cases.items():
        place.start(name, **roles)
    for name, (roles, distributed) in cases.items():
        pods = place.wait_pods(name, sum(each["replicas"] for each in roles.values()))
        assert {cluster_config(pod) is not None for pod in pods.values()} == {distributed}, name


def test_T_I11_a_replica_that_was_ended_by_a_signal_is_replaced(place: Place) -> None:
    place.start("signal", Worker=role(1, "ExitCode"), PS=role(1))
    before = {name: pod["metadata"]["uid"] for name, pod in place.wait_pods("signal", 2).items()}
    place.set_pods("signal", "Running")
    place.wait_condition("signal", "Running")
    place.set_pod("signal-worker-0", "Failed", exit_code=130)
    place.wait_condition("signal", "Restarting")
    message = place.condition("signal", "Restarting")["message"]
    assert message.startswith("job signal is restarting because Worker replica(s) failed.")
    place.wait("the new worker", lambda: place.uids("signal").get("signal-worker-0", before[
        "signal-worker-0"]) != before["signal-worker-0"])
    assert place.uids("signal")["signal-ps-0"] == before["signal-ps-0"]
    place.set_pod("signal-worker-0", "Running")
    place.wait_condition("signal", "Running")
    assert [kind for kind, _ in place.conditions("signal")] == ["Created", "Running"]
    assert "TFJobRestarting" in place.reasons("signal")


def test_T_I12_a_replica_that_exits_with_a_permanent_code_fails_the_job(place: Place) -> None:
    place.start("permanent", Worker=role(1, "ExitCode"), PS=role(1))
    place.wait_pods("permanent", 2)
    place.set_pods("permanent", "Running")
    place.set_pod("permanent-worker-0", "Failed", exit_code=1)
    job = place.wait_condition("permanent", "Failed")
    failed = place.condition("permanent", "Failed")
    assert failed["reason"] == "TFJobFailed"
    assert failed["message"].startswith(
        'job "permanent" is failing because "Worker" replica(s) failed.')
    assert "completionTime" in job["status"]


def test_T_I13_workers_beyond_the_wanted_number_are_deleted(place: Place) -> None:
    with place.without_operator():
        job = place.start("down", spec={"enableDynamicWorker": True}, Worker=role(2), PS=role(1))
        place.add_pods(job, "worker", ["Running"] * 3)
        place.add_pods(job, "ps", ["Running"])
    kept = {"down-worker-0", "down-worker-1", "down-ps-0"}
    place.wait("the third worker to go", lambda: set(place.pods("down")) == kept)
    place.wait("its service to go", lambda: set(place.services("down")) == kept)
    place.wait_condition("down", "Running")


def test_T_I14_missing_workers_are_created(place: Place) -> None:
    with place.without_operator():
        job = place.start("up", spec={"enableDynamicWorker": True}, Worker=role(3), PS=role(1))
        place.add_pods(job, "worker", ["Running"])
        first = place.uids("up")["up-worker-0"]
    place.wait_pods("up", 4)
    assert place.uids("up")["up-worker-0"] == first


def test_dynamic_workers_stay_between_the_limits_of_the_annotations(place: Place) -> None:
    prefix = "tfjob.elasticdl.org/"

    def change(workers: int, **limits: str) -> None:
        place.patch("tfjobs", "elastic", {
            "metadata": {"annotations": {f"{prefix}{name}-workers": limit
                                         for name, limit in limits.items()}},
            "spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers}}}})

    def wait_workers(count: int) -> None:
        place.wait(f"{count} workers", lambda: set(place.pods("elastic")) == {
            f"elastic-worker-{index}" for index in range(count)} == set(place.services("elastic")))

    place.start("elastic", spec={"enableDynamicWorker": True}, Worker=role(9), annotations={
        f"{prefix}min-workers": "2", f"{prefix}max-workers": "3"})
    wait_workers(3)
    first = place.uids("elastic")
    place.set_pods("elastic", "Running")
    place.wait_condition("elastic", "Running")
    change(9, max="5")
    wait_workers(5)
    change(1)
    wait_workers(2)
    change(4)
    wait_workers(4)
    place.barrier()
    assert set(place.pods("elastic")) == {f"elastic-worker-{index}" for index in range(4)}
    kept = place.uids("elastic")
    assert {name: kept[name] for name in ("elastic-worker-0", "elastic-worker-1")}.items() <= (
        first.items()), "a worker was replaced"

    place.set_pods("elastic", "Running")
    for failed in ("elastic-worker-3", "elastic-worker-1"):
        place.set_pod(failed, "Failed")
    place.wait("two failures to be counted", lambda: place.status("elastic")[
        "replicaStatuses"] == {"Worker": {"active": 2, "failed": 2}})
    place.barrier()
    assert place.conditions("elastic") == [("Created", "True"), ("Running", "True")]
    assert place.uids("elastic") == kept
    place.set_pod("elastic-worker-0", "Failed")
    place.wait_condition("elastic", "Failed")
    assert "3 Worker replica(s) failed" in place.condition("elastic", "Failed")["message"]


def test_T_I15_the_first_worker_decides(place: Place) -> None:
    cases: Dict[str, Tuple[List[object], str]] = {
        "first-runs": (["Running", "Running"], "Running"),
        "first-ended": (["Succeeded", "Running"], "Succeeded"),
        "first-ended-other-failed": (["Succeeded", "Failed"], "Succeeded"),
        "first-failed": (["Failed", "Running"], "Running"),
    }
    with place.without_operator():
        for name, (phases, _) in cases.items():
            job = place.start(name, Worker=role(2, "OnFailure"))
            place.add_pods(job, "worker", phases)
        failed = place.uids("first-failed")["first-failed-worker-0"]
        # A job without workers: its chief decides.
        for name, kind in {"only-chief": "Chief", "only-master": "Master"}.items():
            job = place.start(name, **{kind: role(1)})
            place.add_pods(job, kind.lower(), ["Succeeded"])
    for name, (_, expected) in cases.items():
        place.wait_condition(name, expected)
    for name in ("only-chief", "only-master"):
        place.wait_condition(name, "Succeeded")
    place.wait("the first worker to be replaced", lambda: place.uids("first-failed").get(
        "first-failed-worker-0", failed) != failed)
    place.barrier()
    for name, (_, expected) in cases.items():
        assert (("Succeeded", "True") in place.conditions(name)) == (expected == "Succeeded"), name


def of_workers(*phases: str, **more: object) -> Dict:
    return {"worker": list(phases), **more}


KILLED = pod_status("Failed", exit_code=130)
CREATED = ("Created", "True")
RUNNING, SUCCEEDED = [CREATED, ("Running", "True")], [CREATED, ("Succeeded", "True")]
FAILED, RESTARTING = [CREATED, ("Failed", "True")], [CREATED, ("Restarting", "True")]
# The replicas that decide still run, so the job was Running in the pass that ended it.
RAN_AND_FAILED = [CREATED, ("Running", "False"), ("Failed", "True")]
# The state of the replicas of a job; with it, its restart policy and success policy; and all
# conditions that the job must have.
STATES: Dict[str, Tuple[Dict, List[Tuple[str, str]]]] = {
    "chief-and-worker-succeeded": (of_workers("Succeeded", chief=["Succeeded"]), SUCCEEDED),
    "chief-active": (of_workers("Pending", chief=["Running"]), RUNNING),
    "chief-failed": (of_workers("Running", chief=["Failed"]), FAILED),
    "worker-failed": (of_workers("Failed"), FAILED),
    "worker-succeeded": (of_workers("Succeeded"), SUCCEEDED),
    "worker-running": (of_workers("Running"), RUNNING),
    "later-workers-succeeded": (of_workers(
        "Running", "Running", "Succeeded", "Succeeded", ps=["Running"] * 2), RUNNING),
    "two-active-two-failed": (of_workers(
        "Running", "Running", "Failed", "Failed", ps=["Running"] * 2), RAN_AND_FAILED),
    # Q5, fixed: upstream's job is Succeeded, too, because of its first worker.
    "two-succeeded-two-failed": (of_workers(
        "Succeeded", "Succeeded", "Failed", "Failed", ps=["Running"] * 2), FAILED),
    "worker-0-succeeded": (of_workers(
        "Succeeded", "Running", "Running", "Running", ps=["Running"] * 2), SUCCEEDED),
    "all-wanted-one-succeeded": (of_workers(
        "Succeeded", "Running", "Running", "Running", success="AllWorkers"), RUNNING),
    "all-wanted-all-succeeded": (of_workers(*["Succeeded"] * 4, success="AllWorkers"), SUCCEEDED),
    "all-wanted-one-failed": (of_workers(
        "Succeeded", "Running", "Running", "Failed", success="AllWorkers"), RAN_AND_FAILED),
    "chief-active-workers-failed": (
        of_workers(*["Failed"] * 4, chief=["Running"]), RAN_AND_FAILED),
    "chief-active-workers-succeeded": (of_workers(*["Succeeded"] * 4, chief=["Running"]), RUNNING),
    "chief-active-ps-failed": (of_workers(
        *["Running"] * 4, chief=["Running"], ps=["Running", "Failed"]), RAN_AND_FAILED),
    "chief-failed-workers-succeeded": (of_workers(*["Succeeded"] * 4, chief=["Failed"]), FAILED),
    # Q5, fixed: upstream's job is Failed, too, because of its workers.
    "chief-succeeded-workers-failed": (
        of_workers(*["Failed"] * 4, chief=["Succeeded"]), SUCCEEDED),
    "all-ended-by-a-signal": (
        {"chief": [KILLED], "worker": [KILLED] * 4, "restart": "ExitCode"}, RESTARTING),
}
ROLES = {"chief": "Chief", "ps": "PS", "worker": "Worker"}


def test_T_I16_Q5_the_states_of_the_replicas_make_the_conditions_of_the_job(place: Place) -> None:
    with place.without_operator():
        for name, (state, _) in STATES.items():
            kinds = [kind for kind in ROLES if kind in state]
            job = place.start(name, spec={"successPolicy": state.get("success", "")}, **{
                ROLES[kind]: role(len(state[kind]), state.get("restart")) for kind in kinds})
            for kind in kinds:
                place.add_pods(job, kind, state[kind], services=False)
    for name, (_, expected) in STATES.items():
        place.wait(f"{name} to be {expected}", lambda: place.conditions(name) == expected)
    # The next passes change nothing.
    place.barrier()
    assert {name: place.conditions(name) for name in STATES} == {
        name: expected for name, (_, expected) in STATES.items()}


def test_T_I17_only_missing_replicas_are_created(place: Place) -> None:
    pending, ends = "Pending", {"all-running": "Running", "some-running": "Running",
                                "all-succeeded": "Succeeded"}
    cases: Dict[str, Dict[str, List[str]]] = {
        "none": {"worker": [], "ps": []},
        "all-pending": {"worker": [pending] * 4, "ps": [pending] * 2},
        "all-running": {"worker": ["Running"] * 4, "ps": ["Running"] * 2},
        "some-pending": {"worker": [pending] * 2, "ps": [pending]},
        "some-running": {"worker": [pending] * 2 + ["Running"], "ps": [pending]},
        "some-succeeded": {"worker": [pending] * 2 + ["Succeeded"], "ps": [pending]},
        "all-succeeded": {"worker": ["Succeeded"] * 4, "ps": ["Succeeded"] * 2},
    }
    before: Dict[str, Dict[str, str]] = {}
    services: Dict[str, Dict[str, str]] = {}
    jobs: Dict[str, Dict] = {}
    with place.without_operator():
        jobs["local"] = place.start("local", Worker=role(1))
        for name, state in cases.items():
            jobs[name] = place.start(name, Worker=role(4), PS=role(2))
            for kind, phases in state.items():
                place.add_pods(jobs[name], kind, phases)
            before[name] = place.uids(name)
            services[name] = place.uids(name, "services")
    place.wait_pods("local", 1)
    for name in cases:
        place.wait_pods(name, 6)
    for name, end in ends.items():
        job = place.wait_condition(name, end)
        assert job["status"]["startTime"] > PAST
    place.barrier()
    for name, job in jobs.items():
        assert before.get(name, {}).items() <= place.uids(name).items(), "a replica was replaced"
        assert services.get(name, {}).items() <= place.uids(name, "services").items()
        for item in [*place.pods(name).values(), *place.services(name).values()]:
            assert item["metadata"]["ownerReferences"] == [owner_of(job)]


def test_T_I18_a_job_that_is_created_suspended_creates_nothing(place: Place) -> None:
    place.start("asleep", run_policy={"suspend": True}, Worker=role(2), PS=role(1))
    place.wait_condition("asleep", "Suspended")
    place.barrier()
    assert counts(place, "asleep") == EMPTY
    assert place.conditions("asleep") == [("Created", "True"), ("Suspended", "True")]
    assert "startTime" not in place.status("asleep")
    assert place.condition("asleep", "Suspended")["message"] == "TFJob asleep is suspended."


def test_T_I19_a_running_job_is_suspended_and_resumed(place: Place) -> None:
    place.start("nap", Chief=role(1), Worker=role(1))
    place.wait_pods("nap", 2)
    place.set_pods("nap", "Running")
    begun = place.wait_condition("nap", "Running")["status"]["startTime"]
    place.patch("tfjobs", "nap", {"spec": {"runPolicy": {"suspend": True}}})
    place.wait_condition("nap", "Suspended")
    place.wait("its pods to go", lambda: counts(place, "nap") == EMPTY)
    assert place.conditions("nap") == [
        ("Created", "True"), ("Running", "False"), ("Suspended", "True")]
    assert [place.condition("nap", kind)["reason"] for kind in ("Running", "Suspended")] == [
        "TFJobSuspended", "TFJobSuspended"]
    status = place.status("nap")
    assert status["startTime"] == begun
    assert not any(each.get("active") for each in status["replicaStatuses"].values())

    place.wait("the next second", lambda: moment() > begun)
    place.patch("tfjobs", "nap", {"spec": {"runPolicy": {"suspend": False}}})
    place.wait_pods("nap", 2)
    place.set_pods("nap", "Running")
    status = place.wait_condition("nap", "Running")["status"]
    assert place.conditions("nap") == [
        ("Created", "True"), ("Suspended", "False"), ("Running", "True")]
    assert place.condition("nap", "Suspended")["reason"] == "TFJobResumed"
    assert status["startTime"] > begun
    assert {"TFJobSuspended", "TFJobResumed"} <= place.reasons("nap")


def test_T_I20_a_job_of_another_manager_is_left_alone(place: Place) -> None:
    place.start("kueue", run_policy={"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True},
                Worker=role(1))
    place.barrier()
    place.patch("tfjobs", "kueue", {"spec": {"runPolicy": {"suspend": False}}})
    place.barrier()
    assert counts(place, "kueue") == EMPTY
    status = place.status("kueue")
    assert "startTime" not in status and not status.get("conditions")


def add_alone(place: Place, name: str, labels: Dict[str, str], **metadata: object) -> None:
    """Creates a pod and a service that look like those of a replica."""
    about = {"name": name, "labels": labels, **metadata}
    place.create("pods", {"metadata": about, "spec": role(1)["template"]["spec"]})
    place.create("services", {"metadata": about, "spec": {
        "clusterIP": "None", "ports": [{"name": "tfjob-port", "port": 2222}]}})


def test_T_R1_orphans_are_adopted_and_relabelled_objects_are_released(place: Place) -> None:
    settings = place.create("configmaps", {"metadata": {"name": "settings"}})
    of_others = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings",
                 "uid": settings["metadata"]["uid"], "controller": True}
    # What belongs to another job, and what another controller has.
    strangers = [(kind, name) for kind in ("pods", "services")
                 for name in ("stranger-worker-0", "claims-of-others")]
    with place.without_operator():
        job = place.start("claims", Worker=role(2), PS=role(1))
        add_alone(place, "claims-worker-0", labels_of("claims", "worker", 0))
        add_alone(place, "stranger-worker-0", labels_of("stranger", "worker", 0))
        add_alone(place, "claims-of-others", labels_of("claims", "worker", 7),
                  ownerReferences=[of_others])
        before = {each: place.get(*each) for each in strangers}
        orphans = {kind: place.uids("claims", kind)["claims-worker-0"]
                   for kind in ("pods", "services")}
    for kind in ("pods", "services"):
        place.wait(f"the job to own its {kind}", lambda: {
            name for name, item in place.list(kind, f"{JOB_NAME}=claims").items()
            if item["metadata"].get("ownerReferences") == [owner_of(job)]} == {
            "claims-worker-0", "claims-worker-1", "claims-ps-0"})
        assert place.uids("claims", kind)["claims-worker-0"] == orphans[kind], "created again"

    relabelled = {"pods": "claims-worker-1", "services": "claims-ps-0"}
    uids = {kind: place.uids("claims", kind)[name] for kind, name in relabelled.items()}
    for kind, name in relabelled.items():
        place.patch(kind, name, {"metadata": {"labels": {JOB_NAME: "nobody"}}})
        place.wait(f"{name} to be released", lambda: "ownerReferences" not in (
            place.get(kind, name) or {"metadata": {"ownerReferences": []}})["metadata"])
        assert (place.get(kind, name) or {})["metadata"]["uid"] == uids[kind], "created again"
        # Until it is deleted, the job cannot have another one of that name.
        place.delete(kind, name, gracePeriodSeconds=0)
    for kind, name in relabelled.items():
        place.wait(f"another {name}", lambda: place.uids("claims", kind).get(
            name, uids[kind]) != uids[kind], 60)
    place.barrier()
    assert {each: place.get(*each) for each in strangers} == before


def test_events_and_metrics_tell_the_life_of_jobs(place: Place) -> None:
    place.start("told", run_policy={"cleanPodPolicy": "All"}, Chief=role(1), Worker=role(1))
    place.wait_pods("told", 2)
    place.set_pods("told", "Running")
    place.wait_condition("told", "Running")
    place.set_pod("told-chief-0", "Succeeded")
    place.wait_condition("told", "Succeeded")
    place.wait("its pods to go", lambda: counts(place, "told") == EMPTY)
    name = place.namespace.name
    expected = {("SuccessfulCreatePod", "Created pod: told-chief-0"),
                ("SuccessfulCreatePod", "Created pod: told-worker-0"),
                ("SuccessfulCreateService", "Created service: told-chief-0"),
                ("SuccessfulCreateService", "Created service: told-worker-0"),
                ("ExitedWithCode", f"Pod: {name}.told-chief-0 exited with code 0"),
                ("TFJobSucceeded", f"TFJob {name}/told successfully completed."),
                ("SuccessfulDeletePod", "Deleted pod: told-chief-0"),
                ("SuccessfulDeletePod", "Deleted pod: told-worker-0"),
                ("SuccessfulDeleteService", "Deleted service: told-chief-0"),
                ("SuccessfulDeleteService", "Deleted service: told-worker-0")}
    place.wait("the events", lambda: expected <= set(place.events("told")))
    assert place.operator is not None
    labels = f'{{framework="tensorflow",job_namespace="{name}"}}'
    for metric in ("jobs_created_total", "jobs_successful_total"):
        found = re.search(rf'training_operator_{metric}{{([^}}]*)}} ([1-9])',
                          place.operator.metrics())
        assert found and sorted(found[1].split(",")) == sorted(labels.strip("{}").split(","))
