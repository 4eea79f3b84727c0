"""The CRD of TFJobs, at the real API server: what is accepted, and how the rest is refused."""

import copy
import json
import os
import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest
from cluster import ROOT, Cluster, Namespace, wait_for, wait_for_crd
from tfjobs import MANIFESTS, SLEEP, replicas, tfjob, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

UNCHECKED = "some validation rules were not checked"
OURS, KUEUES = "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Iterator[Namespace]:
    """One namespace for all tests that store nothing."""
    made = Namespace(cluster, "tfjob-crd")
    yield made
    made.delete()
    cluster("kubectl", "wait", "--for=delete", "namespace/tfjob-crd", "--timeout=100s")


def refusals(place: Namespace, job: Dict, verb: str = "create") -> List[str]:
    """The reasons for which a job is refused; none if it is accepted."""
    done = place.cluster.run("kubectl", "-n", place.name, verb, "--dry-run=server", "-f", "-",
                             stdin=json.dumps(job))
    if done.returncode == 0:
        return []
    said = done.stderr.split("is invalid:", 1)[-1]
    reasons = [line.strip("* ").strip() for line in said.strip().splitlines()]
    return [reason for reason in reasons if reason and UNCHECKED not in reason]


def refusal(place: Namespace, job: Dict) -> str:
    (reason,) = refusals(place, job)
    return reason


def container_of(job: Dict, role: str = "Worker") -> Dict:
    return job["spec"]["tfReplicaSpecs"][role]["template"]["spec"]["containers"][0]


def test_T_V1_a_valid_job_of_the_training_operator_is_accepted(place):
    assert refusals(place, tfjob("test", Worker=2, PS=1, run_policy={"managedBy": OURS})) == []
    assert refusals(place, tfjob("test", Worker=2, run_policy={"managedBy": KUEUES})) == []


def test_T_V2_a_name_that_begins_with_a_digit_is_rejected(place):
    said = refusal(place, tfjob("00test", Worker=2))
    # Kubernetes 1.34 puts the type before the message, and newer versions may not.
    assert said.replace('"object": ', "") == (
        'metadata.name: Invalid value: "00test": should match: a DNS-1035 label must consist of '
        "lower case alphanumeric characters or '-', start with an alphabetic character, and end "
        "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        "is '[a-z]([-a-z0-9]*[a-z0-9])?')")
    # Names that Kubernetes allows for other objects.
    assert "DNS-1035" in refusal(place, tfjob("a.b", Worker=1))


def test_T_V3_a_role_without_containers_is_rejected_twice(place):
    where = "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: "
    wanted = [where + "must be specified",
              where + "must have at least one container with name tensorflow"]
    for role in ({"template": {"spec": {"containers": []}}}, {"template": {"spec": {}}}, {}):
        assert refusals(place, tfjob("test", Worker=role)) == wanted


def test_T_V4_a_container_without_an_image_is_rejected(place):
    wanted = ("spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: "
              "Required value: must be required")
    assert refusal(place, tfjob("test", Worker=replicas(image=""))) == wanted
    job = tfjob("test", Worker=1)
    del container_of(job)["image"]
    assert refusal(place, job) == wanted


def test_T_V5_a_role_without_a_container_named_tensorflow_is_rejected(place):
    job = tfjob("test", Worker=1, PS=replicas(container={"name": "main"}))
    assert refusal(place, job) == (
        "spec.tfReplicaSpecs[PS].template.spec.containers: Required value: "
        "must have at least one container with name tensorflow")


@pytest.mark.parametrize("chief, master", [("Chief", "Master"), ("CHIEF", "master")])
def test_T_V6_a_chief_and_a_master_are_rejected(place, chief, master):
    assert refusal(place, tfjob("test", Worker=1, **{chief: 1, master: 1})) == (
        "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role")


@pytest.mark.parametrize("manager", ["other-job-controller", ""])
def test_T_V7_another_manager_is_rejected(place, manager):
    assert refusal(place, tfjob("test", Worker=1, run_policy={"managedBy": manager})) == (
        f'spec.runPolicy.managedBy: Unsupported value: "{manager}": '
        f'supported values: "{KUEUES}", "{OURS}"')


def test_T_I1_a_job_beside_a_decoy_is_retrievable(namespace):
    namespace.apply(tfjob("test-tfjob", Worker=4, PS=2), tfjob("decoy", Worker=1))
    found = namespace.get("tfjob", "test-tfjob")
    assert found["metadata"]["name"] == "test-tfjob"
    assert {role: spec["replicas"] for role, spec in found["spec"]["tfReplicaSpecs"].items()} == {
        "Worker": 4, "PS": 2}
    assert namespace.get("tfjob", "decoy")["metadata"]["uid"] != found["metadata"]["uid"]


def test_T_O_invalid_a_job_with_a_wrong_field_is_rejected(place):
    job = tfjob("test", Worker=1)
    job["spec"]["tfReplicaSpecsX"] = job["spec"].pop("tfReplicaSpecs")
    # kubectl asks for strict decoding.
    assert 'unknown field "spec.tfReplicaSpecsX"' in " ".join(refusals(place, job))
    done = place.cluster.run("kubectl", "-n", place.name, "create", "--validate=ignore",
                             "--dry-run=server", "-f", "-", stdin=json.dumps(job))
    assert done.returncode == 1
    assert "spec.tfReplicaSpecs: Required value" in done.stderr


def test_a_job_needs_roles(place):
    job = tfjob("test")
    assert refusal(place, job) == "spec.tfReplicaSpecs: Required value: must be required"
    del job["spec"]["tfReplicaSpecs"]
    assert refusal(place, job) == "spec.tfReplicaSpecs: Required value"
    del job["spec"]
    assert refusal(place, job) == "spec.tfReplicaSpecs: Required value: must be required"


def test_Q12_the_names_of_all_pods_must_be_names_of_services(place):
    # a...a-worker-9 has 63 characters.
    assert refusals(place, tfjob("a" * 54, Worker=10)) == []
    assert refusals(place, tfjob("a" * 54, Worker=replicas())) == []
    said = refusal(place, tfjob("a" * 54, Worker=11))
    assert said.startswith("metadata.name: Invalid value: ")
    assert "is too long for the names of the pods" in said
    assert "is too long" in refusal(place, tfjob("a" * 54, Worker=1, Evaluator=1))


@pytest.mark.parametrize("roles", [
    {"Worker": 0}, {"PS": 1}, {"Evaluator": 1}, {"PS": 2, "Evaluator": 1},
    {"Worker": 0, "PS": 2}, {"Chief": 0, "Worker": 2}, {"master": 0}], ids=str)
def test_T_I10_Q13_a_job_that_nobody_can_end_is_rejected(place, roles):
    assert "must have at least 1 replica of the role that decides about the end" in refusal(
        place, tfjob("test", **roles))


@pytest.mark.parametrize("roles", [
    {"Worker": 1}, {"Chief": 1}, {"Master": 1}, {"chief": 1}, {"Chief": 1, "Worker": 0},
    {"Worker": 1, "PS": 0}, {"WORKER": 2, "ps": 1, "evaluator": 1}], ids=str)
def test_roles_in_any_case_that_can_end_a_job_are_accepted(place, roles):
    assert refusals(place, tfjob("test", **roles)) == []


def test_unknown_and_double_roles_are_rejected(place):
    assert refusal(place, tfjob("test", Worker=1, Wroker=1)).endswith(
        'unknown role "Wroker": supported values: "Chief", "Evaluator", "Master", "PS", "Worker"')
    assert refusal(place, tfjob("test", Worker=1, WORKER=1)).endswith(
        "must not have a role twice, in different cases")


def test_misspelt_policies_and_numbers_out_of_range_are_rejected(place):
    for policy in ("Always", "OnFailure", "Never", "ExitCode", ""):
        assert refusals(place, tfjob("test", Worker=1, restart=policy)) == []
    assert refusal(place, tfjob("test", Worker=1, restart="never")).startswith(
        'spec.tfReplicaSpecs.Worker.restartPolicy: Unsupported value: "never"')
    for policy in ("All", "Running", "None"):
        assert refusals(place, tfjob("test", Worker=1, run_policy={"cleanPodPolicy": policy})) == []
    for policy in ("running", ""):
        assert refusal(place, tfjob("test", Worker=1, run_policy={"cleanPodPolicy": policy})
                       ).startswith("spec.runPolicy.cleanPodPolicy: Unsupported value")
    for policy in ("", "AllWorkers"):
        assert refusals(place, tfjob("test", Worker=1, spec={"successPolicy": policy})) == []
    assert refusal(place, tfjob("test", Worker=1, spec={"successPolicy": "allWorkers"})
                   ).startswith("spec.successPolicy: Unsupported value")
    assert refusal(place, tfjob("test", Worker=1, PS=-1)).startswith(
        "spec.tfReplicaSpecs.PS.replicas: Invalid value: -1")
    assert refusals(place, tfjob("test", Worker=10_000)) == []
    assert refusal(place, tfjob("test", Worker=10_001)).startswith(
        "spec.tfReplicaSpecs.Worker.replicas: Invalid value: 10001")


@pytest.mark.parametrize("before, after", [(OURS, KUEUES), (None, OURS), (KUEUES, None)])
def test_the_manager_is_immutable(namespace, before, after):
    def job(manager: Optional[str], limit: int) -> Dict:
        return tfjob("test", Worker=1, run_policy={
            "backoffLimit": limit, **({"managedBy": manager} if manager else {})})

    namespace.apply(job(before, 1))
    (reason,) = refusals(namespace, job(after, 1), "replace")
    assert reason.startswith("spec.runPolicy.managedBy: Invalid value: ")
    assert reason.endswith("field is immutable")
    assert refusals(namespace, job(before, 2), "replace") == []


def test_the_queue_is_immutable(namespace):
    job = tfjob("test", Worker=1, run_policy={"schedulingPolicy": {"queue": "a"}})
    namespace.apply(job)
    job["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "b"
    (reason,) = refusals(namespace, job, "apply")
    assert reason.endswith("spec.runPolicy.schedulingPolicy.queue is immutable")


def everything() -> Dict:
    """A job with every field of the API, and pods with much of what pods can have."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}
    pod = {
        "initContainers": [{"name": "fetch", "image": "busybox:1", "command": ["true"],
                            "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
                           {"name": "proxy", "image": "busybox:1", "restartPolicy": "Always"}],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
                    {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "config", "configMap": {"name": "c", "items": [
                        {"key": "a", "path": "b", "mode": 0o644}]}}],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                                                  "labelSelector": {"matchLabels": {"a": "b"}}}}]}},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"disk": "fast"}, "serviceAccountName": "trainer",
        "schedulerName": "volcano", "priorityClassName": "high", "hostNetwork": False,
        "imagePullSecrets": [{"name": "registry"}], "restartPolicy": "OnFailure",
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "securityContext": {"runAsUser": 1000, "fsGroup": 2000},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                                       "whenUnsatisfiable": "ScheduleAnyway"}]}
    container = {
        "args": ["--steps", "10"], "workingDir": "/data",
        "env": [{"name": "A", "value": "b"},
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "envFrom": [{"configMapRef": {"name": "c"}},
                    {"secretRef": {"name": "s", "optional": True}}],
        "ports": [{"name": "tfjob-port", "containerPort": 3333}, {"containerPort": 6006}],
        "resources": {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1},
                      "requests": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "tfjob-port"}},
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}
    role = replicas(1, restart="ExitCode", container=container, **pod)
    role["template"]["metadata"] = {
        "name": "ignored", "labels": {"app": "mnist"}, "finalizers": ["example.org/hold"],
        "annotations": {"sidecar.istio.io/inject": "false"}}
    role["template"]["spec"]["containers"].append(
        {"name": "sidecar", "image": "busybox:1", "command": ["sh", "-c", SLEEP]})
    return tfjob("everything", run_policy={
        "cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 3600,
        "activeDeadlineSeconds": 5000000000, "backoffLimit": 3, "suspend": False, "managedBy": OURS,
        "schedulingPolicy": {"minAvailable": 2, "queue": "default", "priorityClass": "high",
                             "minResources": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": "500m"},
                             "scheduleTimeoutSeconds": 60}},
        spec={"successPolicy": "AllWorkers", "enableDynamicWorker": True},
        Worker=role, PS=role, Chief=role, Evaluator=role)


def test_every_field_of_upstreams_api_is_accepted_and_kept(namespace):
    job = everything()
    namespace.apply(job)
    assert namespace.get("tfjob", "everything")["spec"] == job["spec"]
    roles = job["spec"]["tfReplicaSpecs"]
    roles["Master"] = roles.pop("Chief")
    job["metadata"]["name"] = "master"
    assert refusals(namespace, job) == []
    # What clients in Go and older ones write: empty values, and a status.
    plain = tfjob("plain", Worker=1)
    plain["metadata"]["creationTimestamp"] = None
    plain["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"] = {"creationTimestamp": None}
    container_of(plain)["resources"] = {}
    plain["status"] = {"conditions": None, "replicaStatuses": None}
    assert refusals(namespace, plain) == []


def test_only_suspend_has_a_default(namespace):
    namespace.apply(tfjob("none", Worker=replicas()),
                    tfjob("some", Worker=replicas(), run_policy={"backoffLimit": 1}))
    none, some = (namespace.get("tfjob", name)["spec"] for name in ("none", "some"))
    assert set(none) == {"tfReplicaSpecs"}
    assert set(none["tfReplicaSpecs"]["Worker"]) == {"template"}
    assert some["runPolicy"] == {"backoffLimit": 1, "suspend": False}


def test_unknown_fields_are_pruned_except_in_pod_templates(namespace):
    job = tfjob("old", Worker=1)
    # Where v1beta2 had it.
    job["spec"]["cleanPodPolicy"] = "All"
    container_of(job)["newerThanThisCluster"] = {"a": 1}
    assert 'unknown field "spec.cleanPodPolicy"' in " ".join(refusals(namespace, job))
    namespace.cluster("kubectl", "-n", namespace.name, "create", "--validate=ignore", "-f", "-",
                      stdin=json.dumps(job))
    found = namespace.get("tfjob", "old")
    assert "cleanPodPolicy" not in found["spec"]
    assert container_of(found)["newerThanThisCluster"] == {"a": 1}


CONVERTED = ROOT / "src/tfjob_convert/testdata"
# The mistakes that `elasticdl tfjob convert` leaves in a file and warns about, and corrections.
LEFT_TO_USERS = {
    "v1_misplaced.v1.yaml": {"queu:": "queue:", "sucessPolicy:": "successPolicy:",
                             "Workr:": "PS:", "onfailure": "OnFailure"},
    "v1beta2.v1.yaml": {"main": "tensorflow"},
}


def test_what_convert_writes_is_accepted(place):
    def refusal_of(text: str) -> str:
        return place.cluster.run("kubectl", "-n", place.name, "create", "--dry-run=server",
                                 "--validate=strict", "-f", "-", stdin=text).stderr

    files = sorted(CONVERTED.glob("*.v1.yaml"))
    assert len(files) >= 7
    for file in files:
        # The namespace would have to exist.
        text = file.read_text().replace("  namespace: kubeflow\n", "")
        notes = file.with_name(file.name.replace(".v1.yaml", ".notes")).read_text()
        mistakes = LEFT_TO_USERS.get(file.name, {})
        assert bool(refusal_of(text)) == bool(mistakes), f"{file.name}: {refusal_of(text)}"
        for wrong, right in mistakes.items():
            assert any(re.search(rf"warning: .*\b{wrong.strip(':')}\b", note)
                       for note in notes.splitlines()), f"{file.name}: no warning about {wrong}"
            assert text.count(wrong) == 1
            text = text.replace(wrong, right)
        assert not refusal_of(text), f"{file.name}: {refusal_of(text)}"


def test_a_status_is_a_subresource_with_our_additions(namespace):
    namespace.apply(tfjob("test", Worker=2))
    status = {
        "conditions": [{"type": "Created", "status": "True", "reason": "TFJobCreated",
                        "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"},
                       {"type": "Running", "status": "False"}],
        "replicaStatuses": {"Worker": {}, "PS": {
            "active": 1, "succeeded": 1, "failed": 1, "selector": "a=b",
            "labelSelector": {"matchLabels": {"a": "b"}}}},
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z",
        "lastReconcileTime": "2026-01-01T00:00:00Z",
        "elasticdl": {"retries": 1, "replacing": ["some-uid"], "completed": {"Worker": "0-2,5"},
                      "progress": "40 %"}}
    namespace.kubectl("patch", "tfjob", "test", "--subresource=status", "--type=merge",
                      "-p", json.dumps({"status": status}))
    found = namespace.get("tfjob", "test")
    assert found["status"] == status
    assert found["metadata"]["generation"] == 1
    namespace.kubectl("patch", "tfjob", "test", "--type=merge", "-p",
                      json.dumps({"spec": {"runPolicy": {"backoffLimit": 1}}, "status": None}))
    found = namespace.get("tfjob", "test")
    assert found["status"] == status
    assert found["metadata"]["generation"] == 2

    # The state is the last condition, whatever its status.
    header, line = namespace.kubectl("get", "tfjob").splitlines()
    assert header.split() == ["NAME", "STATE", "PROGRESS", "AGE"]
    assert line.split()[:4] == ["test", "Running", "40", "%"]


def test_client_side_apply_works_twice(namespace):
    job = json.dumps(everything())
    again = ("kubectl", "-n", namespace.name, "apply", "-f", "-")
    assert namespace.cluster(*again, stdin=job) == "tfjob.kubeflow.org/everything created"
    assert namespace.cluster(*again, stdin=job) == "tfjob.kubeflow.org/everything unchanged"
    # The fixture has applied the CRD once.
    crd = MANIFESTS / "crd.yaml"
    assert namespace.cluster("kubectl", "apply", "-f", str(crd)) == (
        "customresourcedefinition.apiextensions.k8s.io/tfjobs.kubeflow.org unchanged")
    assert crd.stat().st_size < 262144 / 10


def test_server_side_apply_merges_containers_by_name(namespace):
    def apply(manager: str, containers: List[Dict]) -> None:
        job = tfjob("test", Worker={"template": {"spec": {"containers": containers}}})
        namespace.cluster("kubectl", "-n", namespace.name, "apply", "--server-side",
                          f"--field-manager={manager}", "-f", "-", stdin=json.dumps(job))

    apply("user", [{"name": "tensorflow", "image": "busybox:1"}])
    apply("other", [{"name": "tensorflow", "workingDir": "/data"},
                    {"name": "sidecar", "image": "busybox:1"}])
    spec = namespace.get("tfjob", "test")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    assert spec["containers"] == [
        {"name": "tensorflow", "image": "busybox:1", "workingDir": "/data"},
        {"name": "sidecar", "image": "busybox:1"}]


@pytest.mark.parametrize("roles, reason", [
    ({"Worker": 0}, "must have at least 1 replica"),
    ({"PS": 1}, "must have at least 1 replica"),
    ({"Worker": 1, "WORKER": 1}, "must not have a role twice"),
    ({"Worker": 1, "Wroker": 1}, 'unknown role "Wroker"'),
    ({"Worker": 1, "Chief": 1, "Master": 1}, "must not have more than 1 Chief or Master role"),
    ({"Worker": replicas(1, container={"name": "main"})}, "at least one container with name"),
    ({"Worker": replicas(1, image="")}, "image: Required value: must be required"),
    ({"Worker": 1, "PS": replicas(1, image="")}, "image: Required value: must be required"),
    ({"Worker": 10 ** 9}, "is too long for the names of the pods"),
    ({}, "spec.tfReplicaSpecs: Required value: must be required")],
    ids=lambda value: value if isinstance(value, str) else "+".join(value) or "none")
def test_an_update_that_breaks_a_rule_is_refused(namespace, roles, reason):
    name = "test" * 12
    namespace.apply(tfjob(name, Worker=1))
    assert any(reason in said for said in refusals(namespace, tfjob(name, **roles), "replace"))
    assert refusals(namespace, tfjob(name, Worker=2, PS=1), "replace") == []


GROUP = "stored.elasticdl.org"


@pytest.fixture
def stored_before(cluster: Cluster) -> Iterator[Dict]:
    """The CRD under another group, so that no other test is disturbed."""
    crd = json.loads(cluster("kubectl", "create", "--dry-run=client", "-o", "json",
                             "-f", str(MANIFESTS / "crd.yaml")))
    crd["metadata"] = {"name": f"tfjobs.{GROUP}"}
    crd["spec"]["group"] = GROUP
    yield crd
    cluster.run("kubectl", "delete", "crd", f"tfjobs.{GROUP}", "--wait=false")


def test_jobs_that_were_stored_before_the_rules_still_get_a_status(cluster, namespace,
                                                                   stored_before):
    def install(crd: Dict) -> None:
        cluster("kubectl", "apply", "-f", "-", stdin=json.dumps(crd))
        wait_for_crd(cluster, f"tfjobs.{GROUP}")

    lax = copy.deepcopy(stored_before)
    lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}
    install(lax)
    jobs = [tfjob("00test", Worker=1), tfjob("long" * 15, Worker=1), tfjob("zero", Worker=0),
            tfjob("role", Wroker=1), tfjob("policy", Worker=1, restart="never"),
            tfjob("main", Worker=replicas(container={"name": "main"})), tfjob("none", Worker={}),
            tfjob("image", Worker=replicas(image="")), tfjob("chiefs", Chief=1, Master=1),
            tfjob("twice", Worker=1, worker=1), tfjob("empty"),
            tfjob("managed", Worker=1, run_policy={"managedBy": "other"})]
    kind = f"tfjobs.{GROUP}"
    for job in jobs:
        job["apiVersion"] = f"{GROUP}/v1"
    namespace.apply(*jobs)
    install(stored_before)
    other = tfjob("other", Worker=0)
    other["apiVersion"] = f"{GROUP}/v1"

    def strict() -> bool:
        return refusals(namespace, other) != []
    wait_for("the new schema", strict)
    for job in jobs:
        name = job["metadata"]["name"]
        namespace.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p",
                          json.dumps({"status": {"elasticdl": {"progress": "1 %"}}}))
        # Metadata too, for example by the garbage collector.
        namespace.kubectl("annotate", kind, name, "a=b")
        assert namespace.get(kind, name)["status"] == {"elasticdl": {"progress": "1 %"}}


def overlay(folder: Path, namespace: Namespace, base: Path) -> str:
    """A kustomization of `base` for a namespace of a test. All names begin with its number, so that
    a training operator in the same cluster is left alone."""
    (folder / "kustomization.yaml").write_text(json.dumps({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "namespace": namespace.name, "namePrefix": f"t{namespace.name.rsplit('-', 1)[1]}-",
        "resources": [os.path.relpath(base, folder.resolve())]}))
    return str(folder)


def test_one_command_installs_everything(cluster, namespace, tmp_path):
    folder = overlay(tmp_path, namespace, MANIFESTS)
    done = cluster("kubectl", "apply", "--dry-run=server", "-k", folder).splitlines()
    kinds = sorted(line.split("/")[0].split(".")[0] for line in done)
    assert kinds == ["clusterrole", "clusterrole", "clusterrole", "clusterrole",
                     "clusterrolebinding", "customresourcedefinition", "deployment", "namespace",
                     "role", "rolebinding", "service", "serviceaccount"]
    names = cluster("kubectl", "kustomize", str(MANIFESTS))
    assert names.count("\n  namespace: kubeflow\n") == 7  # subjects of bindings, too


def test_the_operator_is_installed_and_removed_without_its_jobs(cluster, namespace, tmp_path):
    namespace.apply(tfjob("stays", Worker=1))
    folder = overlay(tmp_path, namespace, MANIFESTS / "operator")
    try:
        cluster("kubectl", "apply", "-k", folder)
        said = cluster("kubectl", "apply", "-k", folder)
        assert {line.split()[-1] for line in said.splitlines()} == {"unchanged"}, said
    finally:
        cluster("kubectl", "delete", "-k", folder)
    left = cluster("kubectl", "get", "-k", folder, "--ignore-not-found", "-o", "name")
    assert left == ""
    assert namespace.get("tfjob", "stays")


def test_the_operator_may_do_its_work_and_nothing_else(cluster):
    """The rules themselves, because a test must not wait for a cluster role to be bound."""
    manifests = json.loads(cluster("kubectl", "create", "--dry-run=client", "-o", "json", "-f",
                                   str(MANIFESTS / "operator/rbac.yaml")).join("[]")
                           .replace("}\n{", "},\n{"))
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in manifests}
    allowed = {resource: set(rule["verbs"])
               for rule in by_name["ClusterRole", "training-operator"]["rules"]
               for resource in rule["resources"]}
    assert allowed == {
        "tfjobs": {"get", "list", "watch", "delete"},
        "tfjobs/status": {"update"},
        "tfjobs/finalizers": {"update"},
        "pods": {"get", "list", "watch", "create", "delete", "patch"},
        "services": {"get", "list", "watch", "create", "delete", "patch"},
        "pods/log": {"get"},
        "events": {"create", "patch"},
        "secrets": {"create"},
        "podgroups": {"get", "list", "watch", "create", "update", "delete"},
        "priorityclasses": {"list", "watch"},
    }
    lease = by_name["Role", "training-operator"]["rules"]
    assert lease == [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                      "verbs": ["get", "create", "update"]}]
