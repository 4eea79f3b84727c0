"""Common code of the benchmarks with jobs in the cluster of tools/cluster. Needs root."""

import base64
import contextlib
import http.client
import json
import ssl
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set
from urllib.parse import urlencode, urlsplit

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "cluster"), str(TESTS)]

from cluster import Cluster, Namespace, fresh_namespace, running_cluster  # noqa: E402
from jobs import Job, prepare_cluster, prepare_namespace, stays_on  # noqa: E402, F401

LEASE_LOGGER = "/repo/tests/e2e/programs/lease_logger.py"


@contextlib.contextmanager
def cluster_with_image() -> Iterator[Cluster]:
    with running_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        prepare_cluster(cluster, Path(folder))
        yield cluster


@contextlib.contextmanager
def namespace_for(cluster: Cluster, name: str) -> Iterator[Namespace]:
    with fresh_namespace(cluster, f"bench-{name}") as namespace:
        prepare_namespace(namespace)
        yield namespace


@contextlib.contextmanager
def job_in(namespace: Namespace, name: str) -> Iterator[Job]:
    """A job that is not submitted yet, and is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        job = Job(namespace, name, Path(folder) / "out")
        job.out.mkdir()
        try:
            yield job
        finally:
            job.cli("stop", name, check=False)


def holding(hold_ms: int, shards: int) -> str:
    """The command of a job whose workers hold each shard for this time."""
    return (f"exec python3 {LEASE_LOGGER} --log-dir=/out --hold-ms={hold_ms} --size={shards}")


# The API server closes a connection that is idle for 90 s.
IDLE_S = 60


class Api:
    """A client of the API server over one connection, without kubectl. Confined."""

    def __init__(self, cluster: Cluster) -> None:
        config = json.loads(cluster("kubectl", "config", "view", "--raw", "-o", "json"))
        server = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(server["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]) + b"\n")
            pair.flush()
            context.load_cert_chain(pair.name)
        place = urlsplit(server["server"])
        self.connection = http.client.HTTPSConnection(place.hostname, place.port, context=context)
        self.used = time.monotonic()

    def stream(self, method: str, path: str,
               body: Optional[Dict] = None) -> http.client.HTTPResponse:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        if time.monotonic() - self.used > IDLE_S:
            self.connection.close()  # request() opens a new one
        self.used = time.monotonic()
        self.connection.request(method, path, json.dumps(body) if body else None,
                                {"Content-Type": f"application/{kind}"})
        answer = self.connection.getresponse()
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.read()[:500]!r}"
        return answer

    def __call__(self, method: str, path: str, body: Optional[Dict] = None) -> Dict:
        return json.loads(self.stream(method, path, body).read())


def create_ms(api: Api, namespace: Namespace, place: Dict, rounds: int) -> List[float]:
    """The milliseconds of each of `count` creations of a pod by an otherwise idle client.

    `place`: the part of the pod spec about nodes."""
    pods = f"/api/v1/namespaces/{namespace.name}/pods"
    times = []
    for number in range(rounds):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"floor-{number}"},
               "spec": {**place, "restartPolicy": "Never", "containers": [
                   {"name": "main", "image": "busybox:1", "command": ["true"]}]}}
        begin = time.monotonic()
        api("POST", pods, pod)
        times.append((time.monotonic() - begin) * 1e3)
        api("DELETE", f"{pods}/floor-{number}", {"gracePeriodSeconds": 0})
    return times


class PodEvent(NamedTuple):
    moment: float  # when it arrived, by the monotonic clock
    kind: str      # ADDED, MODIFIED or DELETED
    pod: Dict

    @property
    def name(self) -> str:
        return self.pod["metadata"]["name"]

    @property
    def phase(self) -> str:
        return self.pod["status"].get("phase", "")

    @property
    def leaving(self) -> bool:
        return self.kind == "DELETED" or "deletionTimestamp" in self.pod["metadata"]

    @property
    def role(self) -> str:
        return self.pod["metadata"].get("labels", {}).get("elasticdl-replica-type", "")


class PodWatch:
    """Watches the pods of a namespace. Thread-safe."""

    def __init__(self, namespace: Namespace) -> None:
        self.api = Api(namespace.cluster)
        self.path = (f"/api/v1/namespaces/{namespace.name}/pods?"
                     + urlencode({"watch": "true", "timeoutSeconds": 3600}))
        self.changed = threading.Condition()
        self.events: List[PodEvent] = []
        self.there: Dict[str, PodEvent] = {}  # the last event of each existing pod
        self.trouble: Optional[BaseException] = None
        self.ending = False
        self.thread = threading.Thread(target=self.follow)

    def __enter__(self) -> "PodWatch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending = True
        # Only closing the socket wakes the thread, which reads from it.
        with contextlib.suppress(OSError):
            self.api.connection.sock.shutdown(2)
        self.thread.join()

    def follow(self) -> None:
        try:
            stream = self.api.stream("GET", self.path)
            for line in iter(stream.readline, b""):
                moment = time.monotonic()
                said = json.loads(line)
                self.add(PodEvent(moment, said["type"], said["object"]))
            raise ConnectionError("the server ended the watch")
        except (OSError, ValueError, http.client.HTTPException, AssertionError) as trouble:
            with self.changed:
                self.trouble = trouble
                self.changed.notify_all()

    def add(self, event: PodEvent) -> None:
        with self.changed:
            self.events.append(event)
            self.there[event.name] = event
            if event.kind == "DELETED":
                del self.there[event.name]
            self.changed.notify_all()

    def place(self) -> int:
        """The position of the next event."""
        with self.changed:
            return len(self.events)

    def first(self, what: str, matches: Callable[[PodEvent], bool], after: int = 0,
              seconds: float = 60) -> PodEvent:
        """Waits for the first event from that position on that matches."""
        end = time.monotonic() + seconds
        with self.changed:
            while True:
                for event in self.events[after:]:
                    if matches(event):
                        return event
                after = len(self.events)
                if self.trouble or not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"{what}: not within {seconds} s ({self.trouble})")

    def wait_until(self, what: str, check: Callable[[Dict[str, PodEvent]], bool],
                   seconds: float = 60) -> float:
        """Waits until `check` is true for the existing pods, by name. Returns the time of the event
        that made it true, or of the call."""
        moment = time.monotonic()
        end = moment + seconds
        with self.changed:
            while not check(self.there):
                if self.trouble or not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"{what}: not within {seconds} s ({self.trouble})")
                moment = self.events[-1].moment if self.events else moment
        return moment


def running_workers(there: Dict[str, PodEvent]) -> Set[str]:
    return {name for name, event in there.items()
            if event.role == "worker" and event.phase == "Running" and not event.leaving}


class Succession(NamedTuple):
    """Milliseconds from the end of a worker to the creation of its replacement, by our watch."""
    from_event: float  # from the event, or the answer, that the pod is being deleted
    from_asking: float  # from the request to delete, independent of when events are read


def delete_worker(api: Api, job: Job, watch: PodWatch, pod: str) -> Succession:
    """Deletes the pod of a worker, and returns when its replacement runs."""
    place = watch.place()
    asked = time.monotonic()
    api("DELETE", f"/api/v1/namespaces/{job.namespace.name}/pods/{pod}")
    answered = time.monotonic()
    leaving = watch.first(f"{pod} to be on its way out",
                          lambda event: event.name == pod and event.leaving, place)
    created = watch.first("its successor", lambda event: event.kind == "ADDED"
                          and event.role == "worker", place)
    watch.first("the successor to run", lambda event: event.name == created.name
                and event.phase == "Running", place)
    return Succession((created.moment - min(leaving.moment, answered)) * 1e3,
                      (created.moment - asked) * 1e3)
