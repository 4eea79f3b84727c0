"""The operator as users install it: a Deployment with our image, its service account and roles."""

import json
import os
from pathlib import Path

import pytest
from cluster import Namespace, wait_for
from images import PUSHED_MASTER
from tfjobs import MANIFESTS, pods_of, tfjob, tfjob_crd, wait_for_condition  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd", "images")


def overlay(folder: Path, namespace: Namespace) -> str:
    """The operator in a namespace of a test, for the jobs of this namespace only."""
    patch = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-",
              "value": f"--namespace={namespace.name}"}]
    (folder / "kustomization.yaml").write_text(json.dumps({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "namespace": namespace.name, "namePrefix": f"{namespace.name}-",
        "images": [{"name": "elasticdl/elasticdl", "newTag": PUSHED_MASTER.rpartition(":")[2]}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": json.dumps(patch)}],
        "resources": [os.path.relpath(MANIFESTS / "operator", folder.resolve())]}))
    return str(folder)


def test_the_installed_operator_runs_a_job(cluster, namespace, tmp_path):
    folder = overlay(tmp_path, namespace)
    try:
        cluster("kubectl", "apply", "-k", folder)
        name = f"deployment/{namespace.name}-training-operator"
        try:
            namespace.kubectl("rollout", "status", name, "--timeout=120s")
        except AssertionError:
            print(namespace.kubectl("describe", "pods"))
            print(namespace.kubectl("logs", name))
            raise
        # Two pods are ready: one holds the lease, and the other one waits for it.
        namespace.apply(tfjob("mnist", Worker=1, PS=1, command="echo trained",
                              run_policy={"cleanPodPolicy": "All"}))
        wait_for_condition(namespace, "mnist", "Succeeded", seconds=120)
        logs = namespace.kubectl("logs", "-l", "control-plane=kubeflow-training-operator",
                                 "--tail=-1")
        assert logs.count("operator: watching TFJobs in namespace") == 1
        assert logs.count("operator: waiting for the lease") == 1
        assert "Forbidden" not in logs and "forbidden" not in logs
        wait_for("the pods to be deleted", lambda: not pods_of(namespace, "mnist"))
    finally:
        cluster("kubectl", "delete", "-k", folder)


def test_the_operator_beside_kubeflows_has_names_of_its_own(cluster):
    def names(folder):
        printed = cluster("kubectl", "create", "--dry-run=client", "-o", "name", "-k",
                          str(MANIFESTS / folder))
        return set(printed.split())

    beside, alone = names("beside-kubeflow"), names("operator")
    assert len(beside) == len(alone) + 1, "the namespace is added"
    assert not beside & alone
