"""Common code of the benchmarks: jobs to measure, and the printing of figures."""

import statistics
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, NamedTuple

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS)]

from harness import Job  # noqa: E402
from waiting import wait_for  # noqa: E402


class LeaseEntry(NamedTuple):
    moment: float  # seconds since 1970
    event: str     # started, leased or done
    replica: str   # the id of the replica
    ordinal: int   # of the shard


def figure(name: str, value: float, unit: str) -> None:
    print(f"figure {name} {value:.6g} {unit}", flush=True)


def median(values: List[float]) -> float:
    return statistics.median(values)


def show(name: str, times: List[float]) -> None:
    print(f"{name}: " + " ".join(f"{t:.0f}" for t in sorted(times)), "ms", flush=True)


def entries(log_dir: Path) -> List[LeaseEntry]:
    """All lines that lease_logger.py wrote, ordered by time."""
    found = []
    for path in log_dir.glob("*.log"):
        for line in path.read_text().splitlines():
            moment, event, replica, ordinal = line.split()
            found.append(LeaseEntry(float(moment), event, replica, int(ordinal)))
    return sorted(found)


@contextmanager
def job(name: str, command: str, *flags: str, **more) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        running = Job(home, name, command, *flags, **more)
        try:
            wait_for("the job", lambda: running.running("worker"))
            yield running
        finally:
            running.close()
