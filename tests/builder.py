"""Builds our images, and images based on them, with buildah, as the tutorials do.

The image store is outside of the tree and is kept between runs, so unchanged layers are not built
again. Clones share it, so its image names are only valid while the builder's lock is held.
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
# A fixed date instead of the commit's, so unchanged files give the same wheels and layers.
DATE = "1686355200"
# Needs no cgroups, because tests also run in containers and chroots.
ISOLATION = {"BUILDAH_ISOLATION": "chroot"}


class Builder:
    """buildah with its own image store. Needs root."""

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
            # Removes layers without a name: those of older binaries and models.
            self.run("buildah", "rmi", "--prune", "--force")

    def run(self, *command: str, **variables: str) -> str:
        done = subprocess.run(command, env={**self.env, **variables}, cwd=ROOT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-5000:]}"
        return done.stdout

    def build_ours(self, *images: str, **arguments: str) -> None:
        """Builds images of elasticdl/docker with tools/images, from the wheels in dist/."""
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
    """Writes the wheels of this clone and of BINARY to dist/, from the cache if it has them."""
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
    files = [BINARY, ROOT / "tools/wheels", ROOT / "model_zoo/deepctr/gen_criteo_sample.py",
             *BINARY.parents[2].glob("elasticdl/native/_native.abi3.so")]
    for package in ("elasticai_api", "elasticdl", "elasticdl_api", "elasticdl_client",
                    "elasticdl_preprocessing"):
        files += sorted(path for path in (ROOT / package).rglob("*")
                        if path.is_file() and "__pycache__" not in path.parts)
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
