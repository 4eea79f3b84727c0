"""Uses TFJobs through Kubeflow's published SDK, unmodified. Runs in the environment `kubeflow`.

  tfjob_sdk.py store NAMESPACE   what needs only an API server with the CRD
  tfjob_sdk.py life NAMESPACE    the whole life of jobs, with an operator

Prints a line after each part; a failed assertion ends it.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kubeflow.training import TrainingClient, models
from kubernetes import client
from kubernetes.client.rest import ApiException
from kubernetes.stream import stream
from waiting import wait_for

# A replica ends with the code in /tmp/end, as soon as that exists.
COMMAND = ('trap "exit 0" TERM; echo "hello from $HOSTNAME"; '
           'until [ -e /tmp/end ]; do sleep 0.1; done; exit "$(cat /tmp/end)"')


def job(name: str, **roles: int) -> models.KubeflowOrgV1TFJob:
    container = models.V1Container(name="tensorflow", image="busybox:1",
                                   image_pull_policy="IfNotPresent",
                                   command=["sh", "-c", COMMAND])
    template = models.V1PodTemplateSpec(spec=models.V1PodSpec(
        containers=[container], termination_grace_period_seconds=5))
    return models.KubeflowOrgV1TFJob(
        api_version="kubeflow.org/v1", kind="TFJob", metadata=models.V1ObjectMeta(name=name),
        spec=models.KubeflowOrgV1TFJobSpec(
            run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            tf_replica_specs={role: models.KubeflowOrgV1ReplicaSpec(
                replicas=count, restart_policy="Never", template=template)
                for role, count in roles.items()}))


def end(namespace: str, pod: str, code: int) -> None:
    """Tells a replica to exit."""
    command = ["sh", "-c", f"echo {code} >/tmp/new; mv /tmp/new /tmp/end"]
    stream(client.CoreV1Api().connect_get_namespaced_pod_exec, pod, namespace,
           container="tensorflow", command=command, stdout=True, stderr=True)


def is_gone(sdk: TrainingClient, name: str) -> bool:
    try:
        sdk.get_job(name)
        return False
    except RuntimeError as error:
        assert isinstance(error.__cause__, ApiException) and error.__cause__.status == 404, error
        return True


def store(sdk: TrainingClient) -> None:
    sdk.create_job(job("stored", Worker=2, PS=1))
    found = sdk.get_job("stored")
    assert isinstance(found, models.KubeflowOrgV1TFJob)
    assert found.spec.tf_replica_specs["Worker"].replicas == 2
    assert found.spec.run_policy.clean_pod_policy == "None"
    print("created")

    # The SDK's own manifests: from an image, and from a function.
    sdk.create_job(name="image", base_image="busybox:1", num_workers=2, num_ps_replicas=1,
                   num_chief_replicas=1, resources_per_worker={"cpu": "10m"},
                   labels={"a": "b"}, annotations={"c": "d"}, env_vars={"E": "f"})
    assert set(sdk.get_job("image").spec.tf_replica_specs) == {"Chief", "PS", "Worker"}
    sdk.create_job(name="function", base_image="busybox:1", train_func=store_nothing, num_workers=1)
    assert {one.metadata.name for one in sdk.list_jobs()} == {"stored", "image", "function"}
    print("listed")

    found.spec.tf_replica_specs["Worker"].replicas = 3
    sdk.update_job(found, "stored")
    assert sdk.get_job("stored").spec.tf_replica_specs["Worker"].replicas == 3
    print("updated")

    try:
        sdk.create_job(job("00test", Worker=1))
    except RuntimeError as error:
        assert "a DNS-1035 label must consist of" in str(error), error
    else:
        raise AssertionError("a wrong name was accepted")
    print("refused")

    for name in ("stored", "image", "function"):
        sdk.delete_job(name)
        wait_for(f"{name} to be deleted", lambda: is_gone(sdk, name))
    print("deleted")


def store_nothing() -> None:
    print("trained")


def life(sdk: TrainingClient, namespace: str) -> None:
    sdk.create_job(job("life", Worker=2, PS=1))
    seen = []
    sdk.wait_for_job_conditions("life", expected_conditions={"Running"}, wait_timeout=60,
                                polling_interval=1, callback=lambda now: seen.append(now))
    assert seen
    assert sdk.is_job_created("life") and sdk.is_job_running("life")
    assert not sdk.is_job_succeeded("life") and not sdk.is_job_failed("life")
    assert not sdk.is_job_restarting("life")
    assert [one.type for one in sdk.get_job_conditions("life")] == ["Created", "Running"]
    print("running")

    def names(**filters: object) -> list:
        return sorted(sdk.get_job_pod_names("life", **filters))

    assert names() == ["life-ps-0", "life-worker-0", "life-worker-1"]
    assert names(is_master=True) == ["life-worker-0"]
    assert names(replica_type="ps") == ["life-ps-0"]
    assert names(replica_type="worker", replica_index=1) == ["life-worker-1"]
    (master,) = sdk.get_job_pods("life", is_master=True)
    assert master.metadata.owner_references[0].kind == "TFJob"
    print("pods")

    sdk.update_job({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}}, "life")
    wait_for("worker 2", lambda: "life-worker-2" in names(replica_type="worker"))
    print("updated")

    # A pod that is not pending may still create its container, and then has no log.
    wait_for("all pods to run", lambda: all(
        pod.status.phase == "Running" for pod in sdk.get_job_pods("life")))
    wait_for("a log", lambda: sdk.get_job_logs("life")[0] == {
        "life-worker-0": "hello from life-worker-0\n"})
    wait_for("all logs", lambda: sdk.get_job_logs("life", is_master=False)[0] == {
        pod: f"hello from {pod}\n" for pod in names()})
    events = sdk.get_job_logs("life", is_master=False, verbose=True)[1]
    assert any("Created pod: life-worker-0" in event for event in events["tfjob/life"]), events
    assert events["pod/life-worker-0"], events
    print("logs")

    # Workers without a chief: worker 0 decides.
    end(namespace, "life-worker-0", 0)
    sdk.wait_for_job_conditions("life", wait_timeout=60, polling_interval=1)
    assert sdk.is_job_succeeded("life") and sdk.is_job_created("life")
    assert not sdk.is_job_running("life") and not sdk.is_job_failed("life")
    followed, _ = sdk.get_job_logs("life", follow=True)
    assert followed == {"life-worker-0": "hello from life-worker-0"}, followed
    assert [one.metadata.name for one in sdk.list_jobs()] == ["life"]
    print("succeeded")

    sdk.delete_job("life", delete_options=models.V1DeleteOptions(propagation_policy="Foreground"))
    wait_for("the job to be deleted", lambda: is_gone(sdk, "life"))
    wait_for("its pods to be deleted", lambda: names() == [])
    print("deleted")


def failure(sdk: TrainingClient, namespace: str) -> None:
    sdk.create_job(job("fails", Chief=1, Worker=1))
    sdk.wait_for_job_conditions("fails", expected_conditions={"Running"}, wait_timeout=60,
                                polling_interval=1)
    assert sdk.get_job_pod_names("fails", is_master=True) == ["fails-chief-0"]
    end(namespace, "fails-chief-0", 1)
    try:
        sdk.wait_for_job_conditions("fails", wait_timeout=60, polling_interval=1)
    except RuntimeError as error:
        assert "is Failed" in str(error), error
    else:
        raise AssertionError("the job did not fail")
    assert sdk.is_job_failed("fails") and not sdk.is_job_running("fails")
    sdk.delete_job("fails")
    print("failed")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["store", "life"])
    parser.add_argument("namespace")
    arguments = parser.parse_args()
    sdk = TrainingClient(namespace=arguments.namespace, job_kind="TFJob")
    if arguments.part == "store":
        store(sdk)
    else:
        life(sdk, arguments.namespace)
        failure(sdk, arguments.namespace)


if __name__ == "__main__":
    main()
