"""Shards leased and reported a second, durable, by a real master process.

Beside it, from the same run, where it can be installed: DLRover's local master over its own client
(one report and one fetch a shard, nothing durable).
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import figure, job, median, wait_for

LOAD = Path(os.environ["ELASTICDL_BUILD"]) / "benchmarks" / "dispatch_load"
ROUNDS = 5


def load(master, **options) -> list:
    address = (master.folder / "master.addr").read_text().strip()
    token = (master.folder / "token").read_text().strip()
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run([LOAD, f"--address={address}", f"--token={token}", *arguments],
                          text=True, stdout=subprocess.PIPE, check=True, timeout=120)
    return [float(word) for word in done.stdout.split()]


def fsync_p99_ms(folder: Path) -> float:
    """What this disk takes for what one commit does: append a page to a log and fsync it."""
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(2000):
            os.write(file.fileno(), b"x" * 4096)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[int(len(times) * 0.99)]


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024


def main() -> int:
    with job("dispatch", "exec sleep 3600", "--num_workers=1") as master:
        load(master, connections=64, shards=4, seconds=1)  # warm
        closed, single, open_loop, disk = [], [], [], []
        for number in range(ROUNDS):
            closed.append(load(master, connections=64, shards=4, seconds=3))
            single.append(load(master, connections=1, shards=1, seconds=2))
            disk.append(fsync_p99_ms(master.home))
            open_loop.append(load(master, connections=64, shards=4, seconds=3, rate=20000))
            print(f"round {number + 1}: 64 connections {closed[-1][0]:.0f} shards/s, one "
                  f"connection {single[-1][0]:.0f}, at 20,000/s p50 {open_loop[-1][1]:.2f} ms p99 "
                  f"{open_loop[-1][2]:.2f} ms, fsync p99 {disk[-1]:.2f} ms", flush=True)
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
    figure("dispatch.master_mb.1e11", memory, "MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
