"""The wheels that users install with pip, without the tree."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Callable, List

import pytest
from harness import BINARY, ROOT
from packaging.metadata import Metadata
from test_kills import check_all_done, check_seen, logger

PACKAGES = ["elasticai_api", "elasticdl", "elasticdl_api", "elasticdl_client",
            "elasticdl_preprocessing"]


def make_wheels(tree: Path, out: Path, **env: str) -> List[Path]:
    subprocess.run([tree / "tools" / "wheels", out], check=True, timeout=180,
                   env=dict(os.environ, PYTHON=sys.executable, ELASTICDL_BIN=BINARY, **env))
    # The wheel for the stable ABI exists only where a newer Python is installed.
    return sorted(wheel for wheel in out.iterdir() if "-abi3-" not in wheel.name)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> List[Path]:
    return make_wheels(ROOT, tmp_path_factory.mktemp("dist"))


def test_a_clone_elsewhere_builds_the_same_bytes(wheels: List[Path], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in [*PACKAGES, "model_zoo", "tools", "requirements"]:
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "LICENSE", tree)
    for file in tree.rglob("*"):  # as in a clone of a user with another umask
        file.chmod(file.stat().st_mode & 0o700)
    commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.strip()

    others = make_wheels(tree, tmp_path / "dist", SOURCE_DATE_EPOCH=commit)

    assert [other.name for other in others] == [wheel.name for wheel in wheels]
    for wheel, other in zip(wheels, others):
        assert wheel.read_bytes() == other.read_bytes(), wheel.name


def test_the_metadata_is_valid_and_complete(wheels: List[Path], tmp_path: Path) -> None:
    version = re.search(r'"(.*)"', (ROOT / "src/base/version.h").read_text())[1]
    assert [wheel.name.split("-")[0] for wheel in wheels] == PACKAGES
    for name, wheel in zip(PACKAGES, wheels):
        with zipfile.ZipFile(wheel) as archive:
            files = set(archive.namelist())
            data = Metadata.from_email(archive.read(f"{name}-{version}.dist-info/METADATA"))
        assert (data.name, str(data.version)) == (name, version)
        assert (data.license_expression or data.license).startswith("Apache-2.0")
        assert str(data.requires_python) == (">=3.11" if name == "elasticdl" else ">=3.8")
        assert data.summary and data.classifiers
        assert data.description.startswith(f"# {name}\n")
        licenses = {f"{name}-{version}.dist-info/licenses/{file}" for file in data.license_files}
        assert licenses and licenses <= files
        # Checks the sizes and checksums in RECORD, and that it lists every file.
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", tmp_path, wheel],
                       check=True, timeout=60)


def test_wheels_contain_no_path_of_this_machine(wheels: List[Path]) -> None:
    folders = [str(ROOT).encode(), f"{Path.home()}/".encode()]
    sources, source = set(), re.compile(rb"[\w./-]*\b(?:src|apps)/[\w/]+\.(?:cc|h)\b")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                assert not [f for f in folders if f in content], f"{wheel.name}: {name}"
                if name.endswith("/scripts/elasticdl"):
                    sources.update(source.findall(content))
    # Paths of source files in the binary are relative to the root of the tree.
    assert sources and not [s for s in sources if not s.startswith((b"src/", b"apps/"))]


def test_a_job_trains_with_the_installed_wheels(start: Callable, wheels: List[Path],
                                                tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
                    f"--target={site}", wheels[0], wheels[2]], check=True, timeout=120)
    # elasticdl_api, which tutorial 2 installs, only requires the first one.
    printed = subprocess.run(
        [sys.executable, "-c", "import elasticai_api, importlib.metadata as metadata\n"
         "print(elasticai_api.__file__, *metadata.requires('elasticdl_api'))"],
        cwd=tmp_path, env=dict(os.environ, PYTHONPATH=str(site)), check=True, text=True,
        stdout=subprocess.PIPE).stdout
    assert str(site) in printed and "elasticai_api==" in printed

    log_dir = tmp_path / "log"
    prefix = f"cd {tmp_path}; export PYTHONPATH={site}; "
    job = start("wheels", logger(log_dir, 2000, 1, prefix=prefix), "--num_workers=2")
    check_all_done(job, 2000, 1)
    assert check_seen(log_dir, set(), 2000, 1) == 0
