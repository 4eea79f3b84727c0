"""Errors of a cluster are reported once, with their remedy; and permissions are minimal."""

import json
import re

from cluster import ROOT, wait_for
from images import MASTER
from jobs import Job

BAD_JOB = ["--job_name=bad", f"--image_name={MASTER}", "--job_command=true"]
# Permissions that every account has.
EVERYONES = {"selfsubjectreviews.authentication.k8s.io",
             "selfsubjectaccessreviews.authorization.k8s.io",
             "selfsubjectrulesreviews.authorization.k8s.io"}


def refused(job: Job, *flags: str, **more) -> str:
    """Submits a job that must be refused; returns the message. Nothing is left of the job."""
    done = job.cli("train", *BAD_JOB, *flags, check=False, **more)
    assert done.returncode == 1, done.stdout + done.stderr
    assert job.namespace.kubectl("get", "pods,services,secrets,configmaps", "-o", "name",
                                 "-l", "elasticdl-job-name=bad") == ""
    return done.stderr


def test_a_master_may_do_its_work_and_nothing_else(job):
    account = f"system:serviceaccount:{job.namespace.name}:elasticdl-master"
    listed = job.namespace.kubectl("auth", "can-i", "--list", "--no-headers", f"--as={account}")
    allowed = {}
    for line in listed.splitlines():
        resource, verbs = line.split()[0], re.search(r"\[([^\[\]]*)\]$", line)[1].split()
        if not resource.startswith("[") and resource not in EVERYONES:
            allowed[resource] = set(verbs)
    assert allowed == {
        "pods": {"get", "list", "watch", "create", "delete", "deletecollection"},
        "pods/log": {"get"},
        "services": {"create", "patch", "list"},
        "configmaps": {"patch"},
        "events": {"create", "patch"},
        "leases.coordination.k8s.io": {"get", "create", "update"},
    }
    # Sufficient for a whole job: all jobs of these tests use it. Replicas get no token.
    job.submit(2000, 2000, "--num_workers=1", "--num_ps=1")
    job.wait_for_workers({"worker-0"})
    for name, pod in job.pods().items():
        mounted = [m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]]
        has_token = "/var/run/secrets/kubernetes.io/serviceaccount" in mounted
        assert has_token == (name == "elasticdl-test-master"), name
    job.assert_all_done(2000)


def test_what_cannot_run_is_refused_with_the_way_out(job):
    missing = job.cli("status", "nobody", check=False)
    assert missing.returncode == 1 and "there is no job nobody" in missing.stderr

    said = refused(job, "--master_pod_priority=missing", "--worker_pod_priority=low")
    assert "priority class missing: does not exist (fix: kubectl create priorityclass" in said
    said = refused(job, "--volume=claim_name=no-such-claim,mount_path=/data")
    assert "claim no-such-claim: does not exist (fix: kubectl" in said

    job.namespace.kubectl("delete", "rolebinding", "elasticdl-master")
    said = refused(job)
    assert "apply -f elasticdl/manifests/elasticdl-rbac.yaml" in said


def test_a_check_finds_what_is_missing_and_nothing_else(job):
    flags = [f"--image_name={MASTER}", "--num_workers=1", "--output=json",
             "--worker_resource_request=cpu=0.1,memory=64Mi", "--worker_pod_priority=low"]
    good = json.loads(job.cli("check", *flags).stdout)
    assert good["ok"], good
    bad = job.cli("check", *flags, "--volume=claim_name=none,mount_path=/data",
                  "--env_secret=KEY=none/key", "--ps_resource_request=cpu=1000", "--num_ps=1",
                  "--service_account=nobody", check=False)
    assert bad.returncode == 1
    missing = {each["what"] for each in json.loads(bad.stdout)["checks"]
               if each["verdict"] == "missing"}
    assert missing == {"claim none", "secret none", "capacity for a ps", "service account nobody"}


def test_a_server_that_cannot_be_reached_is_named(job, tmp_path):
    config = json.loads(job.namespace.kubectl("config", "view", "--raw", "-o", "json"))
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    job.env["KUBECONFIG"] = str(path)

    done = job.cli("train", *BAD_JOB, check=False)

    assert done.returncode == 1
    assert "https://127.0.0.1:1" in done.stderr and "reach" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3, done.stderr


def pending_reasons(job: Job):
    return [each["reason"] for each in job.status()["replicas"] if each["state"] == "pending"]


def test_an_image_that_cannot_be_pulled_is_named(job):
    job.submit(10, 0, "--num_workers=1", "--worker_image=gone:1",
               "--image_pull_policy=IfNotPresent", command="true")
    wait_for("the image to be named",
             lambda: any("gone:1" in reason for reason in pending_reasons(job)), 60)
    assert "gone:1" in job.cli("events", "test").stdout


def test_a_full_quota_is_reported_and_waited_out(job):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
             "spec": {"hard": {"pods": "2"}}}
    job.namespace.apply(quota)
    wait_for("the quota to count", lambda: "hard" in job.namespace.get(
        "resourcequota", "small")["status"])
    job.submit(3000, 2000, "--num_workers=2")

    wait_for("the quota to be named",
             lambda: any("exceeded quota: small" in reason for reason in pending_reasons(job)), 60)
    assert "exceeded quota: small" in job.cli("events", "test").stdout
    job.namespace.kubectl("patch", "resourcequota", "small", "-p", '{"spec":{"hard":{"pods":"9"}}}')

    job.wait_for_workers({"worker-0", "worker-1"})
    job.assert_all_done(3000)


def test_the_examples_are_what_this_server_takes(namespace):
    examples = ROOT / "elasticdl/manifests/examples"
    done = namespace.kubectl("apply", "--dry-run=server", "-f", str(examples))
    assert len(done.splitlines()) >= len(list(examples.iterdir()))
    # The permissions of tutorial 4 contain those of the master, verbatim.
    rules = [namespace.kubectl("create", "--dry-run=client", "-o", "jsonpath={.rules}", "-f",
                               str(folder / "elasticdl-rbac.yaml")).splitlines()[0]
             for folder in (examples, examples.parent)]
    assert rules[1] in rules[0]
