"""The operator with 500 TFJobs of 4 replicas on fake nodes: how fast they run and succeed, how much
it writes, its memory with 5,000 finished TFJobs, and how fast it reacts. Then the same with the
upstream operator (tools/cluster build-peers), with its default flags and with our request rate.

All run in one cluster of their own, one after the other, each in a new namespace. Pods are fake,
so they end when this program says so.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, Iterator, List
from urllib.parse import urlencode

from common import figure, median, show
from on_cluster import Api, Cluster, Namespace, PodEvent, PodWatch, create_ms, fresh_namespace
from watch import cpu_seconds, on_fake_nodes, resident_mb

os.environ["ELASTICDL_CLUSTER"] = CLUSTER = "bench-operator"

from peers import UPSTREAM, UpstreamOperator, apply_crd  # noqa: E402
from tfjobs import MANIFESTS, Operator, replicas, tfjob  # noqa: E402

ROUNDS = 50
# Between rounds. The upstream operator may send 20 requests per second, and a job takes about 7.
REST_S = 0.5
REPLICAS = 4
CLIENTS = 8  # connections of this program
PODS_A_NODE = 100
# kube-controller-manager deletes finished pods if there are more than 12,500. So 5,000 finished
# jobs cannot have 4 pods each.
FINISHED_PODS = 2
SIDES = {
    "ours": "operator.",
    "upstream": "operator.upstream.",        # with its default flags
    "raised": "operator.upstream.raised.",   # with the request rate and the threads of ours
}
# The defaults of `elasticdl operator`.
RAISED = ["--kube-api-qps=200", "--kube-api-burst=400", "--controller-threads=4"]


class StateWatch(PodWatch):
    """Counts objects by state. Thousands of objects change too often to look at all of them after
    each event. Thread-safe."""

    def __init__(self, namespace: Namespace, path: str,
                 state_of: Callable[[Dict], str]) -> None:
        super().__init__(namespace)
        self.path = path + "?" + urlencode({"watch": "true", "timeoutSeconds": 3600})
        self.state_of = state_of
        self.states: Dict[str, str] = {}
        self.counts: Counter = Counter()
        self.added: Dict[str, float] = {}  # when the first event of an object arrived
        self.moment = time.monotonic()     # when the newest event arrived

    def add(self, event: PodEvent) -> None:
        state = "" if event.kind == "DELETED" else self.state_of(event.pod)
        with self.changed:
            self.moment = event.moment
            self.added.setdefault(event.name, event.moment)
            self.counts[self.states.get(event.name, "")] -= 1
            self.counts[state] += 1
            self.states[event.name] = state
            self.changed.notify_all()

    def exist(self) -> int:
        """How many objects there are. Call it in `count` of `wait_for_count`."""
        return sum(number for state, number in self.counts.items() if state)

    def wait_for_count(self, what: str, count: Callable[[], int], wanted: int,
                       seconds: float) -> float:
        """Waits until `count()`, which looks at `counts`, is the wanted number. Returns when the
        event arrived that made it true."""
        end = time.monotonic() + seconds
        with self.changed:
            while count() != wanted:
                if self.trouble or not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"{what}: {count()} of {wanted} after {seconds:.0f} s; "
                                         f"{dict(self.counts)} ({self.trouble})")
            return self.moment

    def wait_for_first(self, names: List[str], seconds: float = 30) -> float:
        """Waits until one of the named objects exists. Returns when its first event arrived."""
        end = time.monotonic() + seconds
        with self.changed:
            while not any(name in self.added for name in names):
                assert self.changed.wait(end - time.monotonic()), (
                    f"none of {names} existed after {seconds:.0f} s ({self.trouble})")
            return min(self.added[name] for name in names if name in self.added)


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def jobs_path(namespace: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"


def pod_state(pod: Dict) -> str:
    return pod.get("status", {}).get("phase", "Pending")


def job_state(job: Dict) -> str:
    true = [condition["type"] for condition in job.get("status", {}).get("conditions", [])
            if condition["status"] == "True"]
    return true[-1] if true else "New"


def in_parallel(cluster: Cluster, count: int, act: Callable[[Api, int], None]) -> float:
    """Calls act(api, n) for each n below `count`, over several connections. Returns the seconds."""
    numbers = iter(range(count))
    lock = threading.Lock()
    trouble: List[BaseException] = []

    def work() -> None:
        try:
            api = Api(cluster)
            while not trouble:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                act(api, number)
        except BaseException as error:
            trouble.append(error)

    begin = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if trouble:
        raise trouble[0]
    return time.monotonic() - begin


def fake_job(name: str, **roles: int) -> Dict:
    made = {role: replicas(count, "true", **on_fake_nodes()) for role, count in roles.items()}
    return tfjob(name, **made)


def ended(**more: object) -> Dict:
    """The status of a pod whose container exited with 0."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now,
                            "finishedAt": now}}
    return {"status": {"phase": "Succeeded", "containerStatuses": [
        {"name": "tensorflow", "image": "busybox:1", "imageID": "", "ready": False,
         "restartCount": 0, "started": False, "state": state}], **more}}


class Writes:
    """Counts the writes of an operator, by resource.

    The API server's counters do not name the client. But in a namespace where nothing is deleted,
    only the operator writes these resources: the scheduler writes pods/binding and pods/status,
    kwok and this program write pods/status, and this program creates the TFJobs."""

    RESOURCES = {("pods", ""), ("services", ""), ("tfjobs", ""), ("tfjobs", "status"),
                 ("podgroups", ""), ("podgroups", "status")}
    VERBS = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

    def __init__(self, api: Api) -> None:
        self.api = api
        self.begin = self.read()

    def read(self) -> Counter:
        found: Counter = Counter()
        for line in self.api.stream("GET", "/metrics").read().decode().splitlines():
            if not line.startswith("apiserver_request_total{"):
                continue
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            place = labels["resource"], labels["subresource"]
            if place in self.RESOURCES and labels["verb"] in self.VERBS:
                name = " ".join((labels["verb"], "/".join(filter(None, place))))
                found[name] += int(float(line.rsplit(" ", 1)[1]))
        return found

    def since(self, jobs: int) -> Counter:
        """The writes since the beginning, without the creation of that many TFJobs."""
        return +(self.read() - self.begin - Counter({"POST tfjobs": jobs}))

    def settled(self, jobs: int) -> Counter:
        """The same, when the operator has written nothing for some seconds, or after a minute."""
        found, end = self.since(jobs), time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(3)
            before, found = found, self.since(jobs)
            if found == before:
                break
        return found


def reactions_ms(cluster: Cluster, namespace: Namespace, jobs: StateWatch,
                 pods: StateWatch) -> List[float]:
    """Milliseconds from the event of a new TFJob to that of its first pod, one job at a time."""
    api = Api(cluster)
    times = []
    for number in range(ROUNDS):
        name = f"reaction-{number}"
        api("POST", jobs_path(namespace.name), fake_job(name, Chief=1))
        answered = time.monotonic()
        created = pods.wait_for_first([f"{name}-chief-0"])
        # The event may be read later than the answer.
        times.append((created - min(answered, jobs.wait_for_first([name]))) * 1e3)
        pods.wait_for_count("the pod to run", lambda: pods.counts["Running"], 1, 60)
        api("PATCH", f"{pods_path(namespace.name)}/{name}-chief-0/status", ended())
        jobs.wait_for_count("the job to end", lambda: jobs.counts["Succeeded"], number + 1, 60)
        time.sleep(REST_S)
    return times


def many_jobs(cluster: Cluster, namespace: Namespace, count: int, jobs: StateWatch,
              pods: StateWatch, limit_s: float) -> Dict[str, float]:
    """Runs that many jobs. There are already the ended jobs of `reactions_ms`."""
    result: Dict[str, float] = {}
    writes = Writes(Api(cluster))
    begin = time.monotonic()
    in_parallel(cluster, count, lambda api, n: api(
        "POST", jobs_path(namespace.name), fake_job(f"job-{n}", Chief=1, PS=1, Worker=2)) and None)
    all_pods = count * REPLICAS
    result["all_created_s"] = pods.wait_for_count(
        "all pods", pods.exist, ROUNDS + all_pods, limit_s) - begin
    pods.wait_for_count("all pods to run", lambda: pods.counts["Running"], all_pods, limit_s)
    result["all_running_s"] = jobs.wait_for_count(
        "all jobs to run", lambda: jobs.counts["Running"], count, limit_s) - begin
    print(f"running after {result['all_running_s']:.1f} s: {dict(writes.since(count))}", flush=True)

    def finish(api: Api, number: int) -> None:
        for replica in ("ps-0", "worker-0", "worker-1", "chief-0"):
            api("PATCH", f"{pods_path(namespace.name)}/job-{number}-{replica}/status", ended())
    begin = time.monotonic()
    ending = in_parallel(cluster, count, finish)
    result["all_succeeded_s"] = jobs.wait_for_count(
        "all jobs to succeed", lambda: jobs.counts["Succeeded"], ROUNDS + count, limit_s) - begin
    total = writes.settled(count)
    result["writes_per_pod"] = sum(total.values()) / all_pods
    print(f"succeeded after {result['all_succeeded_s']:.1f} s, {ending:.1f} of them to end the "
          f"pods: {dict(total)}", flush=True)
    return result


def make_finished(cluster: Cluster, namespace: Namespace, count: int) -> None:
    """Makes TFJobs that succeeded long ago, with their pods and services."""
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))

    def condition(kind: str, status: str, message: str) -> Dict:
        return {"type": kind, "status": status, "reason": f"TFJob{kind}", "message": message,
                "lastUpdateTime": past, "lastTransitionTime": past}

    def make(api: Api, number: int) -> None:
        name, where = f"old-{number}", f"{namespace.name}/old-{number}"
        job = fake_job(name, Worker=FINISHED_PODS)
        uid = api("POST", jobs_path(namespace.name), job)["metadata"]["uid"]
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": name, "uid": uid,
                 "controller": True, "blockOwnerDeletion": True}
        for index in range(FINISHED_PODS):
            labels = {"training.kubeflow.org/operator-name": "tfjob-controller",
                      "training.kubeflow.org/job-name": name,
                      "training.kubeflow.org/replica-type": "worker",
                      "training.kubeflow.org/replica-index": str(index)}
            metadata = {"name": f"{name}-worker-{index}", "labels": labels,
                        "ownerReferences": [owner]}
            spec = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
            # No scheduler looks at it, so that it does not run before it ends.
            api("POST", pods_path(namespace.name), {
                "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {**spec, "restartPolicy": "Never", "schedulerName": "none"}})
            api("PATCH", f"{pods_path(namespace.name)}/{name}-worker-{index}/status",
                ended(startTime=past))
            api("POST", f"/api/v1/namespaces/{namespace.name}/services", {
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"clusterIP": "None", "selector": labels,
                         "ports": [{"name": "tfjob-port", "port": 2222}]}})
        api("PATCH", f"{jobs_path(namespace.name)}/{name}/status", {"status": {
            "conditions": [condition("Created", "True", f"TFJob {name} is created."),
                           condition("Running", "False", f"TFJob {where} is running."),
                           condition("Succeeded", "True",
                                     f"TFJob {where} successfully completed.")],
            "replicaStatuses": {"Worker": {"succeeded": FINISHED_PODS}},
            "startTime": past, "completionTime": past}})

    seconds = in_parallel(cluster, count, make)
    print(f"{count} finished TFJobs with {FINISHED_PODS} pods and services each: made in "
          f"{seconds:.0f} s", flush=True)


def idle_rss_mb(operator: Operator, limit_s: float = 600) -> float:
    """The memory of the operator, when it has used no processor for some seconds."""
    assert operator.process is not None
    pid, end = operator.process.pid, time.monotonic() + limit_s
    while True:
        used = cpu_seconds(pid)
        time.sleep(5)
        if cpu_seconds(pid) - used < 0.1:
            return resident_mb(pid)
        assert time.monotonic() < end, f"the operator still works after {limit_s} s"


@contextlib.contextmanager
def operator_of(side: str, cluster: Cluster, namespace: Namespace) -> Iterator[Operator]:
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        if side == "ours":
            cluster("kubectl", "apply", "-f", str(MANIFESTS / "crd.yaml"))
            operator = Operator(namespace, Path(folder) / "operator.log",
                                config=cluster.kubeconfig())
        else:
            apply_crd(cluster, UPSTREAM, "tfjobs.kubeflow.org")
            operator = UpstreamOperator(namespace, Path(folder),
                                        *(RAISED if side == "raised" else []))
        with operator:
            yield operator


@contextlib.contextmanager
def namespace_for(cluster: Cluster, name: str) -> Iterator[Namespace]:
    """A namespace that is gone at the end, so that its deletion does not disturb the next one."""
    with fresh_namespace(cluster, name) as namespace:
        yield namespace
    cluster("kubectl", "wait", "--for=delete", f"namespace/{namespace.name}", "--timeout=900s",
            timeout=920)


def measure(side: str, cluster: Cluster, count: int, limit_s: float) -> Dict[str, float]:
    with namespace_for(cluster, side) as namespace:
        with operator_of(side, cluster, namespace) as operator, \
                StateWatch(namespace, pods_path(namespace.name), pod_state) as pods, \
                StateWatch(namespace, jobs_path(namespace.name), job_state) as jobs:
            assert operator.process is not None
            print(f"{side}: {count} TFJobs", flush=True)
            times = reactions_ms(cluster, namespace, jobs, pods)
            show("a TFJob to its first pod", times)
            result = many_jobs(cluster, namespace, count, jobs, pods, limit_s)
            result["reaction_ms.median"] = median(times)
            result["cpu_s"] = cpu_seconds(operator.process.pid)
    return result


def memory(sides: List[str], cluster: Cluster, count: int) -> Dict[str, float]:
    result = {}
    # Its deletion would take minutes, and nothing is measured after it.
    with fresh_namespace(cluster, "finished") as namespace:
        make_finished(cluster, namespace, count)
        for side in sides:
            with operator_of(side, cluster, namespace) as operator:
                result[side] = idle_rss_mb(operator)
                print(f"{side}: {result[side]:.1f} MB", flush=True)
    return result


UNITS = {"all_running_s": "s", "all_succeeded_s": "s", "all_created_s": "s",
         "writes_per_pod": "writes", "reaction_ms.median": "ms", "cpu_s": "s"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=500, help="TFJobs to run")
    parser.add_argument("--finished", type=int, default=5000, help="0: do not measure memory")
    parser.add_argument("--sides", default=",".join(SIDES),
                        help="comma-separated: ours, upstream, raised")
    parser.add_argument("--limit-s", type=float, default=1800, help="for each of the two phases")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    arguments = parser.parse_args()
    sides = arguments.sides.split(",")
    if wrong := [side for side in sides if side not in SIDES]:
        parser.error(f"--sides: there is no side '{wrong[0]}'; there are {', '.join(SIDES)}")
    cluster = Cluster(CLUSTER)
    cluster("up", timeout=3600)
    try:
        nodes = -(-arguments.jobs * REPLICAS // PODS_A_NODE)
        cluster("kwok", str(nodes), timeout=300)
        with namespace_for(cluster, "floor") as namespace:
            floor = create_ms(Api(cluster), namespace, on_fake_nodes(), ROUNDS)
        figure("operator.api_create_ms.median", median(floor), "ms")
        for side in sides:
            result = measure(side, cluster, arguments.jobs, arguments.limit_s)
            for name, unit in UNITS.items():
                figure(SIDES[side] + name, result[name], unit)
        if arguments.finished:
            measured = [side for side in sides if side != "raised"]
            for side, used in memory(measured, cluster, arguments.finished).items():
                figure(f"{SIDES[side]}rss_mb.{arguments.finished}_finished", used, "MB")
    finally:
        if not arguments.keep:
            cluster("down", timeout=600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
