"""Programs of others beside ours, as processes of this machine: the upstream operator of TFJobs,
and a scheduler that starts the pods of a PodGroup together.

`tools/cluster build-peers` compiles them. Tests that use them are skipped until that was done:
`@needs_peer("training-operator")`.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Dict, Iterator, Optional

import pytest
from cluster import TOOL, Cluster, Namespace, wait_for, wait_for_crd
from images import Images
from tfjobs import Operator

OTHER_JOBS = ("jaxjob", "mpijob", "paddlejob", "pytorchjob", "xgboostjob")
UPSTREAM, GANG = "training-operator", "scheduler-plugins"
GANG_SCHEDULER = "scheduler-plugins-scheduler"  # the name by which pods select it


def folder_of(peer: str) -> Path:
    """The folder of a peer; it exists if the peer was built."""
    return Path(subprocess.run([str(TOOL), "peers"], text=True, check=True, timeout=30,
                               capture_output=True).stdout.strip()) / peer


def needs_peer(peer: str) -> pytest.MarkDecorator:
    """A mark for tests that need a peer. `make nightly` builds all peers, so there it has no
    effect."""
    missing = not folder_of(peer).is_dir() and "ELASTICDL_NIGHTLY" not in os.environ
    return pytest.mark.skipif(
        missing, reason=f"{peer} is not built; type: tools/cluster build-peers {peer}")


def apply_crd(cluster: Cluster, peer: str, name: str) -> None:
    """Makes the cluster serve the resource of a peer, also if another one defined it before."""
    cluster("kubectl", "apply", "--server-side", "--force-conflicts", "-f",
            str(folder_of(peer) / "crd.yaml"))
    wait_for_crd(cluster, name)


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class UpstreamOperator(Operator):
    """The operator of github.com/kubeflow/training-operator for the TFJobs of one namespace.

    It expects to be in a pod, and starts no controller before its webhook has a certificate. In a
    pod, it writes the certificate to a Secret that is mounted below /tmp, and writes the authority
    to a ValidatingWebhookConfiguration. Here:
    - The Secret is in the namespace under test, and this class writes the files. The process has a
      /tmp of its own, because the path is fixed.
    - The configuration has no webhooks. The API server could not reach a webhook on this machine,
      and then would not create any TFJob.
    """

    CONFIGURATION = "validator.training-operator.kubeflow.org"
    SECRET = "training-operator-webhook-cert"
    READY = 'Starting workers\t{"controller": "tfjob-controller"'

    def __init__(self, namespace: Namespace, folder: Path, *flags: str,
                 env: Optional[Dict[str, str]] = None) -> None:
        super().__init__(
            namespace, folder / "upstream.log", config=Path("/tmp/kubeconfig"),
            env={"MY_POD_NAMESPACE": namespace.name, **(env or {})})
        self.namespace = namespace
        self.tmp = folder / "tmp"
        # The program may itself be below /tmp, so it is opened before the mount hides it.
        script = 'exec 9<"$2" && mount --bind "$1" /tmp && shift 2 && exec /proc/self/fd/9 "$@"'
        self.command = ["unshare", "--mount", "bash", "-c", script, "-", str(self.tmp),
                        str(folder_of(UPSTREAM) / "manager"), "--enable-scheme=tfjob",
                        f"--namespace={namespace.name}", "--metrics-bind-address=0",
                        "--health-probe-bind-address=0",
                        f"--webhook-server-port={free_port()}", *flags]

    def start(self, wait: bool = True) -> None:
        self.tmp.mkdir(exist_ok=True)
        shutil.copy(self.namespace.cluster.kubeconfig(), self.tmp / "kubeconfig")
        self.namespace.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self.SECRET}},
            {"apiVersion": "admissionregistration.k8s.io/v1",
             "kind": "ValidatingWebhookConfiguration", "metadata": {"name": self.CONFIGURATION}})
        super().start(wait=False)
        wait_for("the operator's certificate", self.mount_certificate)
        if wait:
            self.wait_for_log(self.READY)

    def mount_certificate(self) -> bool:
        assert self.process is None or self.process.poll() is None, self.text()[-3000:]
        data = (self.namespace.get("secret", self.SECRET) or {}).get("data", {})
        mounted = self.tmp / "k8s-webhook-server/serving-certs"
        mounted.mkdir(parents=True, exist_ok=True)
        # The operator waits for the certificate, so the key is written first.
        for name in ("ca.crt", "tls.key", "tls.crt"):
            if name in data:
                (mounted / name).write_bytes(base64.b64decode(data[name]))
        return "tls.crt" in data


@contextlib.contextmanager
def installed_upstream(images: Images, folder: Path) -> Iterator[None]:
    """Installs the upstream operator by its own manifests, with its CRDs and its webhook."""
    cluster, overlay = images.cluster, str(folder_of(UPSTREAM) / "manifests/overlays/standalone")
    (image,) = re.findall(r"image: (\S+/training-operator:\S+)", cluster(
        "kubectl", "kustomize", overlay))
    recipe = folder / "Dockerfile"
    recipe.write_text("FROM scratch\nCOPY manager /manager\n")
    with images.builder.locked():
        images.builder.run("buildah", "build", "--quiet", f"--tag={image}", f"--file={recipe}",
                           str(folder_of(UPSTREAM)))
        images.push(image, image)
    cluster("kubectl", "apply", "--server-side", "--force-conflicts", "-k", overlay)
    try:
        cluster("kubectl", "-n", "kubeflow", "rollout", "status", "deployment/training-operator",
                "--timeout=180s", timeout=200)
        yield
    finally:
        cluster("kubectl", "delete", "namespace/kubeflow", "--ignore-not-found", timeout=300)
        cluster("kubectl", "delete", "--ignore-not-found", "clusterrole,clusterrolebinding",
                "training-operator")
        cluster("kubectl", "delete", "--ignore-not-found", "validatingwebhookconfiguration",
                UpstreamOperator.CONFIGURATION)
        cluster("kubectl", "delete", "--ignore-not-found", "crd", *(
            f"{kind}s.kubeflow.org" for kind in OTHER_JOBS))


@contextlib.contextmanager
def gang_scheduler(cluster: Cluster, folder: Path) -> Iterator[str]:
    """Runs the scheduler with the plugin Coscheduling beside the cluster's own. Yields its name."""
    apply_crd(cluster, GANG, "podgroups.scheduling.x-k8s.io")
    config = folder / "scheduler.json"
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]},
               "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig())},
        "profiles": [{"schedulerName": GANG_SCHEDULER, "plugins": plugins}]}))
    log = folder / "scheduler.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(folder_of(GANG) / "scheduler"), f"--config={config}", "--secure-port=0",
             # The plugin may read an old PodGroup when it is told that the group has changed. By
             # default the pod would then wait for five minutes.
             "--pod-max-in-unschedulable-pods-duration=10s"],
            env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield GANG_SCHEDULER
        assert process.poll() is None, "the scheduler exited by itself"
    except BaseException:
        print(f"log of the scheduler ({log}):\n{log.read_text(errors='replace')[-20000:]}")
        raise
    finally:
        process.kill()
        process.wait(timeout=30)
