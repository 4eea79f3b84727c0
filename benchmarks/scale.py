"""One master with thousands of workers: its memory, its longest round, how fast it recovers from
the loss of a tenth of the workers, and how fast all of them get the end of the data.

The workers are connections of benchmarks/scale_load.cc, which uses the API of the job: Join, Watch,
heartbeats, ReportAndLease. Each worker holds ten shards.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

from common import figure, job, wait_for

LOAD = Path(os.environ["ELASTICDL_BUILD"]) / "benchmarks" / "scale_load"
LEASES_EACH = 10
SIZES = [int(word) for word in os.environ.get("ELASTICDL_SCALE_CLIENTS", "1000 10000").split()]
RATE, RATE_S = 10_000, 5
HEARTBEATS_S = 10


class Workers:
    """A process with many workers."""

    def __init__(self, master, connections: int, first_id: int, held_shards: int) -> None:
        address = (master.folder / "master.addr").read_text().strip()
        token = (master.folder / "token").read_text().strip()
        self._process = subprocess.Popen(
            [LOAD, f"--address={address}", f"--token={token}", f"--connections={connections}",
             f"--first_id={first_id}", f"--held_shards={held_shards}"],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, command: str) -> None:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def expect(self, word: str) -> List[str]:
        line = self._process.stdout.readline().split()
        assert line and line[0] == word, f"scale_load printed {line}, expected {word}"
        return line[1:]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def quit(self) -> None:
        self.tell("quit")
        assert self._process.wait(60) == 0


def of_process(pid: int, name: str) -> float:
    """A size in /proc/PID/status, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status).group(1)) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def longest_round_ms(log: Path) -> float:
    found = re.findall(r"longest round of the loop so far took (\d+) ms", log.read_text())
    return float(found[-1]) if found else 20.0  # shorter rounds are not logged


def measure(clients: int, leases_each: int = LEASES_EACH) -> Dict[str, float]:
    lost = clients // 10
    held = clients * leases_each
    result: Dict[str, float] = {}
    with job("scale", "exec sleep 3600", "--num_workers=1") as master:
        pid = wait_for("the master", master.master_pid)
        began = time.monotonic()
        stay = Workers(master, clients - lost, 100_000, held)
        stay.expect("joined")
        go = Workers(master, lost, 500_000, held)
        go.expect("joined")
        result["join_s"] = time.monotonic() - began
        for workers, count in ((stay, clients - lost), (go, lost)):
            workers.tell(f"hold {leases_each}")
            assert workers.expect("held") == [str(count * leases_each)]
        time.sleep(1)  # then all calls are answered, and only heartbeats arrive
        before, began = cpu_s(pid), time.monotonic()
        time.sleep(HEARTBEATS_S)
        result["heartbeat_cpu_percent"] = (
            (cpu_s(pid) - before) / (time.monotonic() - began) * 100)
        stay.tell(f"rate {RATE} {RATE_S}")
        achieved, p50, p99 = map(float, stay.expect("rate"))
        result.update(leases_per_s=achieved, lease_p50_ms=p50, lease_p99_ms=p99)
        stay.tell(f"wait {lost * leases_each}")
        stay.expect("waiting")
        began = time.monotonic()
        go.kill()
        stay.expect("recovered")
        result["recovered_s"] = time.monotonic() - began
        began = time.monotonic()
        stay.tell("end")
        stay.expect("ended")
        result["end_s"] = time.monotonic() - began
        result["master_rss_mb"] = of_process(pid, "VmHWM")
        result["longest_round_ms"] = longest_round_ms(master.folder / "logs" / "master.log")
        stay.quit()
    return result


UNITS = {"master_rss_mb": "MB", "longest_round_ms": "ms", "lease_p99_ms": "ms", "recovered_s": "s",
         "end_s": "s", "heartbeat_cpu_percent": "%"}


def main() -> int:
    for clients in SIZES:
        result = measure(clients)
        print(f"{clients} clients: " + ", ".join(f"{k} {v:.4g}" for k, v in result.items()),
              flush=True)
        suffix = "" if clients == max(SIZES) else f".{clients}"
        for name, unit in UNITS.items():
            figure(f"scale.{name}{suffix}", result[name], unit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
