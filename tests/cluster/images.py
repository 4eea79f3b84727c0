"""The images of jobs in the test cluster, on its nodes or in its registry."""

from pathlib import Path
from typing import Optional

from builder import BINARY, Builder
from cluster import Cluster

__all__ = ["BAKED", "BINARY", "ESTIMATOR", "MASTER", "Images"]
RECIPES = Path(__file__).parent / "images"

MASTER = "elasticdl:1.0.0"
ESTIMATOR = "elasticdl:iris_estimator"
# Images that nodes pull.
PUSHED_MASTER = "elasticdl/elasticdl:1.0.0"
DEEPCTR = "elasticdl:deepctr_estimator"
BAKED = "gcr.io/elasticdl-test/elasticdl:baked"  # includes TensorFlow


class Images:
    """Builds images and brings them to a cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder, self.builder = cluster, folder, Builder()

    def load_all(self) -> None:
        """Builds and loads the image of the master and those of the tutorials."""
        with self.builder.locked():
            self.builder.build_ours("base", "master")
            self.load("elasticdl:master", MASTER)
            self.push("elasticdl:master", PUSHED_MASTER)
            self.builder.build(ESTIMATOR, RECIPES / "Dockerfile.iris")
            self.load(ESTIMATOR)
            self.builder.build(DEEPCTR, RECIPES / "Dockerfile.deepctr")
            self.push(DEEPCTR, DEEPCTR)

    def push_baked(self) -> None:
        """Builds and pushes an image with all packages, so that nothing is mounted."""
        with self.builder.locked():
            self.builder.build_ours("base=elasticdl:base-tensorflow",
                                    TENSORFLOW="tensorflow-cpu==2.15.1")
            self.builder.build(BAKED, RECIPES / "Dockerfile.baked")
            self.push(BAKED, BAKED)

    def load(self, image: str, name: Optional[str] = None) -> None:
        """Copies an image to every node, for pods that never pull."""
        archive = self.folder / "image.tar"
        self.builder.run("buildah", "push", "--quiet", image,
                         f"docker-archive:{archive}:docker.io/library/{name or image}")
        self.cluster("load", str(archive))
        archive.unlink()

    def push(self, image: str, name: str) -> None:
        """Pushes an image to the registry, where nodes find it under `name`."""
        host, _, rest = name.partition("/")
        path = rest if rest and "." in host else name
        path = path if "/" in path else f"library/{path}"
        self.builder.run("buildah", "push", "--quiet", "--tls-verify=false", image,
                         f"docker://{self.cluster('registry')}/{path}")
