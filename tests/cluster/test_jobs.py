"""Jobs on a real cluster: the stories of tutorial 5, and what else a cluster does to a job."""

import json
import shutil
import time

import pytest
from cluster import ROOT, wait_for
from jobs import Job, load_image

CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
         "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}


@pytest.fixture(scope="session")
def image(cluster, tmp_path_factory):
    load_image(cluster, tmp_path_factory.mktemp("image"))
    cluster("kubectl", "apply", "-f", str(ROOT / "elasticdl/manifests/priority-classes.yaml"))


@pytest.fixture
def job(image, namespace, tmp_path):
    namespace.kubectl("apply", "-f", str(ROOT / "elasticdl/manifests/elasticdl-rbac.yaml"))
    made = Job(namespace, "test", tmp_path / "out")
    made.out.mkdir()
    yield made
    made.cli("stop", "test", check=False)


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
    # The ps are stopped; what ended by itself stays, for its logs.
    names = ["master", "worker-1", "worker-2", "worker-3", "worker-4"]
    wait_for("all pods to have succeeded",
             lambda: job.shown() == dict.fromkeys(names, "Succeeded"), 20)


def test_workers_give_way_to_what_is_more_important_and_come_back(job):
    job.submit(40000, 3000, "--num_workers=4", "--num_ps=2", "--worker_pod_priority=low",
               "--ps_pod_priority=high", "--master_pod_priority=high",
               "--worker_resource_request=cpu=0.8,memory=128Mi")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2", "worker-3"})
    job.wait_for_records(100)
    nginx = {"apiVersion": "apps/v1", "kind": "Deployment",
             "metadata": {"name": "test-nginx", "labels": {"app": "nginx"}},
             "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "nginx"}}, "template": {
                 "metadata": {"labels": {"app": "nginx"}},
                 "spec": {"priorityClassName": "high", "containers": [{
                     "name": "nginx", "image": "nginx:1.7.9", "imagePullPolicy": "Always",
                     "resources": {"requests": {"cpu": "0.8"}}}]}}}}

    job.namespace.apply(nginx)

    # Three of four give way; their replacements wait, and the last one trains on.
    wait_for("one worker to be left", lambda: len(job.workers("Running")) == 1
             and len(job.workers("Pending")) == 3, 60)
    (left,) = job.workers("Running")
    waiting = job.workers("Pending")
    assert waiting == {"worker-4", "worker-5", "worker-6"}
    reasons = [each["reason"] for each in job.status()["replicas"] if each["state"] == "pending"]
    assert len(reasons) == 3 and all("Insufficient cpu" in reason for reason in reasons), reasons
    job.wait_for_records(100)

    job.namespace.kubectl("scale", "deployment.v1.apps/test-nginx", "--replicas=0")

    job.wait_for_workers({left, *waiting})
    view = job.assert_all_done(40000, 180)
    assert view["relaunches"] == 3


def test_the_master_killed_five_times_is_only_a_pause(job):
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


def test_a_job_whose_master_pod_is_deleted_goes_on_from_the_claim(job):
    job.namespace.apply(CLAIM)
    job.submit(6000, 2000, "--num_workers=2", volume="claim_name=data,mount_path=/data")
    job.wait_for_workers({"worker-0", "worker-1"})
    job.wait_for_records(300)

    job.namespace.kubectl("delete", "pod", "elasticdl-test-master")
    wait_for("the workers to go with their master", lambda: not job.pods(), 60)
    assert job.status()["state"] == "interrupted"
    before = job.records_done()

    job.cli("train", "--job_name=test", "--resume=true")

    view = job.assert_all_done(6000, 180)
    assert before >= 300
    assert view["datasets"][0]["shards_done"] == 600


def test_the_api_server_may_go_away_and_forget(cluster, job):
    job.submit(12000, 2000, "--num_workers=3")
    job.wait_for_workers({"worker-0", "worker-1", "worker-2"})
    job.wait_for_records(200)

    cluster("api-kill")
    cluster("api-start")
    job.namespace.kubectl("delete", "pod", "test-edljob-worker-1", "--wait=false")
    cluster("compact")

    job.wait_for_workers({"worker-0", "worker-2", "worker-3"}, 90)
    job.assert_all_done(12000)


def test_a_lost_node_costs_no_record(cluster, job):
    # Two workers fit on a node, and the master stays on the first.
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [term]}]}}}
    job.submit(40000, 3000, "--num_workers=4", "--worker_resource_request=cpu=0.8,memory=128Mi",
               "--cluster_spec_json=" + json.dumps({"master_pod_spec": {"affinity": affinity}}))
    job.wait_for_workers({"worker-0", "worker-1", "worker-2", "worker-3"})
    job.wait_for_records(200)
    lost = {name for name, pod in job.pods().items() if pod["spec"]["nodeName"] == "n2"}
    assert len(lost) == 2

    cluster("node-down", "2")
    try:
        begin = time.monotonic()
        wait_for("their shards to be taken back", lambda: not any(
            each["leases"] for each in job.status()["replicas"] if each["name"] in lost), 30)
        print(f"figure nodeloss.shard_elsewhere_s {time.monotonic() - begin:.1f} s")
        job.wait_for_records(200)
        # Kubernetes notices later; then there are replacements, and no room for them.
        wait_for("replacements", lambda: len(job.workers("Pending")) == 2, 60)
    finally:
        cluster("node-up", "2")

    wait_for("four workers", lambda: len(job.workers("Running")) == 4, 90)
    view = job.assert_all_done(40000, 240)
    assert view["relaunches"] == 2


def test_tutorial_1_trains_iris_with_four_roles(job, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(ROOT / "model_zoo/iris/iris.data", data)
    job.name = "test-iris-estimator"

    job.cli("train", "--image_name=elasticdl:test", "--worker_image=elasticdl:test",
            "--ps_image=elasticdl:test",
            "--job_command=cd /repo && exec python -m model_zoo.iris.dnn_estimator",
            "--master_resource_request=cpu=0.2,memory=1024Mi",
            "--master_resource_limit=cpu=1,memory=2048Mi", "--num_ps=1",
            "--ps_resource_request=cpu=0.2,memory=1024Mi",
            "--ps_resource_limit=cpu=1,memory=2048Mi", "--num_workers=1",
            "--worker_resource_request=cpu=0.3,memory=1024Mi",
            "--worker_resource_limit=cpu=1,memory=2048Mi",
            "--chief_resource_request=cpu=0.3,memory=1024Mi",
            "--chief_resource_limit=cpu=1,memory=2048Mi", "--num_evaluator=1",
            "--evaluator_resource_request=cpu=0.3,memory=1024Mi",
            "--evaluator_resource_limit=cpu=1,memory=2048Mi", "--job_name=test-iris-estimator",
            "--image_pull_policy=Never", "--distribution_strategy=ParameterServerStrategy",
            "--need_tf_config=true", "--volume=" + ";".join(job.mounts(data, "/data")))

    names = {"master", "chief-0", "evaluator-0", "ps-0", "worker-0"}
    wait_for("the pods of the tutorial", lambda: job.shown() == dict.fromkeys(names, "Running"), 90)
    view = job.wait_for_end(300)
    assert view["state"] == "succeeded", view
    dataset = view["datasets"][0]
    assert dataset["records_done"] == dataset["records_total"] > 0
    assert view["evaluated_step"] == view["checkpoint_step"] > 0
    assert list(data.glob("**/model.ckpt-*.index"))
    ended = dict.fromkeys(["master", "chief-0", "worker-0"], "Succeeded")
    wait_for("ps and evaluator to be stopped", lambda: job.shown() == ended, 30)


def test_what_is_wrong_is_said_with_the_way_out(job):
    missing = job.cli("status", "nobody", check=False)
    assert missing.returncode == 1 and "there is no job nobody" in missing.stderr

    said = job.cli("train", "--job_name=bad", "--image_name=elasticdl:test", "--job_command=true",
                   "--worker_pod_priority=low", "--master_pod_priority=missing", check=False)
    assert said.returncode == 1
    assert "no PriorityClass with name missing was found" in said.stderr
    assert job.cli("status", "bad", check=False).returncode == 1, "nothing is left of it"

    job.submit(10, 0, "--num_workers=1", "--worker_image=gone:1",
               "--worker_resource_request=cpu=0.1,memory=64Mi", command="true")

    def reasons():
        return [each["reason"] for each in job.status()["replicas"] if each["role"] == "worker"]

    wait_for("the image that cannot be pulled to be named",
             lambda: any("gone:1" in reason for reason in reasons()), 60)
