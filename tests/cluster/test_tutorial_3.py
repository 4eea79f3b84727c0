"""Tutorial 3 from top to bottom: the commands of its page, with fewer steps of training. The pods
of the job mount TensorFlow instead of having it in their image."""

import json
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Dict, Iterator, List

import pytest
from cluster import ROOT, wait_for
from images import BINARY
from shipped_operator import (
    log_of,
    push_its_image,
    removed_at_the_end,
    run_kubectl,
    wait_for_rollout,
)
from tfjobs import conditions_of, pods_of, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

PAGE = ROOT / "docs/tutorials/3-tfjob.md"
EXAMPLE = ROOT / "examples/github_issue_summarization"
TFJOB = "distributed/tfjob.yaml"
STEPS = "300"


def commands_of(page: Path) -> List[List[str]]:
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def templates_in(item: Dict) -> Iterator[Dict]:
    """The pod templates of an object."""
    spec = item["spec"]
    if "template" in spec:
        yield spec["template"]
    for role in spec.get("tfReplicaSpecs", {}).values():
        yield role["template"]


def adapt(item: Dict) -> Dict:
    """Mounts TensorFlow into the pods, and changes the number of steps."""
    for template in templates_in(item):
        spec = template["spec"]
        spec.setdefault("volumes", []).append(
            {"name": "packages", "hostPath": {"path": sysconfig.get_path("purelib")}})
        for container in spec["containers"]:
            container.setdefault("volumeMounts", []).append(
                {"name": "packages", "mountPath": "/usr/lib/python3.11/dist-packages",
                 "readOnly": True})
            for variable in container.get("env", []):
                if variable["name"] == "STEPS":
                    variable["value"] = STEPS
    return item


class Story:
    """Runs commands of the page in a namespace."""

    def __init__(self, images, namespace) -> None:
        self.images, self.namespace, self.commands = images, namespace, commands_of(PAGE)

    def run_to(self, *end: str) -> str:
        """Runs the commands up to the one that begins with these words; returns its output."""
        while self.commands:
            command = self.commands.pop(0)
            output = self.run(command)
            if command[:len(end)] == list(end):
                return output
        raise AssertionError(f"{PAGE} has no command {end}, or not in this order")

    def run(self, command: List[str]) -> str:
        if command[:2] == ["kubectl", "create"]:
            return self.create(command[-1])
        if command[:3] == ["kubectl", "apply", "-k"]:
            return run_kubectl(self.namespace.cluster, command)
        if command[0] == "kubectl":
            files = [str(EXAMPLE / word) if word.endswith(".yaml") else word for word in command]
            return self.namespace.kubectl(*files[1:], timeout=900)
        if command[0] == "elasticdl":
            return self.build(command[1:])
        assert command == ["cd", "examples/github_issue_summarization"], command
        return ""

    def create(self, manifest: str) -> str:
        printed = self.namespace.kubectl("create", "--dry-run=client", "-o", "json", "-f",
                                         str(EXAMPLE / manifest))
        decoder, items = json.JSONDecoder(), []
        while printed:
            item, end = decoder.raw_decode(printed)
            items += item["items"] if item["kind"] == "List" else [item]
            printed = printed[end:].lstrip()
        text = json.dumps({"apiVersion": "v1", "kind": "List",
                           "items": [adapt(item) for item in items]})
        return self.namespace.cluster("kubectl", "-n", self.namespace.name, "create", "-f", "-",
                                      stdin=text)

    def build(self, command: List[str]) -> str:
        """Builds the image on the stand-in for its base image, and copies it to the nodes."""
        image = command[2].partition("=")[2]
        with self.images.builder.locked():
            self.images.builder.build_ours("base")
            said = self.images.builder.run(str(BINARY), *command[:-1], "--build_args=TENSORFLOW=",
                                           str(EXAMPLE / command[-1]))
            self.images.load(image)
        return said

    def claim(self, name: str) -> Path:
        """The folder of a claim on this machine."""
        claim = self.namespace.get("pvc", name)
        volume = self.namespace.get("pv", claim["spec"]["volumeName"])
        folder = Path(volume["spec"]["hostPath"]["path"]).name
        return self.namespace.cluster.kubeconfig().parents[1] / "volumes" / folder


def summarize(model: Path) -> str:
    return subprocess.run([sys.executable, "-B", str(EXAMPLE / "distributed/summarize.py"),
                           str(model)], text=True, check=True, timeout=120,
                          stdout=subprocess.PIPE).stdout


def test_tutorial_3_trains_an_estimator_as_a_tfjob(images, namespace):
    story, cluster = Story(images, namespace), namespace.cluster
    push_its_image(images)
    with removed_at_the_end(cluster):
        story.run_to("kubectl", "apply", "-k", "elasticdl/manifests/tfjob-operator")
        wait_for_rollout(cluster)
        story.run_to("kubectl", "create", "-f", TFJOB)
        names = {"github-master-0", "github-ps-0", "github-ps-1", "github-worker-0",
                 "github-worker-1"}
        wait_for("the pods of the tutorial", lambda: set(pods_of(namespace, "github")) == names)

        story.run_to("kubectl", "wait", "--for=condition=complete", "--timeout=10m", "job/download")
        assert [namespace.get("pvc", name)["status"]["phase"] for name in ("data", "model")] == [
            "Bound", "Bound"]
        assert (story.claim("data") / "github_issues.csv").exists()
        try:
            log = story.run_to("kubectl", "logs", "github-master-0")
        except AssertionError:
            for name in pods_of(namespace, "github"):
                print(name, namespace.kubectl("logs", "--tail=40", name))
            raise
        assert "master 0 has finished" in log
        assert f"Saving dict for global step {STEPS[:-1]}" in log
        assert conditions_of(namespace, "github")[-1]["type"] == "Succeeded"
        wait_for("the parameter servers to be deleted", lambda: not {
            "github-ps-0", "github-ps-1"} & set(pods_of(namespace, "github")))

        printed = story.run_to("kubectl", "logs", "job/summarize")
        assert printed.count("the model writes: ") == 10
        # Not only the pod can load the model.
        assert summarize(story.claim("model")).split() == printed.split()

        story.run_to("kubectl", "delete")
        assert not story.commands
        assert namespace.get("tfjob", "github") is None
        wait_for("the pods to be deleted", lambda: not pods_of(namespace, "github"))
        log = log_of(cluster)
        assert "operator: watching TFJobs in all namespaces" in log
        # Its roles suffice. In namespaces that are being deleted, other things are forbidden.
        assert "forbidden: User" not in log
