import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from cluster import cluster, namespace  # noqa: E402, F401
from jobs import Job, prepare_cluster, prepare_namespace  # noqa: E402
from zoo import outside, zoo  # noqa: E402, F401


@pytest.fixture(scope="session")
def images(cluster, tmp_path_factory):  # noqa: F811
    """Prepares the cluster for jobs; returns the helper that brings images there."""
    return prepare_cluster(cluster, tmp_path_factory.mktemp("images"))


@pytest.fixture
def job(images, namespace, tmp_path):  # noqa: F811
    """A job to submit, in a namespace where masters have their permissions."""
    prepare_namespace(namespace)
    made = Job(namespace, "test", tmp_path / "out")
    made.out.mkdir()
    yield made
    made.cli("stop", made.name, check=False)
