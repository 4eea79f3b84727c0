"""What users install with pip: the wheels by themselves, without the tree."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

from harness import ROOT
from test_kills import check_all_done, check_seen, logger


def test_a_job_trains_with_the_installed_wheels(start: Callable, tmp_path: Path) -> None:
    wheels, site = tmp_path / "dist", tmp_path / "site"
    subprocess.run([ROOT / "tools" / "wheels", wheels], check=True, timeout=120,
                   env=dict(os.environ, PYTHON=sys.executable))
    built = sorted(wheels.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in built] == ["elasticai_api", "elasticdl_api"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
                    f"--target={site}", *built], check=True, timeout=120)
    # The second wheel only names the first one, as tutorial 2 installs it.
    told = subprocess.run(
        [sys.executable, "-c", "import elasticai_api, importlib.metadata as metadata\n"
         "print(elasticai_api.__file__, *metadata.requires('elasticdl_api'))"],
        cwd=tmp_path, env=dict(os.environ, PYTHONPATH=str(site)), check=True, text=True,
        stdout=subprocess.PIPE).stdout
    assert str(site) in told and "elasticai_api==" in told

    log_dir = tmp_path / "log"
    prefix = f"cd {tmp_path}; export PYTHONPATH={site}; "
    job = start("wheels", logger(log_dir, 2000, 1, prefix=prefix), "--num_workers=2")
    check_all_done(job, 2000, 1)
    assert check_seen(log_dir, set(), 2000, 1) == 0
