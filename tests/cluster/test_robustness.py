"""Disturbances of a cluster do not end a healthy job, and no pod outlives its job."""

import json
import os
import signal
import time
from pathlib import Path

from cluster import ROOT, kubelet_of, nightly, wait_for
from images import ESTIMATOR
from test_jobs import claim_of_a_disk

RBAC = str(ROOT / "elasticdl/manifests/elasticdl-rbac.yaml")


def sidecar(role, command, **more):
    """A cluster spec that adds a container to the pods of a role."""
    container = {"image": ESTIMATOR, "imagePullPolicy": "Never", "command": ["sh", "-c", command],
                 **more}
    return "--cluster_spec_json=" + json.dumps(
        {f"{role}_pod_patch": {"spec": {"containers": {"sidecar": container}}}})


def is_unready(pod):
    return any(condition["type"] == "Ready" and condition["status"] == "False"
               for condition in pod["status"].get("conditions", []))


def test_a_sidecar_that_is_not_ready_costs_no_worker_and_does_not_outlive_it(job):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    job.submit(30000, 2000, "--num_workers=2",
               sidecar("worker", "sleep 1000", readinessProbe=probe))
    job.wait_for_workers({"worker-0", "worker-1"})
    wait_for("the pods to be unready", lambda: all(
        is_unready(pod) for name, pod in job.pods().items() if "worker" in name))
    job.wait_for_records(200)
    assert job.status()["relaunches"] == 0

    # A sidecar that does not exit by itself is ended with its worker, while the job runs.
    os.kill(job.processes("test-edljob-worker-1", "record_logger")[0], signal.SIGKILL)
    wait_for("the pod of the killed worker to go",
             lambda: "test-edljob-worker-1" not in job.pods(), 40)
    assert job.status()["state"] == "running"

    view = job.assert_all_done(30000)

    assert view["relaunches"] == 1
    wait_for("the workers' pods to go", lambda: set(job.shown()) == {"master"}, 30)


@nightly
def test_a_sidecar_of_the_master_does_not_keep_a_job_from_being_deleted(job):
    job.submit(200, 0, "--num_workers=1", sidecar("master", "sleep 1000"))
    job.assert_all_done(200)
    wait_for("the job to have ended", lambda: job.status()["state"] == "succeeded")
    assert job.shown()["master"] == "Running", "its sidecar runs"

    assert "succeeded" in job.cli("stop", job.name).stdout
    job.cli("delete", job.name)

    wait_for("its pods to go", lambda: not job.pods(), 30)


@nightly
def test_a_permission_that_is_gone_for_a_while_is_waited_out(job):
    job.submit(8000, 2000, "--num_workers=2")
    job.wait_for_workers({"worker-0", "worker-1"})
    job.wait_for_records(100)
    job.namespace.kubectl("delete", "rolebinding", "elasticdl-master")
    job.namespace.kubectl("delete", "pod", "test-edljob-worker-1", "--wait=false")
    # The status cannot be written without the permission either, so the log is checked.
    wait_for("the master to say so", lambda: "cannot create resource" in job.namespace.kubectl(
        "logs", "elasticdl-test-master"), 30)

    job.namespace.kubectl("apply", "-f", RBAC)

    job.wait_for_workers({"worker-0", "worker-2"})
    view = job.assert_all_done(8000)
    assert view["relaunches"] == 1


@nightly
def test_what_a_killed_master_leaves_behind_is_ended_by_stop(job):
    job.submit(60000, 2000, "--num_workers=2", "--num_ps=1")
    job.wait_for_workers({"worker-0", "worker-1"})
    (first,) = job.processes("elasticdl-test-master", "elasticdl supervise")
    os.kill(first, signal.SIGKILL)
    wait_for("the job's end", lambda: job.status()["state"] == "interrupted", 30)
    assert "exit code 137" in job.cli("status", job.name).stdout

    said = job.cli("stop", job.name).stdout

    assert "3 pods that its master left behind are being deleted" in said
    wait_for("the pods to go", lambda: set(job.shown()) == {"master"}, 30)


@nightly
def test_a_master_that_cannot_go_on_takes_its_pods_with_it(job):
    job.submit(60000, 2000, "--num_workers=2")
    job.wait_for_workers({"worker-0", "worker-1"})
    (master,) = job.processes("elasticdl-test-master", "elasticdl master -f")
    # Corrupts the ledger: a master that finds that exits, and is not restarted.
    ledger = f"/proc/{master}/root/var/lib/elasticdl/ledger.sqlite"
    os.kill(master, signal.SIGSTOP)
    with open(ledger, "r+b") as file:
        file.write(b"no database at all" * 100)
    os.truncate(ledger + "-wal", 0)  # its pages would replace the corrupt ones
    os.kill(master, signal.SIGKILL)

    wait_for("the pods to go", lambda: set(job.shown()) == {"master"}, 60)

    assert job.status()["state"] == "interrupted"
    assert "its master ended with exit code 2" in job.cli("status", job.name).stdout


def test_a_new_job_of_an_old_name_on_a_claim_trains_its_own_data(job, tmp_path):
    volume = job.namespace.name
    job.namespace.apply(*claim_of_a_disk(tmp_path / "disk", volume))
    claim = "claim_name=data,mount_path=/data"
    try:
        job.submit(400, 0, "--num_workers=1", volume=claim)
        job.assert_all_done(400)
        wait_for("the master's end", lambda: job.shown().get("master") == "Succeeded", 30)
        job.cli("delete", job.name)
        wait_for("its pods to go", lambda: not job.pods(), 30)
        for log in job.out.iterdir():
            log.unlink()

        job.submit(700, 0, "--num_workers=1", volume=claim)

        job.assert_all_done(700)
    finally:
        job.namespace.kubectl("delete", "pv", volume, "--wait=false")


@nightly
def test_an_api_server_that_is_away_costs_no_replica(cluster, job):
    job.submit(60000, 3000, "--num_workers=3", "--num_ps=1")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2"})
    job.wait_for_records(200)
    before = {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}

    cluster("api-kill")
    # Stopped kubelets make the control plane mark their nodes as lost afterwards.
    kubelets = [kubelet_of(node) for node in ("n1", "n2")]
    # `kubectl logs` needs the kubelet, which is stopped.
    master = f"{job.namespace.name}_elasticdl-test-master_*/elasticdl-test-master/0.log"
    (log,) = [log for kubelet in kubelets
              for log in Path(f"/proc/{kubelet}/root/var/log/pods").glob(master)]

    def count_reports():
        return log.read_text().count("the cluster has lost contact with its node")

    for kubelet in kubelets:
        os.kill(kubelet, signal.SIGSTOP)
    try:
        time.sleep(20)  # the outage
        cluster("api-start")
        wait_for("the control plane to mark the pods of both nodes", lambda: all(
            is_unready(pod) for name, pod in job.pods().items() if name in before), 90)
        wait_for("the master to report the lost nodes",
                 lambda: count_reports() == len(before) - 1, 60)
    finally:
        for kubelet in kubelets:
            os.kill(kubelet, signal.SIGCONT)

    wait_for("the status to be written again",
             lambda: job.cli("status", job.name, check=False).returncode == 0, 60)
    job.wait_for_records(2000, 90)
    assert {name: pod["metadata"]["uid"] for name, pod in job.pods().items()} == before
    assert job.status()["relaunches"] == 0


@nightly
def test_five_thousand_pods_are_shown_and_ended(cluster, job):
    cluster("kwok", "60", "--schedulable", timeout=600)

    def on_fake_nodes(operator: str) -> dict:
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "type", "operator": operator, "values": ["kwok"]}]}]}}}

    pods = {"worker_pod_spec": {"tolerations": [{"operator": "Exists"}],
                                "affinity": on_fake_nodes("In")},
            "master_pod_spec": {"affinity": on_fake_nodes("NotIn")}}
    job.submit(10, 0, "--num_workers=5000", "--worker_resource_request=cpu=1m,memory=1Mi",
               "--master_resource_request=cpu=0.5,memory=1Gi",
               "--cluster_spec_json=" + json.dumps(pods), command="sleep 100000")
    wait_for("5,000 workers to run", lambda: len(job.workers("Running")) == 5000, 600)

    shown = job.cli("status", job.name).stdout
    assert "worker-0" in shown and "replicas not listed" in shown
    job.cli("stop", job.name)

    assert job.workers("Running") == set()
    wait_for("the pods to go", lambda: set(job.shown()) == {"master"}, 120)
