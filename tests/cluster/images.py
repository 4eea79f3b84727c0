"""The images of jobs in the test cluster, built by buildah as the tutorials build them."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from cluster import ROOT, Cluster

BINARY = Path(os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl"))
RECIPES = Path(__file__).parent / "images"

MASTER = "elasticdl:1.0.0"
ESTIMATOR = "elasticdl:iris_estimator"
# Those that nodes pull.
PUSHED_MASTER = "elasticdl/elasticdl:1.0.0"
DEEPCTR = "elasticdl:deepctr_estimator"
BAKED = "gcr.io/elasticdl-test/elasticdl:baked"  # with TensorFlow in it


def lay_out_binary(root: Path, leave_out: str = "") -> None:
    """The binary and what the loader wants for it, but for libraries that `leave_out` matches."""
    program = root / "usr/bin/elasticdl"
    program.parent.mkdir(parents=True)
    subprocess.run(["strip", "-o", str(program), str(BINARY)], check=True)
    listed = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True)
    for word in listed.stdout.split():
        if word.startswith("/") and not (leave_out and re.search(leave_out, word)):
            # Debian's /lib is a link into /usr, which a folder must not replace.
            target = root / ("usr" if leave_out else ".") / word.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(word).resolve(), target)


def lay_out_packages(folder: Path) -> None:
    """What `pip install elasticai_api elasticdl_api` and `COPY ./model_zoo` bring."""
    packages = folder / "root/usr/lib/python3/dist-packages"
    for name in ("elasticai_api", "elasticdl_api"):
        shutil.copytree(ROOT / name, packages / name,
                        ignore=shutil.ignore_patterns("__pycache__", "*.toml"))
    shutil.copytree(ROOT / "model_zoo", folder / "model_zoo",
                    ignore=shutil.ignore_patterns("__pycache__"))
    # A C library cannot be exchanged below a program that runs, and the base image has one.
    lay_out_binary(folder / "root", leave_out=r"/(ld-linux|lib(c|m|resolv|pthread|dl|rt)\.so)")


class Builder:
    """buildah with a store of its own, below a test's folder."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.registry = cluster("registry")
        conf = folder / "registries.conf"
        conf.write_text('unqualified-search-registries = []\n'
                        f'[[registry]]\nlocation = "{self.registry}"\ninsecure = true\n')
        self.env = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(conf)}

    def buildah(self, *arguments: str) -> None:
        done = subprocess.run(
            ["buildah", "--storage-driver", "vfs", "--root", str(self.folder / "store"),
             "--runroot", str(self.folder / "run"), *arguments],
            env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"buildah {arguments}\n{done.stdout}{done.stderr}"

    def build(self, recipe: str, name: str, context: Path) -> None:
        text = (RECIPES / f"Dockerfile.{recipe}").read_text()
        local = self.folder / f"Dockerfile.{recipe}"
        local.write_text(text.replace("FROM library/", f"FROM {self.registry}/library/"))
        self.buildah("build", "--quiet", "--isolation=chroot", "-f", str(local), "-t", name,
                     str(context))

    def load(self, image: str) -> None:
        """Onto every node, for pods that never pull."""
        archive = self.folder / "image.tar"
        self.buildah("push", "--quiet", image,
                     f"docker-archive:{archive}:docker.io/library/{image}")
        self.cluster("load", str(archive))
        archive.unlink()

    def push(self, image: str, name: str) -> None:
        """To the registry, where nodes find what `name` says."""
        host, _, rest = name.partition("/")
        path = rest if "." in host else name
        path = path if "/" in path else f"library/{path}"
        self.buildah("push", "--quiet", "--tls-verify=false", image,
                     f"docker://{self.registry}/{path}")


def load_images(cluster: Cluster, folder: Path) -> Builder:
    """The master's image and those of the tutorials, on every node or in the registry."""
    builder = Builder(cluster, folder)
    lay_out_binary(folder / "master/root")
    builder.build("master", MASTER, folder / "master")
    builder.load(MASTER)
    builder.push(MASTER, PUSHED_MASTER)
    lay_out_packages(folder / "estimator")
    builder.build("estimator", ESTIMATOR, folder / "estimator")
    builder.load(ESTIMATOR)
    builder.push(ESTIMATOR, DEEPCTR)
    return builder


def push_baked(builder: Builder) -> None:
    """The estimator's image with TensorFlow in it, through the registry: nothing is mounted."""
    context = builder.folder / "estimator"
    # Not `COPY`, which rounds times, after which Python takes half of the compiled files for stale.
    subprocess.run(["tar", "-C", sysconfig.get_path("purelib"), "--exclude=./pip",
                    "-cf", str(context / "packages.tar"), "."], check=True)
    builder.build("baked", BAKED, context)
    builder.push(BAKED, BAKED)
