"""Shards that a real master process leases and reports per second, durably.

If DLRover can be installed, its local master is measured in the same run, with its own client (one
report and one fetch per shard, not durable).
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Optional

from common import figure, job, median, wait_for

LOAD = Path(os.environ["ELASTICDL_BUILD"]) / "benchmarks" / "dispatch_load"
TOP = Path(__file__).resolve().parents[1]
ROUNDS = 5


class Dlrover:
    """DLRover's local master with its own clients, in its own environment. If it cannot be
    measured, one line says why, and the other figures are printed without it."""

    def __init__(self) -> None:
        self.shards_per_s: List[float] = []
        self._python: Optional[str] = None
        made = subprocess.run([TOP / "tools" / "setup", "dlrover"], text=True,
                              stderr=subprocess.PIPE)
        if made.returncode != 0:
            self._leave_out("its environment could not be installed", made.stderr)
            return
        folder = subprocess.run([TOP / "tools" / "env-path", "dlrover"], text=True, check=True,
                                stdout=subprocess.PIPE).stdout.strip()
        self._python = f"{folder}/bin/python"

    def measure(self) -> str:
        """Measures it once. Returns the text for the line of the round."""
        if self._python is None:
            return "DLRover left out"
        done = subprocess.run([self._python, "-I", TOP / "benchmarks" / "dlrover_load.py"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            self._leave_out("its load failed", done.stderr)
            return "DLRover left out"
        shards_per_s, master, clients = map(float, done.stdout.split())
        self.shards_per_s.append(shards_per_s)
        return (f"DLRover {shards_per_s:.0f} shards/s (its master took {master:.2f} CPUs, its "
                f"clients {clients:.2f})")

    def _leave_out(self, why: str, output: str) -> None:
        self._python = None
        self.shards_per_s.clear()
        last = (output.strip().splitlines() or ["it said nothing"])[-1]
        print(f"dispatch: DLRover is left out, {why}: {last}", flush=True)


def load(master, **options) -> list:
    address = (master.folder / "master.addr").read_text().strip()
    token = (master.folder / "token").read_text().strip()
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run([LOAD, f"--address={address}", f"--token={token}", *arguments],
                          text=True, stdout=subprocess.PIPE, check=True, timeout=120)
    return [float(word) for word in done.stdout.split()]


def fsync_p99_ms(folder: Path) -> float:
    """The time of the disk part of a commit: append a page to a log and fsync it."""
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(2000):
            os.write(file.fileno(), b"x" * 4096)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[int(len(times) * 0.99)]


def fsync_open_loop_p99_ms(folder: Path, calls_per_s: int = 5000, seconds: float = 3) -> float:
    """The same load on the disk alone: calls start at fixed times, and each ends with the first
    write of a few pages and fsync that begins after its start. This is a lower bound for a durable
    answer. A stall of the disk, or of the machine, delays all calls that start meanwhile."""
    block, blocks = b"x" * 6144, 1000
    latencies: List[float] = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(block * blocks)
        os.fsync(file.fileno())
        begin = time.perf_counter()
        count = int(calls_per_s * seconds)
        written = 0
        while len(latencies) < count:
            due = min(count, int((time.perf_counter() - begin) * calls_per_s))
            if due == len(latencies):
                continue
            os.pwrite(file.fileno(), block, written % blocks * len(block))
            os.fdatasync(file.fileno())
            written += 1
            now = time.perf_counter() - begin
            latencies += [(now - call / calls_per_s) * 1e3 for call in range(len(latencies), due)]
    return sorted(latencies)[int(count * 0.99)]


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024


def cpu_ticks() -> List[int]:
    """The times of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal."""
    return [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]


def main() -> int:
    dlrover = Dlrover()
    begin = cpu_ticks()
    with job("dispatch", "exec sleep 3600", "--num_workers=1") as master:
        # Warm-up, until the ledger's log is overwritten and no longer grows.
        load(master, connections=64, shards=4, seconds=3)
        closed, single, open_loop, disk, floor = [], [], [], [], []
        for number in range(ROUNDS):
            closed.append(load(master, connections=64, shards=4, seconds=3))
            single.append(load(master, connections=1, shards=1, seconds=2))
            disk.append(fsync_p99_ms(master.home))
            open_loop.append(load(master, connections=64, shards=4, seconds=3, rate=20000))
            floor.append(fsync_open_loop_p99_ms(master.home))
            peer = dlrover.measure()
            print(f"round {number + 1}: 64 connections {closed[-1][0]:.0f} shards/s, one "
                  f"connection {single[-1][0]:.0f}, at 20,000/s p50 {open_loop[-1][1]:.2f} ms p99 "
                  f"{open_loop[-1][2]:.2f} ms, fsync p99 {disk[-1]:.2f} ms (under "
                  f"that load alone {floor[-1]:.2f}), {peer}", flush=True)
    with job("memory", "exec sleep 3600", "--num_workers=1") as master:
        address = (master.folder / "master.addr").read_text().strip()
        token = (master.folder / "token").read_text().strip()
        holder = subprocess.Popen(
            [LOAD, f"--address={address}", f"--token={token}", "--connections=1",
             "--shards=1000", "--hold=1"], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        leases = int(holder.stdout.readline().split()[0])
        assert leases == 1000
        memory = resident_mb(wait_for("the master", master.master_pid))
        holder.communicate("\n")
    figure("dispatch.shards_per_s.64", median([c[0] for c in closed]), "shards/s")
    figure("dispatch.shards_per_s.1x1", median([s[0] for s in single]), "shards/s")
    figure("dispatch.p50_ms.open_loop", median([o[1] for o in open_loop]), "ms")
    figure("dispatch.p99_ms.open_loop", median([o[2] for o in open_loop]), "ms")
    figure("dispatch.fsync_p99_ms", median(disk), "ms")
    figure("dispatch.fsync_p99_ms.open_loop", median(floor), "ms")
    figure("dispatch.master_mb.1e11", memory, "MB")
    if dlrover.shards_per_s:
        figure("dispatch.dlrover_shards_per_s", median(dlrover.shards_per_s), "shards/s")
    ticks = [after - before for before, after in zip(begin, cpu_ticks())]
    # CPU time that the hypervisor gave to others. If it is high, the figures above are unreliable.
    figure("dispatch.steal_percent", 100 * ticks[7] / sum(ticks), "%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
