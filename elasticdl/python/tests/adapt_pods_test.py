"""The program that runs a user's --cluster_spec=FILE.py, with a real kubernetes package."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = (ROOT / "src/cli/adapt_pods.py").read_text()
POD = {"apiVersion": "v1", "kind": "Pod",
       "metadata": {"name": "p", "labels": {"app": "elasticdl"}},
       "spec": {"enableServiceLinks": False,
                "containers": [{"name": "p", "image": "iris:1", "env": [
                    {"name": "A", "value": ""},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}],
                "volumes": [{"name": "v", "emptyDir": {}}]}}
SERVICE = {"apiVersion": "v1", "kind": "Service",
           "spec": {"ports": [{"port": 2222, "targetPort": 2222}]}}


@pytest.fixture(scope="module")
def python():
    """That of the environment which `make setup` makes for this."""
    made = subprocess.run([str(ROOT / "tools/env-path"), "kubernetes"], check=True, text=True,
                          capture_output=True).stdout.strip()
    return f"{made}/bin/python"


@pytest.fixture
def adapt(python, tmp_path):
    """What becomes of a pod and a service by a file with this text."""
    def run(text, interpreter=python):
        file = tmp_path / "spec.py"
        file.write_text(text)
        done = subprocess.run(
            [interpreter, "-c", PROGRAM, str(file)], text=True, capture_output=True, check=True,
            input=json.dumps({"pods": {"worker": POD}, "service": SERVICE}))
        return json.loads(done.stdout)
    return run


def test_objects_pass_through_unchanged(adapt):
    out = adapt("class C:\n def with_pod(self, pod): return pod\n"
                " def with_service(self, service): return service\ncluster = C()\n")
    assert out == {"pods": {"worker": [POD, POD]}, "service": [SERVICE, SERVICE]}


def test_what_the_file_changes_is_seen_and_what_it_prints_is_not(adapt):
    out = adapt("""
from kubernetes import client
class C:
    def with_pod(self, pod):
        print("adapting", pod.metadata.name)
        pod.spec.tolerations = [client.V1Toleration(key="gpu", operator="Exists")]
        pod.spec.containers[0].env.append(client.V1EnvVar(name="ZONE", value="a"))
        return pod
    def with_service(self, service):
        service.spec.type = "NodePort"
        return service
cluster = C()
""")
    before, after = out["pods"]["worker"]
    assert before == POD
    assert after["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert after["spec"]["containers"][0]["env"][2] == {"name": "ZONE", "value": "a"}
    assert out["service"][1]["spec"]["type"] == "NodePort"


def test_a_file_without_services_leaves_them_alone(adapt):
    out = adapt("class C:\n def with_pod(self, pod): return pod\ncluster = C()\n")
    assert "service" not in out


@pytest.mark.parametrize("text, error", [
    ("def f(:\n", "line 1: SyntaxError: "),
    ("\nimport no_such_module\n", "line 2: ModuleNotFoundError: No module named 'no_such_module'"),
    ("x = 1\n", "it defines no object `cluster` with a method with_pod(pod)"),
    ("class C:\n def with_pod(self, pod):\n  return {}['zone']\ncluster = C()\n",
     "line 3: KeyError: 'zone'"),
    ("class C:\n def with_pod(self, pod):\n  pod.spec.node_name = 'a'\ncluster = C()\n",
     "with_pod returned a NoneType for the pod of a worker, not the V1Pod that it got; end it "
     "with `return pod`"),
    ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
])
def test_what_is_wrong_is_said_with_its_line(adapt, text, error):
    assert adapt(text)["error"].startswith(error)


def test_a_missing_package_is_said_with_the_way_out(adapt):
    error = adapt("", interpreter=sys.executable).get("error")
    if "it defines no object" in error:
        pytest.skip("the environment of the tests has the package by itself")
    assert error.startswith("it needs the package kubernetes, which ")
    assert error.endswith(": pip install kubernetes")
