"""Tutorial 4: our images as `make images` builds them, and its test command in elasticdl:dev."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from builder import ROOT, Builder

pytestmark = pytest.mark.skipif("ELASTICDL_NIGHTLY" not in os.environ,
                                reason="TensorFlow is installed in it: left to make nightly")

# The command of the tutorial.
COMMAND = "make && K8S_TESTS=False pytest elasticdl/python/tests"
USER = 1234  # unknown in the image
NO_NETWORK = "ip link set lo up && exec \"$@\""


@pytest.fixture(scope="module")
def builder():
    made = Builder()
    with made.locked():
        made.build_ours("base", "master", "data", "dev")
        yield made


@pytest.fixture
def run(builder):
    """Runs a shell command in a fresh container of an image, without an external network."""
    containers = []

    def in_image(image: str, command: str, *options: str) -> str:
        name = builder.run("buildah", "from", image).strip()
        containers.append(name)
        return builder.run(
            "unshare", "--net", "sh", "-c", NO_NETWORK, "sh",
            "buildah", "run", "--isolation=chroot", *options, name, "bash", "-c", command)

    yield in_image
    for name in containers:
        builder.run("buildah", "rm", name)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A fresh clone of the tree, in which nothing was built."""
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, check=True, capture_output=True, text=True).stdout
    there = "\0".join(name for name in files.split("\0") if name and (ROOT / name).exists())
    folder = tmp_path / "clone"
    folder.mkdir()
    tar = subprocess.run(["tar", "--null", "-T", "-", "-cf", "-"], cwd=ROOT, check=True,
                         input=there.encode(), capture_output=True).stdout
    subprocess.run(["tar", "--no-same-owner", "-xf", "-"], cwd=folder, check=True, input=tar)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(folder)], check=True)
    assert not (folder / "elasticai_api/common/master.desc").exists()
    return folder


def test_the_tutorials_command_tests_a_mounted_clone_without_rights_and_network(run, clone):
    said = run("elasticdl:dev", COMMAND, f"--user={USER}:{USER}", "--workingdir=/v",
               "--volume", f"{clone}:/v")
    assert " passed" in said and "failed" not in said and "skipped" not in said, said
    assert (clone / "elasticai_api/common/master.desc").stat().st_uid == USER


MODEL = "--model_file=elasticdl/python/examples/mnist_functional_api.py --codec_type=tf_example"
MASTER = f"""python -m elasticdl.python.elasticdl.master.main {MODEL} --job_name=test
  --training_data_dir=/data/mnist/train --evaluation_data_dir=/data/mnist/test
  --records_per_task=100 --num_epochs=2 --grads_to_wait=2 --minibatch_size=10
  --log_level=INFO""".replace("\n", " ")
WORKER = (f"python -m elasticdl.python.elasticdl.worker.main {MODEL} --worker_id=1 "
          "--master_addr=localhost:50001 --log_level=INFO")


def test_master_and_worker_run_by_hand_in_two_containers(builder, tmp_path):
    """The containers share a network, as with --net=host, and no file."""
    names = [builder.run("buildah", "from", "elasticdl:dev").strip() for _ in range(2)]
    run = "timeout 300 buildah run --isolation=chroot"
    try:
        said = builder.run(
            "unshare", "--net", "sh", "-c", NO_NETWORK, "sh", "sh", "-c",
            f"{run} {names[0]} bash -c '{MASTER}' >{tmp_path}/master 2>&1 & master=$!; "
            f"{run} {names[1]} bash -c '{WORKER}' >{tmp_path}/worker 2>&1; worker=$?; "
            f"wait $master; echo exited $? $worker; tail -n 40 {tmp_path}/master {tmp_path}/worker")
    finally:
        for name in names:
            builder.run("buildah", "rm", name)
    assert said.startswith("exited 0 0"), said
    assert "Loss = " in (tmp_path / "worker").read_text()
    assert "Job test succeeded" in (tmp_path / "master").read_text()


COUNT = """python -c '
from elasticdl import open_records
print(*(len(open_records("/data/mnist/" + part)) for part in ("train", "test")))'"""


def test_the_development_image_has_the_binary_and_the_data(run):
    said = run("elasticdl:dev", f"elasticdl version && wc -l /data/*.* && {COUNT}",
               f"--user={USER}:{USER}")
    version, *counts = said.splitlines()
    assert version.startswith("elasticdl ")
    assert [line.split() for line in counts[:2]] == [["10001", "/data/criteo_sample.txt"],
                                                     ["150", "/data/iris.data"]]
    assert counts[-1] == "6000 1000"


def test_gen_data_puts_all_of_mnist_into_the_image(builder, run):
    builder.run("tools/images", "dev=elasticdl:dev-data", GEN_DATA="yes")
    assert run("elasticdl:dev-data", COUNT).splitlines()[-1] == "60000 10000"


def test_gen_dataset_works_in_a_clone_that_was_never_built(run, clone):
    run("elasticdl/elasticdl:dev", "scripts/gen_dataset.sh data --fraction=0.01",
        "--workingdir=/work", f"--user={USER}:{USER}", "--volume", f"{clone}:/work")
    assert (clone / "data/mnist/train").is_dir() and (clone / "data/mnist/test").is_dir()
    # The compiled module of the image reads it, in the clone that has none.
    assert run("elasticdl:dev", COUNT.replace("/data/", "data/"), "--workingdir=/work",
               "--volume", f"{clone}:/work").splitlines()[-1] == "600 100"


def test_a_base_image_that_is_not_debian_12_is_named_with_those_that_are_supported(builder,
                                                                                   tmp_path):
    base = "tensorflow/tensorflow:1.13.1-gpu-py3"
    (tmp_path / "Dockerfile").write_text(
        "FROM python:3.11-bookworm\nRUN printf 'ID=ubuntu\\nVERSION_ID=\"16.04\"\\n"
        "PRETTY_NAME=\"Ubuntu 16.04.6 LTS\"\\n' >/etc/os-release\n")
    builder.build(base, tmp_path / "Dockerfile", tmp_path)
    with pytest.raises(AssertionError) as error:
        builder.run("tools/images", "dev=elasticdl:dev-gpu", BASE_IMAGE=base)
    for words in (f"BASE_IMAGE={base} is Ubuntu 16.04.6 LTS", "needs Debian 12",
                  "python:3.11-bookworm (the default)"):
        assert words in str(error.value)


@pytest.mark.parametrize("image", ["base", "master", "data", "dev"])
def test_an_image_says_what_it_was_made_of(builder, image):
    said = json.loads(builder.run("buildah", "inspect", "--type=image", f"elasticdl:{image}"))
    labels = said["OCIv1"]["config"]["Labels"]
    commit = builder.run("git", "rev-parse", "HEAD").strip()
    assert labels["org.opencontainers.image.revision"].removesuffix("-dirty") == commit
    assert labels["org.opencontainers.image.version"] == "2.0.0"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_the_masters_image_is_small_and_has_no_rights(builder, tmp_path):
    said = json.loads(builder.run("buildah", "inspect", "--type=image", "elasticdl:master"))
    assert said["OCIv1"]["config"]["User"] == "65532:65532"
    builder.run("buildah", "push", "--quiet", "elasticdl:master", f"oci:{tmp_path}/image:1")
    size = sum(blob.stat().st_size for blob in tmp_path.glob("image/blobs/sha256/*"))
    print(f"figure images.master_mb {size / 1e6:.1f} MB")
    assert size < 60e6
    name = builder.run("buildah", "from", "elasticdl:master").strip()
    try:
        root = Path(builder.run("buildah", "mount", name).strip())
        programs = [path.name for path in root.rglob("*")
                    if path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name]
        assert programs == ["elasticdl"]
    finally:
        builder.run("buildah", "rm", name)


def layers(builder, image: str) -> list:
    said = json.loads(builder.run("buildah", "inspect", "--type=image", image))
    return said["OCIv1"]["rootfs"]["diff_ids"]


@pytest.mark.parametrize("image", ["base", "master", "data", "dev"])
def test_the_same_tree_gives_the_same_layers(builder, image):
    before = layers(builder, f"elasticdl:{image}")
    builder.run("tools/images", f"{image}=elasticdl:again", ELASTICDL_NO_CACHE="1")
    assert layers(builder, "elasticdl:again") == before
