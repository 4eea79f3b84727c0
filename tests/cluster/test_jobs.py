"""Jobs in a real cluster: the scenarios of tutorial 5, and other disturbances of a job."""

import json
import os
import signal

import pytest
from cluster import ROOT, nightly, wait_for
from jobs import stays_on


def claim_of_a_disk(folder, name):
    """A claim named data and its volume, an empty folder that belongs to root. Unlike the volumes
    that the cluster provisions, it supports fsGroup, as disks of cloud providers do."""
    folder.mkdir(mode=0o755)
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
              "spec": {"capacity": size, "accessModes": modes, "local": {"path": str(folder)},
                       "storageClassName": "", "persistentVolumeReclaimPolicy": "Retain",
                       "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                           {"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
             "spec": {"accessModes": modes, "resources": {"requests": size},
                      "storageClassName": "", "volumeName": name}}
    return volume, claim


@nightly  # test_tutorial_5.py does the same with a model
def test_a_deleted_worker_comes_back_at_once_under_the_next_id(job):
    said = job.submit(8000, 2000, "--num_workers=4", "--num_ps=2")
    assert said.startswith("ElasticDL job test was successfully submitted. "
                           "The master pod is: elasticdl-test-master.\n")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2", "worker-3"})
    assert job.shown().keys() == {"master", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2",
                                  "worker-3"}
    job.wait_for_records(200)

    job.namespace.kubectl("delete", "pod", "test-edljob-worker-0", "--wait=false")

    job.wait_for_workers({"worker-1", "worker-2", "worker-3", "worker-4"})
    view = job.assert_all_done(8000)
    assert view["relaunches"] == 1
    # The ps are stopped; pods that ended by themselves stay, for their logs.
    names = ["master", "worker-1", "worker-2", "worker-3", "worker-4"]
    wait_for("all pods to have succeeded",
             lambda: job.shown() == dict.fromkeys(names, "Succeeded"), 20)


@nightly  # test_tutorial_5.py does the same with a model
def test_workers_give_way_to_what_is_more_important_and_come_back(job):
    job.submit(30000, 3000, "--num_workers=4", "--num_ps=2", "--worker_pod_priority=low",
               "--ps_pod_priority=high", "--master_pod_priority=high",
               "--worker_resource_request=cpu=0.8,memory=128Mi")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2", "worker-3"})
    job.wait_for_records(100)
    # The Deployment of the tutorial, scaled to this cluster.
    nginx = (ROOT / "elasticdl/manifests/examples/nginx.yaml").read_text()
    for printed, here in (("replicas: 5", "replicas: 3"), ("cpu: 2", "cpu: 0.8"),
                          ("memory: 2048Mi", "memory: 64Mi")):
        assert printed in nginx
        nginx = nginx.replace(printed, here)

    job.namespace.cluster("kubectl", "-n", job.namespace.name, "create", "-f", "-", stdin=nginx)

    # Three of four are preempted; their replacements wait, and the last one continues to train.
    wait_for("one worker to be left", lambda: len(job.workers("Running")) == 1
             and len(job.workers("Pending")) == 3, 60)
    (left,) = job.workers("Running")
    waiting = job.workers("Pending")
    assert waiting == {"worker-4", "worker-5", "worker-6"}
    # The master learns of changes from a watch, so its status follows a moment later.
    wait_for("the status to say why they wait", lambda: [
        "Insufficient cpu" in each["reason"] for each in job.status()["replicas"]
        if each["state"] == "pending"] == [True] * 3, 20)
    job.wait_for_records(100)

    job.namespace.kubectl("scale", "deployment.v1.apps/test-nginx", "--replicas=0")

    job.wait_for_workers({left, *waiting})
    view = job.assert_all_done(30000, 180)
    assert view["relaunches"] == 3


def test_killing_the_master_five_times_only_pauses_the_job(job):
    job.submit(10000, 2000, "--num_workers=3")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2"})
    for _ in range(5):
        job.wait_for_records(200)
        job.kill_master_process()

    view = job.assert_all_done(10000)

    assert view["master_starts"] == 6
    assert view["relaunches"] == 0
    assert view["datasets"][0]["shards_repeated"] == 0
    assert len(job.seen()) == 10000


@pytest.fixture
def claimed_job(job, tmp_path):
    """A running job of 6,000 records, with its ledger on a claim."""
    volume = job.namespace.name
    job.namespace.apply(*claim_of_a_disk(tmp_path / "disk", volume))
    job.submit(6000, 2000, "--num_workers=2", volume="claim_name=data,mount_path=/data")
    job.wait_for_workers({"worker-0", "worker-1"})
    job.wait_for_records(300)
    yield job
    job.namespace.kubectl("delete", "pv", volume, "--wait=false")


def resume_to_the_end(job):
    assert job.status()["state"] == "interrupted"
    assert job.records_done() >= 300
    job.cli("train", "--job_name=test", "--resume=true")
    view = job.assert_all_done(6000, 180)
    assert view["datasets"][0]["shards_done"] == 600


def test_a_job_whose_master_pod_is_deleted_goes_on_from_the_claim(claimed_job):
    claimed_job.namespace.kubectl("delete", "pod", "elasticdl-test-master")
    wait_for("the workers to go with their master", lambda: not claimed_job.pods(), 60)
    resume_to_the_end(claimed_job)


@nightly
def test_a_job_whose_master_container_is_killed_goes_on_from_the_claim(claimed_job):
    (first,) = claimed_job.processes("elasticdl-test-master", "elasticdl supervise")
    os.kill(first, signal.SIGKILL)
    wait_for("the job's end", lambda: claimed_job.status()["state"] == "interrupted", 30)
    resume_to_the_end(claimed_job)


def test_the_api_server_may_go_away_and_forget(cluster, job):
    job.submit(12000, 2000, "--num_workers=3")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2"})
    job.wait_for_records(200)

    # While the master is stopped, a pod is deleted and the server forgets that version.
    (master,) = job.processes("elasticdl-test-master", "elasticdl master -f")
    cluster("api-kill")
    os.kill(master, signal.SIGSTOP)
    try:
        cluster("api-start")
        job.namespace.kubectl("delete", "pod", "test-edljob-worker-1", "--force",
                              "--grace-period=0")
        cluster("compact")
    finally:
        os.kill(master, signal.SIGCONT)

    job.wait_for_workers({"worker-0", "worker-2", "worker-3"}, 90)
    job.assert_all_done(12000)


def test_a_lost_node_costs_no_record(cluster, job):
    # Two workers fit on a node, and the master stays on the first.
    job.submit(40000, 3000, "--num_workers=4", "--worker_resource_request=cpu=0.8,memory=128Mi",
               "--cluster_spec_json=" + json.dumps({"master_pod_spec": {
                   "affinity": stays_on("n1")}}))
    job.wait_for_workers({"worker-0", "worker-1", "worker-2", "worker-3"})
    job.wait_for_records(200)
    lost = {name for name, pod in job.pods().items() if pod["spec"]["nodeName"] == "n2"}
    assert len(lost) == 2

    cluster("node-down", "2")
    try:
        wait_for("their shards to be taken back", lambda: not any(
            each["leases"] for each in job.status()["replicas"] if each["name"] in lost), 30)
        job.wait_for_records(200)
        # Kubernetes notices later; then there are replacements, but no capacity for them.
        wait_for("replacements", lambda: len(job.workers("Pending")) == 2, 60)
    finally:
        cluster("node-up", "2")

    wait_for("four workers", lambda: len(job.workers("Running")) == 4, 90)
    view = job.assert_all_done(40000, 240)
    assert view["relaunches"] == 2
