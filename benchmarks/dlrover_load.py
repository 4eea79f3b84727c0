"""Load generator for DLRover's local master, for benchmarks/dispatch.py. Starts a master, lets
clients fetch and report one shard per call with DLRover's own MasterClient (its API has no larger
calls), and stops it.

Runs in the environment of requirements/dlrover.txt. Prints "shards_per_s master_cpus clients_cpus".
The last two show which side was the limit, because a Python process uses hardly more than one CPU.
While this runs, the master listens on every interface without authentication, which DLRover cannot
turn off.
"""

import argparse
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

# In favour of DLRover: otherwise it would log a line for each shard, and write event files to /tmp.
# It reads these variables when it is imported.
os.environ.update(DLROVER_LOG_LEVEL="ERROR", DLROVER_EVENT_ENABLE="false",
                  DLROVER_EVENT_EVENT_EXPORTER="CONSOLE")

import psutil  # noqa: E402
from dlrover.proto import elastic_training_pb2  # noqa: E402
from dlrover.python.elastic_agent.master_client import GrpcMasterClient  # noqa: E402

# The same as in dispatch_load.cc, so both masters have the same shards.
DATASET = dict(dataset_name="bench", dataset_size=100_000_000_000, batch_size=64,
               num_minibatches_per_shard=1, num_epochs=1, storage_type="table",
               task_type=elastic_training_pb2.TRAINING)
WARM_SECONDS = 1.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for_master(master: subprocess.Popen, port: int) -> None:
    while master.poll() is None:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"dlrover_load: the master ended with {master.returncode}")


def client(port: int, number: int, begin: float, end: float, counts: list) -> None:
    master = GrpcMasterClient(f"localhost:{port}", number, "worker")
    master.report_dataset_shard_params(**DATASET)
    done = 0
    while True:
        fetched, task = master.get_task(DATASET["dataset_name"])
        assert fetched and task.shard.end - task.shard.start == DATASET["batch_size"], task
        assert master.report_task_result(DATASET["dataset_name"], task.task_id, "").success
        now = time.monotonic()
        if now >= end:
            break
        done += now >= begin
    counts.append(done)


def clients(port: int, numbers: range, begin: float, end: float, out) -> None:
    """One process with one client per thread. A client that fails reports no count."""
    counts = []
    threads = [threading.Thread(target=client, args=(port, number, begin, end, counts))
               for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(counts)


def cpu_seconds(pids: list) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def measure(port: int, master_pid: int, options: argparse.Namespace) -> None:
    # Forked, so that DLRover is imported once. No channel is open yet, because a fork would break
    # it.
    fork = multiprocessing.get_context("fork")
    begin = time.monotonic() + WARM_SECONDS
    end = begin + options.seconds
    out = fork.SimpleQueue()
    threads = options.threads
    loads = [fork.Process(target=clients, daemon=True,
                          args=(port, range(p * threads, (p + 1) * threads), begin, end, out))
             for p in range(options.processes)]
    for load in loads:
        load.start()
    sides = [[master_pid], [load.pid for load in loads]]
    time.sleep(max(0, begin - time.monotonic()))
    before = [cpu_seconds(pids) for pids in sides]
    time.sleep(max(0, end - time.monotonic() - 0.05))  # the client processes exit at `end`
    after = [cpu_seconds(pids) for pids in sides]
    counts = sum((out.get() for _ in loads), [])
    if len(counts) != options.processes * threads:
        sys.exit(f"dlrover_load: {options.processes * threads - len(counts)} clients failed")
    cpus = [(a - b) / options.seconds for a, b in zip(after, before)]
    print(sum(counts) / options.seconds, *cpus)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    # DLRover's client retries a failed call for minutes.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("dlrover_load: no end in sight, given up"))
    signal.alarm(int(options.seconds) + 30)
    port = free_port()
    master = subprocess.Popen(
        [sys.executable, "-I", "-m", "dlrover.python.master.main", "--platform=local",
         "--job_name=bench", f"--port={port}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_master(master, port)
        measure(port, master.pid, options)
    finally:
        master.kill()
        master.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
