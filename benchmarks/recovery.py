"""How long no worker holds a shard after the SIGKILL of a worker or of the master."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from common import entries, figure, job, median, show, wait_for
from harness import PROGRAMS

ROUNDS = 12
# The agent restarts a master without delay only three times within seconds, so each job has at most
# three kills.
MASTER_JOBS, MASTER_KILLS = 4, 3


def command(log_dir: Path, hold_ms: int, size: int) -> str:
    return (f"exec python {PROGRAMS}/lease_logger.py --log-dir={log_dir} --hold-ms={hold_ms} "
            f"--size={size}")


def kill_a_holder(run, log_dir: Path) -> float:
    """Milliseconds from the kill of a worker until another worker holds its shard."""
    def holder():
        for replica in run.running("worker"):
            name = replica["name"].rsplit("-", 1)[1]
            mine = [e for e in entries(log_dir) if e[2] == name]
            if mine and mine[-1][1] == "leased" and replica["leases"] > 0:
                return replica["pid"], mine[-1][3]
        return None

    pid, ordinal = wait_for("a worker with a shard", holder)
    before = time.time()
    os.kill(pid, signal.SIGKILL)
    again = wait_for("the shard elsewhere", lambda: [
        e for e in entries(log_dir) if e[0] > before and e[1] == "leased" and e[3] == ordinal])
    return (again[0][0] - before) * 1e3


def worker_killed_beside_an_idle_one() -> list:
    """One job per round, with three workers: two hold a shard for ever, and one waits."""
    times = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
            log_dir = Path(folder)
            with job("recovery", command(log_dir, 600_000, 2), "--num_workers=3") as run:
                # A second after its start, the third worker has requested a shard and waits.
                wait_for("two leases and an idle worker", lambda d=log_dir: sorted(
                    e[1] for e in entries(d)) == ["leased"] * 2 + ["started"] * 3
                    and time.time() > entries(d)[-1][0] + 1)
                times.append(kill_a_holder(run, log_dir))
    return times


def worker_killed_beside_busy_ones() -> list:
    times = []
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        log_dir = Path(folder)
        with job("recovery", command(log_dir, 200, 100_000), "--num_workers=3") as run:
            for number in range(ROUNDS):
                wait_for("all three to work", lambda n=number: len(run.running("worker")) == 3
                         and len({e[2] for e in entries(log_dir) if e[1] == "done"}) >= 3 + n)
                times.append(kill_a_holder(run, log_dir))
    return times


def master_killed() -> list:
    """Milliseconds from the kill of the master to the next lease of a worker."""
    times = []
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        log_dir = Path(folder)
        with job("recovery", command(log_dir, 5, 1_000_000), "--num_workers=2") as run:
            wait_for("leases", lambda: len(entries(log_dir)) > 20)
            for _ in range(MASTER_KILLS):
                pid = wait_for("the master", run.master_pid)
                before = time.time()
                os.kill(pid, signal.SIGKILL)
                after = wait_for("a lease from the next master", lambda: [
                    e for e in entries(log_dir) if e[1] == "leased" and e[0] > before + 0.02])
                times.append((after[0][0] - before) * 1e3)
                count = len(entries(log_dir))
                wait_for("some more", lambda c=count: len(entries(log_dir)) > c + 10)
    return times


def main() -> int:
    idle = worker_killed_beside_an_idle_one()
    show("worker killed, another idle", idle)
    busy = worker_killed_beside_busy_ones()
    show("worker killed, all busy", busy)
    master = [ms for _ in range(MASTER_JOBS) for ms in master_killed()]
    show("master killed", master)
    figure("recovery.worker_idle_ms.median", median(idle), "ms")
    figure("recovery.worker_idle_ms.worst", max(idle), "ms")
    figure("recovery.worker_busy_ms.median", median(busy), "ms")
    figure("recovery.master_ms.median", median(master), "ms")
    figure("recovery.master_ms.worst", max(master), "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
