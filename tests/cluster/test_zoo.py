"""Tutorial 5: from a folder of models to pods, with the printed commands."""

import json
import shlex

from cluster import ROOT, nightly, pod
from zoo import IMAGE, publish

# Uses only the packages in the image; mounts only the output folder.
TRAIN = "python /model_zoo/record_logger.py --size 500 --log-dir /out --record-us 100"


def blobs(images):
    """The digests and sizes of blobs in the registry of the cluster."""
    pushed = images.cluster.kubeconfig().parents[1] / "registry/upper"
    return {path.parent.name: path.stat().st_size
            for path in pushed.glob("**/blobs/sha256/*/*/data")}


def read(namespace, name, command):
    """Pulls the image, runs a command in a pod and returns its output."""
    namespace.apply(pod(name, command, image=IMAGE, container={"imagePullPolicy": "Always"}))
    phase = namespace.wait_for_phase(name, "Succeeded", "Failed", seconds=180)
    said = namespace.kubectl("logs", name)
    assert phase == "Succeeded", said
    return said


def test_tutorial_5_brings_models_to_pods(images, zoo, job):
    publish(zoo)

    assert read(job.namespace, "reader",
                "elasticdl version; python -c 'import toposort, elasticai_api, model_zoo.iris; "
                "print(elasticai_api.__file__)'; cat /model_zoo/iris/__init__.py"
                ).splitlines()[:2] == [
        "elasticdl 2.0.0", "/usr/local/lib/python3.11/dist-packages/elasticai_api/__init__.py"]
    # The master runs from the same image.
    job.cli("train", "--job_name=test", f"--image_name={IMAGE}", "--image_pull_policy=Always",
            f"--job_command={TRAIN}", "--num_workers=2",
            "--master_resource_request=cpu=0.1,memory=128Mi",
            "--worker_resource_request=cpu=0.2,memory=128Mi",
            f"--volume=host_path={job.out},mount_path=/out")
    job.assert_all_done(500)

    # A changed model is one layer in the store, in the upload and in the registry.
    layers, before = zoo.layers(IMAGE), blobs(images)
    (zoo.folder / "iris/__init__.py").write_text("CHANGED = True\n")
    said = zoo("zoo", "build", f"--image={IMAGE}", ".")
    assert "pip install" in said and said.count("Using cache") >= 4
    zoo("zoo", "push", IMAGE)
    assert zoo.layers(IMAGE)[:-1] == layers[:-1]
    new = {digest: size for digest, size in blobs(images).items() if digest not in before}
    # The layer, the image's configuration and its manifest.
    assert len(new) == 3 and sum(new.values()) < 1_000_000, new
    assert "CHANGED" in read(job.namespace, "again", "cat /model_zoo/iris/__init__.py")


@nightly
def test_tutorial_5_with_tensorflow(zoo, namespace):
    """With the real requirements of the models."""
    requirements = (ROOT / "model_zoo/requirements.txt").read_text()
    (zoo.folder / "requirements.txt").write_text(requirements)
    publish(zoo)
    said = read(namespace, "reader", "python -c 'import tensorflow as tf, deepctr; "
                "print(tf.__version__)' && pip check && elasticdl version --output=json")
    lines = said.splitlines()
    assert "2.15.1" in lines and "No broken requirements found." in lines, said
    assert json.loads(lines[-1])["version"] == "2.0.0"


def test_tutorial_1_loads_the_masters_image_onto_the_nodes(images, zoo, namespace):
    """No registry is used: the pod never pulls."""
    variables = dict(line.removeprefix("export ").split("=", 1)
                     for line in images.cluster("env").splitlines())
    zoo.env.update({name: shlex.split(value)[0] for name, value in variables.items()})
    zoo.folder = zoo.folder.parent
    zoo("zoo", "init", "--model_zoo=model_zoo")
    said = zoo("zoo", "build", "--image=elasticdl:master", "--load", ".")
    assert said.splitlines()[-1].startswith("loaded docker.io/library/elasticdl:master into the ")
    namespace.apply(pod("master", "elasticdl version; ls /model_zoo/iris/iris.data",
                        image="elasticdl:master", container={"imagePullPolicy": "Never"}))
    assert namespace.wait_for_phase("master", "Succeeded", "Failed") == "Succeeded"
    assert namespace.kubectl("logs", "master") == "elasticdl 2.0.0\n/model_zoo/iris/iris.data"
