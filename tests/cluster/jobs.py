"""Jobs in the test cluster, submitted and observed through the command line."""

import json
import os
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Dict, List, Optional, Set

from cluster import ROOT, Cluster, Namespace, wait_for
from images import BINARY, ESTIMATOR, MASTER, Images

# A ps only sleeps. All roles exit immediately on SIGTERM, half of the workers with code 0, which
# then does not mean the end of the data.
COMMAND = ('if [ "$WORKER_TYPE" = ps ]; then trap "exit 0" TERM; sleep 1000 & wait; fi; '
           "python3 /repo/tests/e2e/programs/record_logger.py --size {size} --log-dir /out "
           "--record-us {record_us} --fast-file /out/fast & child=$!; "
           'trap "kill $child; exit $((WORKER_ID % 2))" TERM; wait $child')


def prepare_cluster(cluster: Cluster, folder: Path) -> Images:
    """Prepares a cluster for jobs: images, priority classes. `folder` is for temporary files."""
    cluster("kubectl", "apply", "-f", str(ROOT / "elasticdl/manifests/priority-classes.yaml"))
    images = Images(cluster, folder)
    images.load_all()
    return images


def prepare_namespace(namespace: Namespace) -> None:
    namespace.kubectl("apply", "-f", str(ROOT / "elasticdl/manifests/elasticdl-rbac.yaml"))


def stays_on(*nodes: str) -> dict:
    """The affinity of a pod that may run on these nodes only."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [term]}]}}}


class Job:
    """One job in a namespace."""

    def __init__(self, namespace: Namespace, name: str, out: Path) -> None:
        self.namespace, self.name, self.out = namespace, name, out
        self.env = {**os.environ, "KUBECONFIG": str(namespace.cluster.kubeconfig())}

    def cli(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [str(BINARY), *arguments, "--backend=kubernetes", f"--namespace={self.namespace.name}"],
            env=self.env, text=True, capture_output=True, check=False, timeout=180)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def packages(self) -> str:
        """A volume with TensorFlow, which the images of daily tests lack. Debian's Python searches
        its mount path after the folder of pip."""
        return (f"host_path={sysconfig.get_path('purelib')},"
                "mount_path=/usr/lib/python3.11/dist-packages")

    def submit(self, size: int, record_us: int, *more: str, command: Optional[str] = None,
               volume: str = "") -> str:
        mounts = [self.packages(), f"host_path={ROOT},mount_path=/repo",
                  f"host_path={self.out},mount_path=/out"]
        command = command or COMMAND.format(size=size, record_us=record_us)
        return self.cli(
            "train", f"--job_name={self.name}", f"--image_name={MASTER}",
            f"--worker_image={ESTIMATOR}", f"--ps_image={ESTIMATOR}",
            "--image_pull_policy=Never", f"--job_command={command}",
            "--master_resource_request=cpu=0.1,memory=128Mi",
            "--worker_resource_request=cpu=0.2,memory=128Mi",
            "--ps_resource_request=cpu=0.1,memory=64Mi",
            "--envs=PYTHONPATH=/repo,PYTHONUNBUFFERED=1",
            "--volume=" + ";".join(mounts + ([volume] if volume else [])), *more).stdout

    def pods(self) -> Dict[str, dict]:
        listed = json.loads(self.namespace.kubectl(
            "get", "pods", "-l", f"elasticdl-job-name={self.name}", "-o", "json"))
        return {item["metadata"]["name"]: item for item in listed["items"]}

    def shown(self) -> Dict[str, str]:
        """The STATUS column of `kubectl get pods`, by short pod name."""
        states = {}
        for name, pod in self.pods().items():
            short = name.replace(f"{self.name}-edljob-", "").replace(f"elasticdl-{self.name}-", "")
            leaving = pod["metadata"].get("deletionTimestamp")
            states[short] = "Terminating" if leaving else pod["status"]["phase"]
        return states

    def workers(self, state: str) -> Set[str]:
        return {name for name, shown in self.shown().items()
                if name.startswith("worker-") and shown == state}

    def wait_for_workers(self, wanted: Set[str], seconds: float = 60) -> None:
        wait_for(f"{sorted(wanted)} to run; there are {self.shown()}",
                 lambda: self.workers("Running") == wanted, seconds)

    def status(self) -> dict:
        return json.loads(self.cli("status", self.name, "--output=json").stdout)

    def records_done(self) -> int:
        datasets = self.status()["datasets"]
        return datasets[0]["records_done"] if datasets else 0

    def wait_for_records(self, more: int, seconds: float = 60) -> None:
        wanted = self.records_done() + more
        wait_for(f"{wanted} records done", lambda: self.records_done() >= wanted, seconds)

    def wait_for_end(self, seconds: float = 120) -> dict:
        def ended() -> Optional[dict]:
            view = self.status()
            return view if view["state"] not in ("starting", "running", "finishing") else None
        return wait_for(f"job {self.name} to end", ended, seconds)

    def assert_all_done(self, size: int, seconds: float = 120) -> dict:
        """Lets the job finish quickly, and checks that every record was processed."""
        (self.out / "fast").touch()
        view = self.wait_for_end(seconds)
        master = self.namespace.cluster.run("kubectl", "-n", self.namespace.name, "logs",
                                            f"elasticdl-{self.name}-master").stdout
        assert view["state"] == "succeeded", f"{view}\n{master[-3000:]}"
        dataset = view["datasets"][0]
        assert dataset["records_done"] == dataset["records_total"] == size, dataset
        assert dataset["records_not_trained"] == 0
        assert {record for _, record in self.seen()} == set(range(size))
        return view

    def seen(self) -> List[tuple]:
        """(replica, record) of all log lines of the program."""
        found = []
        for path in self.out.glob("*.log"):
            replica = path.stem.rsplit("-", 1)[0]
            found += [(replica, int(line.split()[3])) for line in path.read_text().splitlines()]
        return found

    def processes(self, pod: str, words: str) -> List[int]:
        """The ids, on this machine, of processes of a pod whose command contains `words`."""
        uid = self.pods()[pod]["metadata"]["uid"]
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                groups = (entry / "cgroup").read_text()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if uid in groups and words in command:
                found.append(int(entry.name))
        return found

    def kill_master_process(self) -> None:
        """Kills the master process, but not its supervisor."""
        pod = f"elasticdl-{self.name}-master"
        (master,) = wait_for("the master", lambda: self.processes(pod, "elasticdl master -f"))
        os.kill(master, signal.SIGKILL)
