import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from cluster import ROOT, cluster, namespace  # noqa: E402, F401
from images import load_images  # noqa: E402
from jobs import Job  # noqa: E402


@pytest.fixture(scope="session")
def images(cluster, tmp_path_factory):  # noqa: F811
    """The images of jobs on every node, and their priority classes; yields what built them."""
    cluster("kubectl", "apply", "-f", str(ROOT / "elasticdl/manifests/priority-classes.yaml"))
    return load_images(cluster, tmp_path_factory.mktemp("images"))


@pytest.fixture
def job(images, namespace, tmp_path):  # noqa: F811
    """A job to be submitted, in a namespace where masters have their permissions."""
    namespace.kubectl("apply", "-f", str(ROOT / "elasticdl/manifests/elasticdl-rbac.yaml"))
    made = Job(namespace, "test", tmp_path / "out")
    made.out.mkdir()
    yield made
    made.cli("stop", made.name, check=False)
