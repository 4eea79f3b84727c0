"""TFJobs with the annotation tfjob.elasticdl.org/data-shards: the operator gives them a service
that leases data shards, so their workers are elastic and lose no record."""

import os
import shutil
import signal
import sqlite3
import sysconfig
from pathlib import Path
from typing import Dict, List, Optional, Set

import pytest
from cluster import ROOT, Namespace, wait_for
from images import MASTER
from test_jobs import claim_of_a_disk
from tfjobs import Operator, pods_of, replicas, tfjob, tfjob_crd, wait_for_condition  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

SHARDS = "tfjob.elasticdl.org/data-shards"
RECORDS, RECORDS_OF_A_SHARD = 12000, 10
PROGRAM = (f"exec python3 -B /repo/tests/e2e/programs/record_logger.py --size {RECORDS} "
           "--log-dir /out --record-us {record_us} --fast-file /out/fast")


class ShardedJob:
    """A TFJob whose workers log each record that they train."""

    def __init__(self, namespace: Namespace, name: str, out: Path) -> None:
        self.namespace, self.name, self.out = namespace, name, out
        out.mkdir(mode=0o777)
        out.chmod(0o777)

    def create(self, workers: int, record_us: int = 5000, **annotations: str) -> None:
        folders = {"packages": (sysconfig.get_path("purelib"), "/usr/lib/python3.11/dist-packages"),
                   "repo": (str(ROOT), "/repo"), "out": (str(self.out), "/out")}
        role = replicas(
            workers, PROGRAM.format(record_us=record_us), image="python:3.11", restart="ExitCode",
            volumes=[{"name": name, "hostPath": {"path": path}}
                     for name, (path, _) in folders.items()],
            container={
                "volumeMounts": [{"name": name, "mountPath": path}
                                 for name, (_, path) in folders.items()],
                "env": [{"name": "PYTHONPATH",
                         "value": "/repo:/usr/lib/python3.11/dist-packages"}]})
        self.namespace.apply(tfjob(
            self.name, annotations={SHARDS: "true", **annotations},
            spec={"enableDynamicWorker": True}, Worker=role))

    def progress(self) -> Optional[int]:
        """The number in the column PROGRESS of `kubectl get tfjobs`."""
        found = self.namespace.get("tfjob", self.name) or {}
        shown = found.get("status", {}).get("elasticdl", {}).get("progress", "")
        return int(shown.removesuffix(" %")) if shown else None

    def wait_for_progress(self, least: int, seconds: float = 90) -> None:
        def reached() -> bool:
            progress = self.progress()
            return progress is not None and progress >= least
        wait_for(f"progress of {least} %", reached, seconds)

    def seen(self) -> List[tuple]:
        """(worker, record) of all log lines of the program."""
        return [(path.stem.rsplit("-", 1)[0], int(line.split()[3]))
                for path in self.out.glob("*.log") for line in path.read_text().splitlines()]

    def workers_seen(self) -> Set[str]:
        return {path.stem.rsplit("-", 1)[0] for path in self.out.glob("*.log")}

    def service_process(self, words: str) -> int:
        """The id, on this machine, of a process of the service whose command has `words`."""
        def find() -> Optional[int]:
            uid = pods_of(self.namespace, self.name)[f"{self.name}-shards"]["metadata"]["uid"]
            for entry in Path("/proc").iterdir():
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if words in command and uid in (entry / "cgroup").read_text():
                        return int(entry.name)
                except OSError:
                    continue
            return None
        return wait_for(f"a process '{words}'", find, 30)

    def ledger(self, folder: Path) -> Dict[str, int]:
        """The counts of the dataset in the ledger. It copies the files to `folder`, because the
        service locks them."""
        state = Path(f"/proc/{self.service_process('elasticdl supervise')}/root/elasticdl/state")
        for name in ("ledger.sqlite", "ledger.sqlite-wal"):
            shutil.copy(state / name, folder / name)
        with sqlite3.connect(folder / "ledger.sqlite") as ledger:
            ledger.row_factory = sqlite3.Row
            (dataset,) = ledger.execute("SELECT * FROM datasets")
            (leases,) = ledger.execute("SELECT COUNT(*) FROM leases").fetchone()
            done = ledger.execute("SELECT first, last FROM done WHERE epoch >= 0").fetchall()
        return {"records": dataset["records_done"], "shards": dataset["shards_done"],
                "repeated": dataset["shards_repeated"], "leases": leases, "ranges": len(done)}


@pytest.fixture
def sharded(images, namespace, tmp_path):
    with Operator(namespace, tmp_path / "operator.log", f"--shard-service-image={MASTER}"):
        yield ShardedJob(namespace, "sharded", tmp_path / "out")


def test_elastic_workers_train_every_record_and_the_ledger_counts_each_once(sharded, tmp_path):
    sharded.create(workers=2)
    sharded.wait_for_progress(1)
    first = pods_of(sharded.namespace, "sharded")["sharded-worker-1"]["metadata"]["uid"]

    # A worker is lost without a warning, the service twice, and another worker is added.
    sharded.namespace.kubectl("delete", "pod", "sharded-worker-1", "--grace-period=0", "--force")
    os.kill(sharded.service_process("elasticdl master"), signal.SIGKILL)
    sharded.wait_for_progress((sharded.progress() or 0) + 2)
    os.kill(sharded.service_process("elasticdl supervise"), signal.SIGKILL)
    sharded.namespace.kubectl("patch", "tfjob", "sharded", "--type=merge", "-p",
                              '{"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}}')
    wait_for("all workers to train",
             lambda: sharded.workers_seen() == {"worker-0", "worker-1", "worker-2"}, 90)
    (sharded.out / "fast").touch()

    wait_for_condition(sharded.namespace, "sharded", "Succeeded", seconds=120)
    ledger = sharded.ledger(tmp_path)
    assert {record for _, record in sharded.seen()} == set(range(RECORDS))
    assert ledger["records"] == RECORDS
    assert ledger["shards"] == RECORDS // RECORDS_OF_A_SHARD
    assert ledger["leases"] == 0
    assert ledger["repeated"] >= 1
    sharded.wait_for_progress(100, 30)
    assert "100 %" in sharded.namespace.kubectl("get", "tfjob", "sharded")
    pods = pods_of(sharded.namespace, "sharded")
    assert pods["sharded-worker-1"]["metadata"]["uid"] != first
    assert pods["sharded-shards"]["status"]["containerStatuses"][0]["restartCount"] == 1
    assert "training.kubeflow.org/replica-type" not in pods["sharded-shards"]["metadata"]["labels"]
    wait_for("the service to end with its job",
             lambda: "sharded-shards" not in pods_of(sharded.namespace, "sharded"), 60)


def test_a_service_with_a_claim_goes_on_in_a_new_pod(sharded, tmp_path):
    volume = sharded.namespace.name
    sharded.namespace.apply(*claim_of_a_disk(tmp_path / "disk", volume))
    sharded.create(2, **{f"{SHARDS}-claim": "data"})
    sharded.wait_for_progress(3)
    before = sharded.progress()
    first = pods_of(sharded.namespace, "sharded")["sharded-shards"]["metadata"]["uid"]

    sharded.namespace.kubectl("delete", "pod", "sharded-shards")

    wait_for("a new pod", lambda: pods_of(sharded.namespace, "sharded").get(
        "sharded-shards", {}).get("metadata", {}).get("uid", first) != first, 60)
    (sharded.out / "fast").touch()
    wait_for_condition(sharded.namespace, "sharded", "Succeeded", seconds=120)
    ledger = sharded.ledger(tmp_path)
    assert ledger["records"] == RECORDS
    assert ledger["shards"] == RECORDS // RECORDS_OF_A_SHARD
    assert before >= 3
    trained = [record for _, record in sharded.seen()]
    assert set(trained) == set(range(RECORDS))
    # Nothing that was reported before is trained again.
    assert len(trained) < RECORDS * (100 + before) // 100
    sharded.namespace.kubectl("delete", "pv", volume, "--wait=false")


def test_the_service_has_no_permission_and_goes_with_its_job(sharded):
    sharded.create(workers=1)
    sharded.wait_for_progress(0)
    wait_for("the service", lambda: sharded.namespace.phase("sharded-shards") == "Running", 60)
    pod = sharded.namespace.get("pod", "sharded-shards")
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]] == [
        "/elasticdl/token", "/elasticdl/state"]

    sharded.namespace.kubectl("delete", "tfjob", "sharded")

    wait_for("all objects to be deleted", lambda: not sharded.namespace.kubectl(
        "get", "pods,services,secrets", "-l", "training.kubeflow.org/job-name=sharded",
        "-o", "name"), 60)
