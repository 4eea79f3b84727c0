"""How long a shard is nobody's: after a worker's SIGKILL, after the master's."""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from common import figure, job, median, wait_for
from harness import PROGRAMS

ROUNDS = 12


def entries(log_dir: Path) -> list:
    """(time, event, replica, lease) of all that lease_logger.py wrote, in order of time."""
    found = []
    for path in log_dir.glob("*.log"):
        for line in path.read_text().splitlines():
            moment, event, replica, ordinal = line.split()
            found.append((float(moment), event, replica, int(ordinal)))
    return sorted(found)


def command(log_dir: Path, hold_ms: int, size: int) -> str:
    return (f"exec python {PROGRAMS}/lease_logger.py --log-dir={log_dir} --hold-ms={hold_ms} "
            f"--size={size}")


def worker_killed(hold_ms: int, size: int, workers: int) -> list:
    """Milliseconds from a worker's death to its shard being held by another."""
    times = []
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        log_dir = Path(folder)
        with job("recovery", command(log_dir, hold_ms, size), f"--num_workers={workers}") as run:
            for _ in range(ROUNDS):
                holders = wait_for("a holder", lambda: [
                    r for r in run.running("worker") if r["leases"] > 0] if len(
                        run.running("worker")) == workers and len(
                            {e[2] for e in entries(log_dir)}) >= workers else None)
                victim = random.choice(holders)
                name = victim["name"].rsplit("-", 1)[1]
                held = [e[3] for e in entries(log_dir) if e[2] == name and e[1] == "leased"]
                if not held:
                    continue
                before = time.time()
                os.kill(victim["pid"], signal.SIGKILL)
                again = wait_for("the shard elsewhere", lambda: [
                    e for e in entries(log_dir)
                    if e[0] > before and e[1] == "leased" and e[3] == held[-1]])
                times.append((again[0][0] - before) * 1e3)
    return times


def master_killed() -> list:
    """Milliseconds from the master's death to the next lease that a worker gets."""
    times = []
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        log_dir = Path(folder)
        with job("recovery", command(log_dir, 5, 1_000_000), "--num_workers=2") as run:
            wait_for("leases", lambda: len(entries(log_dir)) > 20)
            for _ in range(ROUNDS):
                pid = wait_for("the master", run.master_pid)
                before = time.time()
                os.kill(pid, signal.SIGKILL)
                after = wait_for("a lease from the next master", lambda: [
                    e for e in entries(log_dir) if e[1] == "leased" and e[0] > before + 0.02])
                times.append((after[0][0] - before) * 1e3)
                count = len(entries(log_dir))
                wait_for("some more", lambda c=count: len(entries(log_dir)) > c + 10)
    return times


def show(name: str, times: list) -> None:
    print(f"{name}: " + " ".join(f"{t:.0f}" for t in sorted(times)), "ms", flush=True)


def main() -> int:
    # Two shards, three workers: one of them waits for whatever comes back.
    idle = worker_killed(hold_ms=600_000, size=2, workers=3)
    show("worker killed, another idle", idle)
    busy = worker_killed(hold_ms=200, size=100_000, workers=3)
    show("worker killed, all busy", busy)
    master = master_killed()
    show("master killed", master)
    figure("recovery.worker_idle_ms.median", median(idle), "ms")
    figure("recovery.worker_idle_ms.worst", max(idle), "ms")
    figure("recovery.worker_busy_ms.median", median(busy), "ms")
    figure("recovery.master_ms.median", median(master), "ms")
    figure("recovery.master_ms.worst", max(master), "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
