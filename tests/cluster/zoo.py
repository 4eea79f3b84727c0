"""The models of the tree in a folder of their own, and the registry to which their image goes.

A conftest.py imports the fixtures with `from zoo import outside, zoo`.
"""

import subprocess
import sys

import pytest
from cluster import ROOT

sys.path.append(str(ROOT / "tests/images"))

from builder import BINARY, CACHE  # noqa: E402
from outside import Outside, Zoo, copy_zoo, store  # noqa: E402

IMAGE = "gcr.io/elasticdl-test/elasticdl:mnist"
# Instead of TensorFlow: a small package that nothing else installs.
LIGHT = "toposort==1.10\n"


@pytest.fixture(scope="session")
def outside(images, tmp_path_factory):
    """Local stand-ins for docker.io and gcr.io, where python is the base image of our tutorials."""
    with images.builder.locked():
        images.builder.build_ours("base")
        images.push("elasticdl:base", "python:3.11-bookworm")
    made = Outside(tmp_path_factory.mktemp("outside"), images.cluster("registry"))
    yield made
    made.close()


@pytest.fixture
def zoo(images, outside, tmp_path):
    """The models in a folder of their own, as in tutorial 5."""
    folder = copy_zoo(ROOT, tmp_path / "model_zoo", LIGHT)
    program = "record_logger.py"
    (folder / program).write_text((ROOT / "tests/e2e/programs" / program).read_text())
    with images.builder.locked():
        made = Zoo(folder, BINARY, store(tmp_path, CACHE / "zoo"), outside)
        # Removes the image of an earlier run.
        subprocess.run(["buildah", "rmi", "--force", "docker.io/library/python:3.11-bookworm"],
                       env=made.env, check=False, capture_output=True)
        yield made


def publish(zoo):
    """The three lines of the tutorial."""
    zoo("zoo", "init")
    said = zoo("zoo", "build", f"--image={IMAGE}", ".")
    return said + zoo("zoo", "push", IMAGE)
