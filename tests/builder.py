"""Our images and those on top, built by buildah as the tutorials build them.

The store lies outside the tree and is kept: what did not change is not built again, and clones
share it. So names in it are good only while the builder's lock is held.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[1]
BINARY = Path(os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl"))
CACHE = Path(os.environ.get("ELASTICDL_CACHE") or Path(
    os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "elasticdl")) / "images"
# Instead of the commit's: a commit that changes nothing in them gives the same wheels and layers.
DATE = "1686355200"
# Without cgroups: tests run in containers and chroots too.
ISOLATION = {"BUILDAH_ISOLATION": "chroot"}


class Builder:
    """buildah with a store of its own. Needs root."""

    def __init__(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        for driver in ("overlay", "vfs"):
            self.env = {**os.environ, "CONTAINERS_STORAGE_CONF": str(write_settings(driver)),
                        "ELASTICDL_BIN": str(BINARY), **ISOLATION}
            if subprocess.run(["buildah", "info"], env=self.env, capture_output=True,
                              check=False).returncode == 0:
                break

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
            # What no name leads to any more: layers of binaries and models of yesterday.
            self.run("buildah", "rmi", "--prune", "--force")

    def run(self, *command: str, **variables: str) -> str:
        done = subprocess.run(command, env={**self.env, **variables}, cwd=ROOT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-5000:]}"
        return done.stdout

    def build_ours(self, *images: str, **arguments: str) -> None:
        """Images of elasticdl/docker, by tools/images. The wheels that they have are in dist/."""
        place_wheels(self)
        self.run("tools/images", "--stand-in", *images, **arguments)

    def build(self, name: str, dockerfile: Path, context: Path = ROOT) -> None:
        self.run(str(BINARY), "zoo", "build", f"--image={name}", f"--file={dockerfile}",
                 str(context))


def write_settings(driver: str) -> Path:
    path = CACHE / f"{driver}.conf"
    text = (f'[storage]\ndriver = "{driver}"\ngraphroot = "{CACHE}/{driver}"\n'
            'runroot = "/run/elasticdl-images"\n')
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def place_wheels(builder: Builder) -> None:
    """Wheels of this clone and BINARY in dist/; from the cache, where they were made before."""
    made = CACHE / f"wheels-{digest_of_sources()}"
    if not made.exists():
        new = Path(f"{made}.{os.getpid()}")
        builder.run("tools/wheels", str(new), SOURCE_DATE_EPOCH=DATE, ELASTICDL_BIN=str(BINARY))
        for old in CACHE.glob("wheels-????????????"):
            shutil.rmtree(old)
        new.rename(made)
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    shutil.copytree(made, ROOT / "dist")


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    files = [BINARY, ROOT / "tools/wheels"]
    for package in ("elasticai_api", "elasticdl_api", "elasticdl_client"):
        files += sorted(path for path in (ROOT / package).rglob("*")
                        if path.is_file() and "__pycache__" not in path.parts)
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
