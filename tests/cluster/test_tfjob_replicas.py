"""TFJobs with real replicas on real nodes: the end-to-end tests of upstream's suite, with their ids
in tools/tfjob_acceptance. A test tells replicas what to do over HTTP:
programs/replica_server.py.

All jobs start together, before the first test, because most of the time is that of the pods.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Dict, Iterator, Tuple

import pytest
from cluster import Cluster, fresh_namespace
from tfjob_place import Place, Refused
from tfjobs import Operator, replicas, tfjob, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

PROGRAMS = Path(__file__).parent / "programs"
JOBS: Dict[str, Dict] = {}
LIMIT_S = 120


def job(name: str, **more: object) -> str:
    """A job that starts before the first test; returns its name."""
    JOBS[name] = tfjob(name, **more)  # type: ignore[arg-type]
    return name


def program(file: str, count: int = 1, restart: str = "Never", tensorflow: bool = False) -> Dict:
    """A role that runs a program of ours."""
    volumes = [{"name": "programs", "configMap": {"name": "programs"}}]
    mounts = [{"name": "programs", "mountPath": "/programs"}]
    if tensorflow:
        volumes.append({"name": "packages",
                        "hostPath": {"path": sysconfig.get_path("purelib")}})
        mounts.append({"name": "packages", "mountPath": "/usr/lib/python3.11/dist-packages"})
    return replicas(count, restart=restart, image="python:3.11", volumes=volumes, container={
        "command": ["python3", "-B", f"/programs/{file}"], "volumeMounts": mounts,
        "env": [{"name": "TF_CPP_MIN_LOG_LEVEL", "value": "2"}]})


def server(count: int = 1, restart: str = "Never", tensorflow: bool = False) -> Dict:
    return program("replica_server.py", count, restart, tensorflow)


@pytest.fixture(scope="module")
def place(cluster: Cluster, tfjob_crd: None,  # noqa: F811
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with fresh_namespace(cluster, "tfjob-replicas") as namespace, \
            Operator(namespace, log) as operator:
        made = Place(namespace, operator)
        made.create("configmaps", {"metadata": {"name": "programs"}, "data": {
            file.name: file.read_text() for file in PROGRAMS.glob("*.py")}})
        for manifest in JOBS.values():
            made.create("tfjobs", manifest)
        yield made


def ask(place: Place, pod: str, path: str) -> str:
    """What a replica answers, over its service."""
    where = place.path("services", f"{pod}:tfjob-port", f"proxy/{path}")

    def answer() -> object:
        try:
            return [place.ask("GET", where).decode()]
        except Refused as error:
            if error.code < 500 and error.code != 404:
                raise
            return None  # the replica does not listen yet
    (text,) = place.wait(f"{pod} to answer {path}", answer, LIMIT_S)  # type: ignore[misc]
    return text


def end(place: Place, pod: str, code: int) -> Tuple[str, str]:
    """Tells a replica to exit. Returns the start of its container, for `restarted`."""
    ask(place, pod, "tfconfig")
    before = started(place, pod)
    assert ask(place, pod, f"exit?exitCode={code}") == f"exits with {code}"
    return before


def started(place: Place, pod: str) -> Tuple[str, str]:
    """Which pod it is, and when its container started."""
    found = place.get("pods", pod) or {"metadata": {"uid": ""}, "status": {}}
    (state,) = [each["state"] for each in found["status"].get("containerStatuses", [])] or [{}]
    (about,) = state.values() or [{}]
    return found["metadata"]["uid"], about.get("startedAt", "")


def wait_restarted(place: Place, pod: str, before: Tuple[str, str]) -> None:
    def check() -> bool:
        (status,) = (place.get("pods", pod) or {"status": {}})["status"].get(
            "containerStatuses", []) or [{}]
        return started(place, pod) != before and "running" in status.get("state", {})
    place.wait(f"{pod} to run again", check, LIMIT_S)


def true_conditions(place: Place, name: str) -> set:
    return {kind for kind, status in place.conditions(name) if status == "True"}


MNIST = job("mnist", Worker=program("digits.py", tensorflow=True))
DIST = job("dist", run_policy={"cleanPodPolicy": "Running"},
           PS=program("digits.py", 1, tensorflow=True),
           Worker=program("digits.py", 2, tensorflow=True))


SIMPLE = job("simple", Chief=replicas(1, "echo hello; exit 0"), Worker=1)


def test_T_O_simple_a_job_completes_and_can_be_deleted(place: Place) -> None:
    done = place.wait_condition(SIMPLE, "Succeeded", seconds=LIMIT_S)
    assert done["status"]["replicaStatuses"]["Chief"] == {"succeeded": 1}
    created = [message for reason, message in place.events(SIMPLE)
               if reason == "SuccessfulCreatePod"]
    services = [message for reason, message in place.events(SIMPLE)
                if reason == "SuccessfulCreateService"]
    assert sorted(created) == [f"Created pod: simple-{name}" for name in ("chief-0", "worker-0")]
    assert len(services) == 2
    place.delete("tfjobs", SIMPLE, propagationPolicy="Foreground")
    place.wait("the job to go", lambda: place.get("tfjobs", SIMPLE) is None, LIMIT_S)
    assert not place.pods(SIMPLE) and not place.services(SIMPLE), "they go before the job"


NAMES = job("names", Chief=server(), PS=2, Worker=3, Evaluator=1)


def test_T_O_names_and_T_O_shutdown_the_chief_ends_a_job(place: Place) -> None:
    names = {"names-chief-0", "names-evaluator-0", "names-ps-0", "names-ps-1", "names-worker-0",
             "names-worker-1", "names-worker-2"}
    place.wait("the pods to run", lambda: place.phases(NAMES) == dict.fromkeys(names, "Running"),
               LIMIT_S)
    assert set(place.services(NAMES)) == names
    place.wait_condition(NAMES, "Running")
    end(place, "names-chief-0", 0)
    place.wait_condition(NAMES, "Succeeded", seconds=LIMIT_S)
    place.barrier()
    assert place.phases(NAMES)["names-worker-0"] == "Running", "nobody has told it to exit"


LED = job("led", Worker=server(2), PS=1)


def test_T_O_shutdown_the_first_worker_ends_a_job_without_a_chief(place: Place) -> None:
    place.wait_condition(LED, "Running", seconds=LIMIT_S)
    end(place, "led-worker-0", 0)
    place.wait_condition(LED, "Succeeded", seconds=LIMIT_S)
    assert true_conditions(place, LED) == {"Created", "Succeeded"}


ALWAYS = job("always", PS=server(2, "Always"), Worker=1)
ON_FAILURE = job("onfailure", PS=server(2, "OnFailure"), Worker=1)
NEVER = job("never", PS=server(2, "Never"), Worker=1)
EXIT_CODE = job("exitcode", PS=server(2, "ExitCode"), Worker=1)


def test_T_O_restart_the_policy_decides_whether_a_replica_runs_again(place: Place) -> None:
    signalled = end(place, f"{EXIT_CODE}-ps-0", 130)
    again = {f"{ALWAYS}-ps-0": end(place, f"{ALWAYS}-ps-0", 0),
             f"{ALWAYS}-ps-1": end(place, f"{ALWAYS}-ps-1", 1),
             f"{ON_FAILURE}-ps-1": end(place, f"{ON_FAILURE}-ps-1", 1)}
    never = {f"{ON_FAILURE}-ps-0": end(place, f"{ON_FAILURE}-ps-0", 0),
             f"{NEVER}-ps-0": end(place, f"{NEVER}-ps-0", 0)}
    wait_restarted(place, f"{EXIT_CODE}-ps-0", signalled)
    for pod, before in again.items():
        wait_restarted(place, pod, before)
    for pod, before in never.items():
        place.wait(f"{pod} to end", lambda: (place.get("pods", pod) or {})["status"][
            "phase"] == "Succeeded", LIMIT_S)
        assert started(place, pod) == before
    for name in (ALWAYS, ON_FAILURE, NEVER, EXIT_CODE):
        assert not {"Failed", "Succeeded"} & true_conditions(place, name), name

    fatal = {f"{NEVER}-ps-1": end(place, f"{NEVER}-ps-1", 1),
             f"{EXIT_CODE}-ps-1": end(place, f"{EXIT_CODE}-ps-1", 1)}
    for name in (NEVER, EXIT_CODE):
        place.wait_condition(name, "Failed", seconds=LIMIT_S)
    place.barrier()
    for pod, before in fatal.items():
        assert started(place, pod) == before, f"{pod} was restarted"


CLEAN = {policy: job(f"clean-{policy.lower()}", run_policy={"cleanPodPolicy": policy},
                     Chief=server(), Worker=replicas(1, "exit 0"), PS=1)
         for policy in ("All", "Running", "None")}


def test_T_O_clean_the_policy_decides_which_pods_are_left(place: Place) -> None:
    for name in CLEAN.values():
        place.wait(f"the worker of {name} to end and the others to run", lambda: place.phases(
            name) == {f"{name}-chief-0": "Running", f"{name}-ps-0": "Running",
                      f"{name}-worker-0": "Succeeded"}, LIMIT_S)
        end(place, f"{name}-chief-0", 0)
    ended = {"chief-0": "Succeeded", "worker-0": "Succeeded"}
    left = {CLEAN[policy]: {f"{CLEAN[policy]}-{pod}": phase for pod, phase in pods.items()}
            for policy, pods in {"All": {}, "Running": ended,
                                 "None": {**ended, "ps-0": "Running"}}.items()}
    for name, pods in left.items():
        place.wait_condition(name, "Succeeded", seconds=LIMIT_S)
        place.wait(f"the policy of {name} to be carried out", lambda: place.phases(
            name) == pods, LIMIT_S)
    place.barrier()
    assert {name: place.phases(name) for name in left} == left
    for name, pods in left.items():
        assert set(place.services(name)) == set(pods)


RUN_CONFIG = job("runconfig", Chief=server(tensorflow=True), PS=server(2), Worker=server(2),
                 Evaluator=server())


def run_configs(configs: Dict[str, str]) -> Dict[str, Dict]:
    """What an Estimator makes of each TF_CONFIG. Starts TensorFlow only once."""
    code = ("import json, os, sys\nfrom replica_server import run_config\nout = {}\n"
            "for pod, config in json.load(sys.stdin).items():\n"
            "  os.environ['TF_CONFIG'] = config\n  out[pod] = run_config()\nprint(json.dumps(out))")
    done = subprocess.run([sys.executable, "-B", "-c", code], input=json.dumps(configs), text=True,
                          env={**os.environ, "PYTHONPATH": str(PROGRAMS)}, capture_output=True,
                          check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_T_O_runconfig_an_estimator_knows_its_place_in_the_cluster(place: Place) -> None:
    def host(pod: str) -> str:
        return f"runconfig-{pod}.{place.namespace.name}.svc:2222"

    cluster = {"chief": [host("chief-0")], "evaluator": [host("evaluator-0")],
               "ps": [host("ps-0"), host("ps-1")], "worker": [host("worker-0"), host("worker-1")]}
    expected = {}
    for kind, hosts in cluster.items():
        for index in range(len(hosts)):
            expected[f"runconfig-{kind}-{index}"] = {
                "task_type": kind, "task_id": index, "cluster_spec": cluster,
                "is_chief": kind == "chief", "master": f"grpc://{hosts[index]}",
                "num_worker_replicas": 3, "num_ps_replicas": 2}
    # An evaluator does not train.
    expected["runconfig-evaluator-0"].update(
        cluster_spec={}, master="", num_worker_replicas=0, num_ps_replicas=0)
    found = run_configs({pod: ask(place, pod, "tfconfig") for pod in expected})
    assert found == expected
    # In a pod it is the same.
    chief = "runconfig-chief-0"
    assert json.loads(ask(place, chief, "runconfig")) == expected[chief]
    end(place, chief, 0)
    place.wait_condition(RUN_CONFIG, "Succeeded", seconds=LIMIT_S)


APART = job("apart", Chief=server(), PS=1, Worker=1, Evaluator=server(), annotations={
    "tfjob.elasticdl.org/evaluator-in-cluster": "false",
    "tfjob.elasticdl.org/wait-for-evaluator": "true"})


def test_Q15_an_evaluator_is_left_out_of_the_cluster_and_waited_for(place: Place) -> None:
    def host(pod: str) -> str:
        return f"apart-{pod}.{place.namespace.name}.svc:2222"

    for kind in ("chief", "evaluator"):
        assert json.loads(ask(place, f"apart-{kind}-0", "tfconfig")) == {
            "cluster": {"chief": [host("chief-0")], "ps": [host("ps-0")],
                        "worker": [host("worker-0")]},
            "task": {"type": kind, "index": 0}, "environment": "cloud"}
    place.wait_condition(APART, "Running", seconds=LIMIT_S)
    end(place, "apart-chief-0", 0)
    place.wait("the chief to be counted", lambda: place.status(APART)["replicaStatuses"][
        "Chief"] == {"succeeded": 1}, LIMIT_S)
    place.barrier()
    assert true_conditions(place, APART) == {"Created", "Running"}, "the evaluator still runs"
    end(place, "apart-evaluator-0", 0)
    place.wait_condition(APART, "Succeeded", seconds=LIMIT_S)


def digits_read(place: Place, pod: str) -> int:
    """The percentage of digits that a replica of programs/digits.py reads; guessing gives 10."""
    log = place.namespace.kubectl("logs", pod)
    found = re.search(r"reads (\d+) % of the digits", log)
    assert found, log
    return int(found[1])


def test_T_E2E1_a_job_with_one_worker_learns_and_succeeds(place: Place) -> None:
    place.wait_condition(MNIST, "Succeeded", seconds=2 * LIMIT_S)
    assert true_conditions(place, MNIST) == {"Created", "Succeeded"}
    assert len(place.conditions(MNIST)) >= 2
    assert digits_read(place, "mnist-worker-0") >= 50


def test_T_O_dist_workers_learn_with_parameter_servers(place: Place) -> None:
    place.wait_condition(DIST, "Succeeded", seconds=2 * LIMIT_S)
    assert digits_read(place, "dist-worker-0") >= 50
    place.wait("the parameter server to go", lambda: "dist-ps-0" not in place.pods(DIST), LIMIT_S)
