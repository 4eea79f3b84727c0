import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from harness import BINARY, Job  # noqa: E402
from servers import Server  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def binary() -> None:
    if not Path(BINARY).exists():
        pytest.exit(f"{BINARY} is missing; build it with: make build", returncode=2)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Starts jobs, which are stopped at the end of the test."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    jobs = []

    def start_job(name: str, command: Optional[str], *flags: str, **more) -> Job:
        jobs.append(Job(home, name, command, *flags, **more))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.close()


@pytest.fixture
def start_ps() -> Iterator[Callable[..., list]]:
    """Starts parameter servers of one job, which are killed at the end of the test."""
    started = []

    def start_servers(count: int = 1, **more) -> list:
        started.extend(Server(index, count, **more) for index in range(count))
        return started[-count:]

    yield start_servers
    for server in started:
        server.kill()


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk whose size is the parameter of the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a tiny disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", folder],
                   check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)
