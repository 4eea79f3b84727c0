"""Our wheels in a bare Debian with Python, without compiler and network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest
from bare_system import ROOT, BareSystem, download

# Newer than TensorFlow allows: the versions that a user without TensorFlow gets.
CONSTRAINTS = ROOT / "requirements" / "published.txt"
# Libraries of the machine. A wheel never contains them.
GLIBC = {"libc.so.6", "libm.so.6", "libresolv.so.2"}
SYSTEMS = {"bookworm": "3.11", "trixie": "3.13"}
NIGHTLY = pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="nightly only")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> List[Path]:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "tools" / "wheels", folder], check=True, timeout=180,
                   env=dict(os.environ, PYTHON=sys.executable))
    return sorted(folder.iterdir())


@pytest.fixture(scope="module",
                params=["bookworm", pytest.param("trixie", marks=NIGHTLY)])
def system(request, wheels) -> Iterator[BareSystem]:
    """Our wheels, installed with pip into an environment in /root/env."""
    system = BareSystem(request.param, ["python3", "python3-venv"])
    try:
        system.put(*wheels, ROOT / "tests" / "e2e" / "programs" / "record_logger.py",
                   *download(SYSTEMS[request.param], CONSTRAINTS, "grpcio", "protobuf"),
                   *download(SYSTEMS[request.param], CONSTRAINTS, "numpy"))
        # The packages of this system must not contain libraries that our binary needs.
        assert "no packages found" in system.run("dpkg-query -W 'libgrpc*' 'libcurl*'", check=False)
        system.run("python3 -m venv env")
        system.run("pip install --no-index --find-links=. elasticai_api elasticdl elasticdl_api "
                   "elasticdl_client elasticdl_preprocessing", seconds=120)
        yield system
    finally:
        system.close()


def test_the_command_tells_its_version_and_its_flags(system: BareSystem) -> None:
    version = re.search(r'"(.*)"', (ROOT / "src/base/version.h").read_text())[1]

    assert system.run("elasticdl version") == f"elasticdl {version}\n"
    assert "--job_command" in system.run("elasticdl help train")


def test_the_packages_import_and_agree_with_each_other(system: BareSystem) -> None:
    said = system.run("python -c 'import elasticai_api; print(elasticai_api.__file__)'")

    assert said.startswith("/root/env/lib/")
    assert system.run("pip check") == "No broken requirements found.\n"


def test_every_library_but_glibcs_comes_from_the_wheel(system: BareSystem) -> None:
    from_wheel = 0
    for line in system.run("ldd env/bin/elasticdl").splitlines():
        name, _, path = line.strip().partition(" => ")
        if name in GLIBC or name.startswith(("linux-vdso", "/lib64/ld-linux")):
            continue
        assert path.startswith("/root/env/bin/../lib/elasticdl/"), line
        from_wheel += 1
    assert from_wheel == int(system.run("ls env/lib/elasticdl | wc -l"))


def test_the_compiled_module_reads_a_generated_dataset(system: BareSystem) -> None:
    for dataset in ("iris", "criteo", "mnist"):  # the first two use files of the model zoo
        system.run(f"ELASTICDL_PYTHON=env/bin/python elasticdl data gen {dataset} data/{dataset} "
                   "--fraction=0.01", seconds=60)
    said = system.run("python -c 'import elasticdl; from elasticdl.native_module import _native; "
                      'print(_native.__file__); r = elasticdl.open_records("data/mnist/train"); '
                      "print(len(r), len(r.read(0, 600)))'")
    module, counts = said.splitlines()
    assert module.startswith("/root/env/lib/")
    assert counts == "600 600"


def test_a_job_trains_to_its_end(system: BareSystem) -> None:
    told = system.run(
        "elasticdl train --backend=local --job_name=bare --num_workers=2 --job_command="
        "'exec python record_logger.py --size=2000 --batch=50 --log-dir=/root/log'")

    assert "Job bare succeeded" in told
    view = json.loads(system.run("elasticdl status bare --output=json"))
    assert view["state"] == "succeeded"
    assert view["datasets"][0]["records_done"] == 2000
    # Each record once, because no process died.
    assert system.run("cat log/*.log | awk '{print $4}' | sort -u | wc -l") == "2000\n"
    assert system.run("cat log/*.log | wc -l") == "2000\n"
