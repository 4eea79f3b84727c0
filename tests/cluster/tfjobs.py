"""TFJobs in the test cluster: their CRD, manifests, and an operator as a process of this machine.

A test module imports the fixture with `from tfjobs import tfjob_crd  # noqa: F401` and uses it with
`pytestmark = pytest.mark.usefixtures("tfjob_crd")`.
"""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Dict, List, Optional, Union

import pytest
from cluster import ROOT, Cluster, Namespace, wait_for, wait_for_crd
from operator_rights import config_with_shipped_rights

BINARY = Path(os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl"))
MANIFESTS = ROOT / "elasticdl/manifests/tfjob-operator"
READY = "operator: watching TFJobs"
JOB_NAME, REPLICA_TYPE = "training.kubeflow.org/job-name", "training.kubeflow.org/replica-type"
# Runs until it is told to exit.
SLEEP = 'trap "exit 0" TERM; sleep 1000 & wait'


@pytest.fixture(scope="session")
def tfjob_crd(cluster: Cluster) -> None:
    """Makes the cluster serve TFJobs. It serves them to all tests, so the CRD is never deleted."""
    cluster("kubectl", "apply", "-f", str(MANIFESTS / "crd.yaml"))
    wait_for_crd(cluster, "tfjobs.kubeflow.org")


def replicas(count: Optional[int] = None, command: str = SLEEP, image: str = "busybox:1",
             restart: Optional[str] = None, container: Optional[Dict] = None,
             metadata: Optional[Dict] = None, **pod: object) -> Dict:
    """A role of a TFJob. `container` has more fields of its container, `pod` more of its pods."""
    main: Dict = {"name": "tensorflow", "image": image, "imagePullPolicy": "IfNotPresent",
                  "command": ["sh", "-c", command], "resources": {"requests": {"cpu": "10m"}}}
    main.update(container or {})
    spec = {"containers": [main], "terminationGracePeriodSeconds": 5, **pod}
    made: Dict = {"template": {"spec": spec}}
    if count is not None:
        made["replicas"] = count
    if restart is not None:
        made["restartPolicy"] = restart
    if metadata is not None:
        made["template"]["metadata"] = metadata
    return made


def tfjob(name: str, command: str = SLEEP, restart: Optional[str] = None,
          run_policy: Optional[Dict] = None, annotations: Optional[Dict[str, str]] = None,
          spec: Optional[Dict] = None, **roles: Union[int, Dict]) -> Dict:
    """A TFJob. A role is a number of replicas, which run `command`, or what `replicas` returns:
    `tfjob("mnist", Worker=2, PS=1, Chief=replicas(1, command="exit 0"))`. `spec` has more fields
    of the job's spec."""
    made: Dict = {"tfReplicaSpecs": {
        role: replicas(wanted, command, restart=restart) if isinstance(wanted, int) else wanted
        for role, wanted in roles.items()}}
    if run_policy is not None:
        made["runPolicy"] = run_policy
    made.update(spec or {})
    metadata: Dict = {"name": name}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": made}


def pods_of(namespace: Namespace, job: str) -> Dict[str, Dict]:
    """The pods of a job, by name."""
    listed = json.loads(namespace.kubectl("get", "pods", "-l", f"{JOB_NAME}={job}", "-o", "json"))
    return {item["metadata"]["name"]: item for item in listed["items"]}


def conditions_of(namespace: Namespace, job: str) -> List[Dict]:
    """The conditions of a job in their order; none if there is no such job."""
    found = namespace.get("tfjob", job)
    return (found or {}).get("status", {}).get("conditions", [])


def has_condition(namespace: Namespace, job: str, kind: str, status: str = "True") -> bool:
    return any(condition["type"] == kind and condition["status"] == status
               for condition in conditions_of(namespace, job))


def wait_for_condition(namespace: Namespace, job: str, kind: str, status: str = "True",
                       seconds: float = 60) -> Dict:
    """Waits until a condition of a job has this status; returns the job."""
    try:
        wait_for(f"TFJob {job} to be {kind}={status}",
                 lambda: has_condition(namespace, job, kind, status), seconds)
    except AssertionError as error:
        about = namespace.cluster.run("kubectl", "-n", namespace.name, "describe", "tfjob", job)
        raise AssertionError(f"{error}\n{about.stdout}{about.stderr}") from None
    found = namespace.get("tfjob", job)
    assert found is not None
    return found


class Operator:
    """`elasticdl operator` for one namespace, as a process of this machine.

    `with Operator(namespace, tmp_path / "operator.log") as operator:` starts it, waits until it is
    ready, and kills it at the end. If the block fails, the log is printed.
    """

    def __init__(self, namespace: Namespace, log: Path, *flags: str, config: Optional[Path] = None,
                 env: Optional[Dict[str, str]] = None) -> None:
        """`config` is a kubeconfig; default: one with the permissions of the shipped manifests."""
        self.log = log
        self.command = [str(BINARY), "operator", f"--namespace={namespace.name}",
                        "--metrics-bind-address=127.0.0.1:0",
                        "--health-probe-bind-address=127.0.0.1:0", *flags]
        if config is None:
            config = config_with_shipped_rights(namespace, log.with_suffix(".kubeconfig"))
        self.env = {**os.environ, "KUBECONFIG": str(config), **(env or {})}
        self.process: Optional[subprocess.Popen] = None
        self.begin = 0  # where the log of the newest process begins

    def start(self, wait: bool = True) -> None:
        """Starts the process, again after `kill` or `stop`. With `wait`, waits until it is ready,
        which a process that waits for its lease is not."""
        assert self.process is None, "the operator already runs"
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT)
        if wait:
            self.wait_for_log(READY)

    def text(self) -> str:
        """What the newest process has logged."""
        return self.log.read_bytes()[self.begin:].decode(errors="replace")

    def wait_for_log(self, words: str, seconds: float = 30) -> None:
        def logged() -> bool:
            found = words in self.text()
            assert found or self.process is None or self.process.poll() is None, (
                f"the operator exited with {self.process.returncode} before it logged '{words}'\n"
                f"{self.text()[-3000:]}")
            return found
        wait_for(f"the operator to log '{words}'", logged, seconds)

    def kill(self) -> None:
        """Ends the process with SIGKILL, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=30)
            self.process = None

    def stop(self, seconds: float = 30) -> int:
        """Ends the process with SIGTERM and returns its exit code."""
        assert self.process is not None, "the operator does not run"
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the operator still runs {seconds} s after SIGTERM") from None
        finally:
            self.kill()

    def url_of(self, pages: str) -> str:
        """The address of its metrics or of its probes."""
        where = re.search(rf"{pages} on (\S+:\d+)", self.text())
        assert where, f"the operator did not log its address for {pages}\n{self.text()[-3000:]}"
        return f"http://{where[1]}"

    def metrics(self) -> str:
        """The page of metrics."""
        with urllib.request.urlopen(f"{self.url_of('metrics')}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def is_ready(self) -> bool:
        """Whether its probe /readyz succeeds."""
        try:
            with urllib.request.urlopen(f"{self.url_of('probes')}/readyz", timeout=10):
                return True
        except urllib.error.HTTPError as error:
            assert error.code == 503, error
            return False

    def __enter__(self) -> "Operator":
        try:
            self.start()
        except BaseException:
            self.__exit__(AssertionError)
            raise
        return self

    def __exit__(self, error: object = None, *_: object) -> None:
        died = self.process is not None and self.process.poll() is not None
        self.kill()
        if (error is not None or died) and self.log.exists():
            print(f"log of the operator ({self.log}):\n{self.log.read_text(errors='replace')}")
        assert error is not None or not died, "the operator exited by itself; its log is above"
