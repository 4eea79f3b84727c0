"""Compares our parameter server with that of the original: rows per second over TCP and shared
memory.

Servers are `elasticdl ps` processes with two lanes, clients are benchmarks/ps_load.cc: batches of
53,248 unique ids, deduplicated and routed before the measurement, with several in flight. Adagrad.
Client and server share the cores. Named figures are medians of rounds. `make bench-ps ARGS=--grid`
runs one round of each other combination.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

import go_ps
from common import figure, median

BUILD = Path(os.environ["ELASTICDL_BUILD"])
ELASTICDL = os.environ["ELASTICDL_BIN"]
LOAD = BUILD / "benchmarks" / "ps_load"
TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_THP_DISABLE = 41
KNOWN = 4_194_304
BATCH = 53_248
DEPTH = 3
GIB = 1 << 30
ROW_BYTES = 144  # in a part, dimension 16 with Adagrad


class Server(NamedTuple):
    port: int
    pid: int

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+) kB", status).group(1)) * 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def small_pages() -> None:
    """Runs in the process of a server before exec."""
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


@contextmanager
def servers(count: int = 1, lanes: int = 2, huge: bool = True) -> Iterator[List[Server]]:
    with ExitStack() as stack:
        started = []
        for index in range(count):
            process = stack.enter_context(subprocess.Popen(
                [ELASTICDL, "ps", f"--lanes={lanes}", f"--index={index}", f"--servers={count}",
                 f"--checkpoint_root={BUILD}"],
                stdout=subprocess.PIPE, text=True, preexec_fn=None if huge else small_pages))
            stack.callback(process.terminate)
            line = process.stdout.readline()
            started.append(Server(int(re.search(r"port (\d+)", line).group(1)), process.pid))
        yield started


def start_load(running: List[Server], **flags) -> subprocess.Popen:
    ports = ",".join(str(server.port) for server in running)
    command = [str(LOAD), f"--ports={ports}"] + [f"--{name}={value}"
                                                for name, value in flags.items()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(process: subprocess.Popen) -> Dict[str, float]:
    output, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(process.args)} failed")
    return json.loads(output)


def load(running: List[Server], clients: int = 1, **flags) -> Dict[str, float]:
    """The sum of the clients. Latencies are those of the slower client."""
    before = sum(server.cpu_seconds() for server in running)
    flags.setdefault("depth", DEPTH)
    flags.setdefault("batch", BATCH)
    processes = [start_load(running, seed=seed + 1, **flags) for seed in range(clients)]
    results = [result_of(process) for process in processes]
    rows = sum(result["rows"] for result in results)
    cpu = (sum(server.cpu_seconds() for server in running) - before
           + sum(result["client_cpu_s"] for result in results))
    return {"rows_per_s": sum(result["rows_per_s"] for result in results),
            "p50_ms": max(result["p50_ms"] for result in results),
            "p99_ms": max(result["p99_ms"] for result in results),
            "cpu_s_per_million": cpu / rows * 1e6}


def create(running: List[Server], dim: int = 16, known: int = KNOWN, first: int = 0):
    return load(running, what="create", dim=dim, known=known, first=first)


def show(name: str, measured: Dict[str, float]) -> None:
    print(f"{name:44} {measured['rows_per_s'] / 1e6:7.2f} M rows/s  p50 {measured['p50_ms']:6.2f}"
          f"  p99 {measured['p99_ms']:6.2f} ms  {measured['cpu_s_per_million']:.3f} CPU s/M rows",
          flush=True)


def rounds(count: int, running: List[Server], **flags) -> Dict[str, float]:
    measured = [load(running, **flags) for _ in range(count)]
    return {key: median([each[key] for each in measured]) for key in measured[0]}


def named(count: int) -> None:
    """The named figures."""
    creates, bytes_per_row = [], 0.0
    for _ in range(max(count // 2, 1)):
        with servers() as fresh:
            creates.append(create(fresh)["rows_per_s"])
    with servers() as running:
        empty = running[0].resident_bytes()
        creates.append(create(running)["rows_per_s"])
        print(f"depth {DEPTH}, batch {BATCH}, {KNOWN} rows, 1 server with 2 lanes, 1 client")
        for transport in ("tcp", "shm"):
            for what in ("pull", "push"):
                measured = rounds(count, running, what=what, transport=transport)
                show(f"{transport} {what} dim 16 uniform", measured)
                figure(f"ps.{transport}.{what}_rows_per_s.dim16", measured["rows_per_s"], "rows/s")
                figure(f"ps.{transport}.{what}_p99_ms.dim16", measured["p99_ms"], "ms")
        bytes_per_row = (running[0].resident_bytes() - empty) / KNOWN
    figure("ps.create_rows_per_s.dim16", median(creates), "rows/s")
    figure("ps.bytes_per_row.dim16.adagrad", bytes_per_row, "bytes")
    with servers(huge=False) as running:
        create(running)
        for what in ("pull", "push"):
            measured = rounds(count, running, what=what, transport="tcp")
            show(f"tcp {what} dim 16 uniform, small pages", measured)
            figure(f"ps.tcp.{what}_rows_per_s.dim16.small_pages", measured["rows_per_s"],
                   "rows/s")


def grid() -> None:
    for dim in (8, 16, 64):
        for count in (1, 2):
            with servers(count=count) as running:
                create(running, dim=dim)
                for transport in ("tcp", "shm"):
                    for ids in ("uniform", "zipf"):
                        for clients in (1, 2):
                            for what in ("pull", "push"):
                                measured = load(running, clients=clients, what=what, dim=dim,
                                                ids=ids, transport=transport, millis=1000)
                                show(f"{transport} {what} dim {dim} {ids}, {count} servers, "
                                     f"{clients} clients", measured)


def growth(count: int) -> None:
    with servers() as running:
        create(running)
        small = rounds(count, running, what="pull")
        create(running, known=40_000_000, first=KNOWN)
        large = rounds(count, running, what="pull", known=40_000_000)
    show("tcp pull at 4 M rows", small)
    show("tcp pull at 40 M rows", large)
    figure("ps.growth.ratio", large["rows_per_s"] / small["rows_per_s"], "")


def disk_speed(folder: Path, size: int) -> float:
    """Bytes per second that one writer writes durably."""
    block = os.urandom(1 << 20)
    begin = time.monotonic()
    with open(folder / "speed", "wb", buffering=0) as file:
        for _ in range(size >> 20):
            file.write(block)
        os.fsync(file.fileno())
    took = time.monotonic() - begin
    (folder / "speed").unlink()
    return size / took


class DuringSave(NamedTuple):
    pause_ms: float
    pull_ratio: float  # of p99
    push_ratio: float
    disk_ratio: float
    rate_ratio: float  # of pulls, after the save divided by before


def during_save(running: List[Server], folder: Path, size: int, name: str) -> DuringSave:
    """Measures a save under load, and the same load before and after it."""
    known = size // ROW_BYTES
    speed = median([disk_speed(folder, size) for _ in range(3)])

    def both(millis: int, save: Optional[Path] = None):
        loads = [start_load(running, what=what, known=known, depth=1, batch=BATCH, millis=millis)
                 for what in ("pull", "push")]
        saved = None
        if save is not None:
            saved = result_of(start_load(running, what="save", folder=save))
        return [result_of(process) for process in loads], saved

    before, _ = both(4000)
    # Longer than the shortest save, so the measurement includes some time without a save.
    meanwhile, saved = both(int(size / speed * 1000 * 1.2), folder / name)
    after, _ = both(4000)
    print(f"{name}: {saved['bytes'] / GIB:.2f} GiB in {saved['seconds']:.2f} s, disk "
          f"{speed / 1e6:.0f} MB/s; p99 ms of pulls {before[0]['p99_ms']:.1f}, while saving "
          f"{meanwhile[0]['p99_ms']:.1f}, after {after[0]['p99_ms']:.1f}; of pushes "
          f"{before[1]['p99_ms']:.1f}, {meanwhile[1]['p99_ms']:.1f}, {after[1]['p99_ms']:.1f}",
          flush=True)
    return DuringSave(saved["longest_pause_ms"],
                      meanwhile[0]["p99_ms"] / before[0]["p99_ms"],
                      meanwhile[1]["p99_ms"] / before[1]["p99_ms"],
                      saved["bytes"] / saved["seconds"] / speed,
                      after[0]["rows_per_s"] / before[0]["rows_per_s"])


def saves(folder: Path) -> None:
    for gib in (1, 4):
        with servers() as running:
            create(running, known=gib * GIB // ROW_BYTES)
            measured = during_save(running, folder, gib * GIB, f"save-{gib}")
        figure(f"ps.save.max_pause_ms.{gib}GiB", measured.pause_ms, "ms")
        figure(f"ps.save.pull_p99_ratio.{gib}GiB", measured.pull_ratio, "")
        figure(f"ps.save.push_p99_ratio.{gib}GiB", measured.push_ratio, "")
        figure(f"ps.save.disk_ratio.{gib}GiB", measured.disk_ratio, "")
        figure(f"ps.save.rate_after_ratio.{gib}GiB", measured.rate_ratio, "")
        if gib == 1:
            times = []
            for _ in range(3):
                with servers(count=2) as others:
                    times.append(result_of(start_load(others, what="restore",
                                                      folder=folder / "save-1"))["seconds"])
            figure("ps.restore_s.1GiB", median(times), "s")
        shutil.rmtree(folder / f"save-{gib}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--grid", action="store_true", help="all combinations, one round each")
    parser.add_argument("--only", choices=["named", "growth", "saves", "go"])
    given = parser.parse_args()
    parts = [given.only] if given.only else ["named", "go", "growth", "saves"]
    if "named" in parts:
        named(given.rounds)
    if "go" in parts:
        try:
            go_ps.show_figures(go_ps.measure(rounds=given.rounds), 16)
        except go_ps.LeftOut as error:
            print(f"the original's server is left out: {error}", flush=True)
    if given.grid:
        grid()
    if "growth" in parts:
        growth(given.rounds)
    if "saves" in parts:
        with tempfile.TemporaryDirectory(prefix="elasticdl-bench-", dir=BUILD) as folder:
            saves(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
