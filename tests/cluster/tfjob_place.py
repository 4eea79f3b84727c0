"""A namespace with TFJobs over one connection to the API server. A request takes some milliseconds,
and `kubectl` takes a tenth of a second, so tests with many jobs use this.

Tests can write the pods of a job themselves, and the status of pods that no kubelet runs:
`role(2)` is a role whose pods no scheduler looks at.
"""

import base64
import calendar
import contextlib
import http.client
import json
import ssl
import tempfile
import time
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple
from urllib.parse import urlencode, urlsplit

from cluster import Namespace, wait_for
from tfjobs import JOB_NAME, REPLICA_TYPE, Operator, replicas, tfjob

OPERATOR_NAME = "training.kubeflow.org/operator-name"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
GROUPS = {
    "tfjobs": "/apis/kubeflow.org/v1", "leases": "/apis/coordination.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}
PAST = "2020-01-01T00:00:00Z"


def role(count: Optional[int] = None, restart: Optional[str] = None, **more: object) -> Dict:
    """A role whose pods stay pending until the test writes their status."""
    return replicas(count, "true", restart=restart, schedulerName="nobody", **more)


def moment(ago_s: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago_s))


def seconds_of(text: str) -> int:
    """The reverse of `moment`, in seconds since 1970."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def stays(seconds: float, check: Callable[[], object]) -> bool:
    """Whether the check is true now and for that many seconds. Returns at its first false
    result."""
    end = time.monotonic() + seconds
    return wait_for("the end or a change", lambda: (
        "changed" if not check() else time.monotonic() > end and "stayed"),
        seconds + 30) == "stayed"


def pod_status(phase: str, exit_code: Optional[int] = None, restarts: int = 0,
               **more: object) -> Dict:
    """The status of a pod whose container `tensorflow` is in that phase."""
    code = {"Succeeded": 0, "Failed": 1}.get(phase) if exit_code is None else exit_code
    if code is not None:
        state: Dict = {"terminated": {"exitCode": code, "startedAt": PAST, "finishedAt": PAST,
                                      "reason": "Error" if code else "Completed"}}
    elif phase == "Running":
        state = {"running": {"startedAt": PAST}}
    else:
        state = {"waiting": {"reason": "ContainerCreating"}}
    container = {"name": "tensorflow", "image": "busybox:1", "imageID": "", "state": state,
                 "ready": phase == "Running", "restartCount": restarts}
    return {"status": {"phase": phase, "containerStatuses": [container], **more}}


def condition(kind: str, status: str = "True", job: str = "job", when: str = PAST) -> Dict:
    """A condition as operators write it."""
    return {"type": kind, "status": status, "reason": f"TFJob{kind}", "message": f"{job} {kind}",
            "lastUpdateTime": when, "lastTransitionTime": when}


class Refused(AssertionError):
    """An answer of the API server other than 2xx."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Place:
    """The TFJobs of a namespace, and its operator if it has one. Confined to one thread."""

    def __init__(self, namespace: Namespace, operator: Optional[Operator] = None) -> None:
        self.namespace, self.operator = namespace, operator
        config = json.loads(namespace.kubectl("config", "view", "--raw", "-o", "json"))
        server = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(server["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]) + b"\n")
            pair.flush()
            self.context.load_cert_chain(pair.name)
        self.where = urlsplit(server["server"])
        self.connection: Optional[http.client.HTTPSConnection] = None

    # Requests.

    def ask(self, method: str, path: str, body: Optional[Dict] = None) -> bytes:
        """Sends a request; the answer must be 2xx."""
        kind = "merge-patch+json" if method == "PATCH" else "json"
        for again in (True, False):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    self.where.hostname or "", self.where.port, context=self.context, timeout=60)
            try:
                self.connection.request(method, path, json.dumps(body) if body else None,
                                        {"Content-Type": f"application/{kind}"})
                answer = self.connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                # The server closes connections, for example when it is restarted.
                self.connection = None
                if not again:
                    raise
        if answer.status >= 300:
            raise Refused(answer.status, f"{method} {path}: {answer.status} {text[:1000]!r}")
        return text

    def path(self, kind: str, name: str = "", sub: str = "") -> str:
        parts = [GROUPS.get(kind, "/api/v1"), "namespaces", self.namespace.name, kind, name, sub]
        return "/".join(part for part in parts if part)

    def create(self, kind: str, thing: Dict) -> Dict:
        return json.loads(self.ask("POST", self.path(kind), thing))

    def patch(self, kind: str, name: str, body: Dict, sub: str = "") -> Dict:
        return json.loads(self.ask("PATCH", self.path(kind, name, sub), body))

    def get(self, kind: str, name: str) -> Optional[Dict]:
        try:
            return json.loads(self.ask("GET", self.path(kind, name)))
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def delete(self, kind: str, name: str, **options: object) -> None:
        self.ask("DELETE", self.path(kind, name), {"kind": "DeleteOptions", "apiVersion": "v1",
                                                   **options})

    def list(self, kind: str, selector: str = "", fields: str = "") -> Dict[str, Dict]:
        """The objects by name."""
        query = urlencode({"labelSelector": selector, "fieldSelector": fields})
        found = json.loads(self.ask("GET", f"{self.path(kind)}?{query}"))
        return {item["metadata"]["name"]: item for item in found["items"]}

    # What is there.

    def job(self, name: str) -> Dict:
        found = self.get("tfjobs", name)
        assert found is not None, f"there is no TFJob {name}"
        return found

    def status(self, job: str) -> Dict:
        return (self.get("tfjobs", job) or {}).get("status", {})

    def conditions(self, job: str) -> List[Tuple[str, str]]:
        """Type and status of each condition, in their order."""
        return [(each["type"], each["status"])
                for each in self.status(job).get("conditions", [])]

    def condition(self, job: str, kind: str) -> Dict:
        (found,) = [each for each in self.status(job)["conditions"] if each["type"] == kind]
        return found

    def pods(self, job: str) -> Dict[str, Dict]:
        return self.list("pods", f"{JOB_NAME}={job}")

    def services(self, job: str) -> Dict[str, Dict]:
        return self.list("services", f"{JOB_NAME}={job}")

    def phases(self, job: str) -> Dict[str, str]:
        """The phase of each pod; "Terminating" if it is being deleted."""
        return {name: "Terminating" if "deletionTimestamp" in pod["metadata"]
                else pod["status"].get("phase", "") for name, pod in self.pods(job).items()}

    def uids(self, job: str, kind: str = "pods") -> Dict[str, str]:
        return {name: item["metadata"]["uid"]
                for name, item in self.list(kind, f"{JOB_NAME}={job}").items()}

    def events(self, job: str) -> List[Tuple[str, str]]:
        """Reason and message of each event about the job."""
        found = self.list("events", fields=f"involvedObject.kind=TFJob,involvedObject.name={job}")
        return [(event["reason"], event["message"]) for event in found.values()]

    def reasons(self, job: str) -> Set[str]:
        return {reason for reason, _ in self.events(job)}

    # What a test writes.

    def start(self, name: str, *more: object, **roles: object) -> Dict:
        """Creates a TFJob; the arguments are those of `tfjob`."""
        return self.create("tfjobs", tfjob(name, *more, **roles))  # type: ignore[arg-type]

    def add_pods(self, job: Dict, kind: str, phases: Sequence[object], first: int = 0,
                 services: bool = True) -> None:
        """Makes pods of a role, and their services, as the operator does. A phase may also be what
        `pod_status` returns."""
        name = job["metadata"]["name"]
        spec = next(spec for key, spec in job["spec"]["tfReplicaSpecs"].items()
                    if key.lower() == kind)
        policy = spec.get("restartPolicy", "Never")
        for index, phase in enumerate(phases, first):
            labels = labels_of(name, kind, index)
            metadata = {"name": f"{name}-{kind}-{index}", "labels": labels,
                        "ownerReferences": [owner_of(job)]}
            self.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
                **spec["template"]["spec"],
                "restartPolicy": "Never" if policy == "ExitCode" else policy}})
            if phase != "Pending":
                self.set_pod(str(metadata["name"]), phase)
            if services:
                self.create("services", {
                    "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                    "spec": {"clusterIP": "None", "selector": labels,
                             "ports": [{"name": "tfjob-port", "port": 2222}]}})

    def set_pod(self, name: str, phase: object, **more: object) -> None:
        """Writes the status of a pod; `phase` is a phase or what `pod_status` returns."""
        status = phase if isinstance(phase, dict) else pod_status(
            str(phase), **more)  # type: ignore[arg-type]
        self.patch("pods", name, status, "status")

    def set_pods(self, job: str, phase: str, *kinds: str) -> None:
        """Writes the status of all pods of a job, or of some roles."""
        for name, pod in self.pods(job).items():
            if not kinds or pod["metadata"]["labels"][REPLICA_TYPE] in kinds:
                self.set_pod(name, phase)

    # Waiting.

    def wait(self, what: str, check: Callable[[], object], seconds: float = 30) -> object:
        """Waits; if that fails, tells what the operator has logged."""
        try:
            return wait_for(what, check, seconds)
        except AssertionError as error:
            log = self.operator.text()[-6000:] if self.operator else ""
            raise AssertionError(f"{error}\nthe operator's log ends with:\n{log}") from None

    def wait_pods(self, job: str, count: int, seconds: float = 30) -> Dict[str, Dict]:
        """Waits until a job has that many pods, and as many services."""
        self.wait(f"TFJob {job} to have {count} pods and services", lambda: (
            len(self.pods(job)) == count == len(self.services(job))), seconds)
        return self.pods(job)

    def wait_condition(self, job: str, kind: str, status: str = "True",
                       seconds: float = 30) -> Dict:
        """Waits until a condition of a job has this status; returns the job."""
        try:
            self.wait(f"TFJob {job} to be {kind}={status}",
                      lambda: (kind, status) in self.conditions(job), seconds)
        except AssertionError as error:
            shown = json.dumps({"status": self.status(job), "pods": {
                name: pod["status"] for name, pod in self.pods(job).items()},
                "events": self.events(job)}, indent=1)
            raise AssertionError(f"{error}\n{shown}") from None
        return self.job(job)

    def barrier(self) -> None:
        """Waits until the operator has run a job that is created now: so it has looked at those
        that were created before."""
        name = f"barrier-{time.monotonic_ns()}"
        self.start(name, Worker=role(1))
        self.wait_pods(name, 1)
        self.set_pod(f"{name}-worker-0", "Succeeded")
        self.wait_condition(name, "Succeeded")
        self.delete("tfjobs", name)

    @contextlib.contextmanager
    def without_operator(self) -> Iterator[None]:
        """Stops the operator, and starts it at the end. It then sees what was written meanwhile
        at once, as one state."""
        assert self.operator is not None
        assert self.operator.stop() == 0
        try:
            yield
        finally:
            self.operator.start()


def owner_of(job: Dict) -> Dict:
    """The owner reference of what belongs to a job."""
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


@contextlib.contextmanager
def priority_classes(place: Place, classes: Dict[str, int]) -> Iterator[None]:
    """Creates classes of these names and values. They belong to the whole cluster."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in classes.items():
        place.ask("POST", path, {"metadata": {"name": name}, "value": value})
    try:
        yield
    finally:
        for name in classes:
            place.ask("DELETE", f"{path}/{name}")


def labels_of(job: str, kind: str, index: int) -> Dict[str, str]:
    """The labels of a replica's pod and service."""
    return {OPERATOR_NAME: "tfjob-controller", JOB_NAME: job, REPLICA_TYPE: kind,
            REPLICA_INDEX: str(index)}


def cluster_config(pod: Dict) -> Optional[str]:
    """TF_CONFIG of a pod; None if it has none."""
    found = [variable["value"] for variable in pod["spec"]["containers"][0].get("env", [])
             if variable["name"] == "TF_CONFIG"]
    return found[-1] if found else None
