"""A bare Debian with Python, to install packages in; deleted afterwards. Needs root."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("ELASTICDL_CACHE") or Path(
    os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "elasticdl")) / "bare"

# An overlay of the cached tree and a tmpfs, so that changes are discarded. `cat` ends when the test
# process ends for any reason, and with it the namespaces, their mounts and their processes.
HOLD = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1"/upper "$1"/work "$1"/root
mount -t overlay overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$1"/root
cd "$1"/root
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
ip link set lo up
mkdir .old
pivot_root . .old
umount -l /.old
rmdir /.old
echo ready
exec cat
"""


class BareSystem:
    """A Debian with separate files, processes and an isolated network."""

    def __init__(self, suite: str, packages: List[str]) -> None:
        tree = make_tree(suite, packages)
        self._mounts = Path(tempfile.mkdtemp(prefix="bare-"))
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
             "--propagation=private", "bash", "-c", HOLD, tree, self._mounts],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._holder.stdout.readline() != "ready\n":
            self.close()
            raise AssertionError(f"cannot start the bare system; unshare ended with "
                                 f"{self._holder.returncode}")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._init = children.read_text().split()[0]

    def run(self, command: str, check: bool = True, seconds: float = 60) -> str:
        """Runs a command line inside, without our environment, and returns its output."""
        done = subprocess.run(
            ["nsenter", "--target", self._init, "--mount", "--pid", "--net", "--root", "--wd",
             "/usr/bin/env", "--chdir=/root", "-i", "HOME=/root", "LANG=C.UTF-8",
             "PATH=/root/env/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-c", command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=seconds)
        if check:
            assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def put(self, *files: Path) -> None:
        """Copies files into the home folder inside."""
        for file in files:
            shutil.copy(file, Path(f"/proc/{self._init}/root/root"))

    def close(self) -> None:
        self._holder.stdin.close()
        self._holder.wait(30)
        self._holder.stdout.close()
        self._mounts.rmdir()


def make_tree(suite: str, packages: List[str]) -> Path:
    """The file tree of a Debian, created once and cached."""
    key = hashlib.sha256(" ".join([suite, *packages]).encode()).hexdigest()[:12]
    tree = CACHE / f"{suite}-{key}"
    if not tree.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}",
                 "--dpkgopt=force-unsafe-io", suite, f"{folder}/tree"],
                check=True, timeout=900, stdin=subprocess.DEVNULL)
            publish(Path(folder, "tree"), tree)
    return tree


def download(python: str, constraints: Path, *requirements: str) -> List[Path]:
    """Downloads wheels for a Python such as "3.11" with the pip of this machine; caches them."""
    key = hashlib.sha256(" ".join([python, *requirements]).encode()
                         + constraints.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"pip-{key}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as new:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
                 f"--python-version={python}", f"--constraint={constraints}",
                 f"--dest={new}/wheels", *requirements], check=True, timeout=600)
            publish(Path(new, "wheels"), folder)
    return sorted(folder.iterdir())


def publish(new: Path, place: Path) -> None:
    """Renames a finished folder to its final name, unless another process was faster."""
    try:
        new.rename(place)
    except OSError:
        if not place.exists():
            raise
