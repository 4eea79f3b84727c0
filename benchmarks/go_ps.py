"""Measures the parameter server of the original ElasticDL, a published Go program.

benchmarks/ps.py calls `measure`, to compare it with our server in one run; `make bench-go_ps` runs
it alone. Requests are serialised before the measurement and replies are not parsed, so that little
Python code is measured. The table is initialised with zeros, in favour of the program: "uniform",
its only other initializer, takes ten times as long, and would also initialise Adagrad's
accumulators.

Before the program listens, it connects to a master, and it queries Kubernetes about that master. It
gets a gRPC server without methods, a port that refuses connections, and a service account token
that only it can read, all on the loopback interface.
"""

import argparse
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple

import grpc
import numpy as np
from common import figure, median, wait_for

TOP = Path(__file__).resolve().parents[1]
TABLE, UNIFORM_TABLE = "rows", "uniform_rows"
LEARNING_RATE = 0.1
CALL_SECONDS = 60  # the timeout of a call
CLIENT_REQUESTS = 32  # of each kind, repeated by a client; more rows than fit in a cache
UNIFORM_BATCHES = 4
# Mounts a separate /run, because the client library reads the token from a fixed path. The signal
# ends the program when the benchmark is killed.
IN_POD = """mount -t tmpfs none /run
account=/run/secrets/kubernetes.io/serviceaccount
mkdir -p $account && echo none >$account/token && exec setpriv --pdeathsig KILL "$@"
"""


class LeftOut(RuntimeError):
    """The program cannot be run here. The message says why, in one line."""


class Setting(NamedTuple):
    clients: int  # processes, with one connection each
    depth: int    # calls in flight per client

    def __str__(self) -> str:
        return f"{self.clients}x{self.depth}"


ALONE = Setting(1, 1)
SETTINGS = [ALONE, Setting(1, 2), Setting(2, 1), Setting(2, 2)]


# The messages are encoded by hand: the protobuf encoding is simple, and generated code is not
# committed.
def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def number_field(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def packed(ids: np.ndarray) -> bytes:
    """A repeated int64, as consecutive varints."""
    septets = ids.astype(np.uint64)[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    used = septets != 0
    used[:, 0] = True
    coded = (septets & 0x7f).astype(np.uint8)
    coded[:, :-1] |= used[:, 1:].astype(np.uint8) << 7
    return coded[used].tobytes()


def tensor(values: np.ndarray) -> bytes:
    """A TensorProto of float32: dtype, shape, and the bytes of the values."""
    dims = b"".join(field(2, number_field(1, size)) for size in values.shape)
    return number_field(1, 1) + field(2, dims) + field(4, values.astype("<f4").tobytes())


def table_info(table: str, dim: int, initializer: str) -> bytes:
    """A Model with the declaration of a table."""
    return field(2, field(1, table.encode()) + number_field(2, dim)
                 + field(3, initializer.encode()) + number_field(4, 1))


def pull_request(table: str, ids: np.ndarray) -> bytes:
    return field(1, table.encode()) + field(2, packed(ids))


def push_request(table: str, ids: np.ndarray, gradients: bytes) -> bytes:
    """A tensor of gradients. The server determines the learning rate."""
    slices = field(1, gradients) + field(2, packed(ids))
    return field(1, field(4, field(1, table.encode()) + field(2, slices)))


class Ps(NamedTuple):
    """A running program."""
    address: str
    pid: int

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")


def installed() -> Path:
    """The path of the program, in its own environment."""
    made = subprocess.run([TOP / "tools" / "setup", "go_ps"], text=True, stderr=subprocess.PIPE)
    if made.returncode != 0:
        raise LeftOut(f"its environment could not be installed: {last_line(made.stderr)}")
    folder = subprocess.run([TOP / "tools" / "env-path", "go_ps"], text=True, check=True,
                            stdout=subprocess.PIPE).stdout.strip()
    return next(Path(folder).glob("lib/*/site-packages/elasticdl/go/bin/elasticdl_ps"))


def last_line(output: str) -> str:
    return (output.strip().splitlines() or ["it said nothing"])[-1]


@contextmanager
def held_port() -> Iterator[int]:
    """A reserved port that refuses connections. A program that binds it with SO_REUSEADDR, as
    servers in Go do, can listen on it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def running_master() -> Iterator[int]:
    """The port of a server without methods."""
    with ThreadPoolExecutor(1) as pool:
        master = grpc.server(pool)
        port = master.add_insecure_port("127.0.0.1:0")
        master.start()
        try:
            yield port
        finally:
            master.stop(None).wait()


@contextmanager
def running_ps() -> Iterator[Ps]:
    program = installed()
    with running_master() as master, held_port() as kubernetes, held_port() as port, \
            tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            ["unshare", "--map-root-user", "--mount", "sh", "-ec", IN_POD, "sh", program,
             f"-port={port}", f"-master_addr=127.0.0.1:{master}", "-job_name=bench",
             "-namespace=bench", "-num_workers=64", "-use_async", "-opt_type=Adagrad",
             f"-opt_args=learning_rate={LEARNING_RATE};epsilon=1e-7;"],
            env={"PATH": os.environ["PATH"], "MY_POD_IP": "127.0.0.1",
                 "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                 "KUBERNETES_SERVICE_PORT": str(kubernetes)},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens() -> bool:
            if process.poll() is not None:
                log.seek(0)
                raise LeftOut(f"it ended with {process.returncode}: {last_line(log.read())}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_for("the Go ps", listens)
            yield Ps(f"127.0.0.1:{port}", process.pid)
        finally:
            process.kill()
            process.wait()


class Calls:
    """A connection to the program, and the measured calls, with serialised messages."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, [
            ("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1),
            ("grpc.enable_http_proxy", 0)])
        grpc.channel_ready_future(self._channel).result(CALL_SECONDS)
        self.describe = self._call("push_embedding_table_infos")
        self.pull = self._call("pull_embedding_vectors")
        self.push = self._call("push_gradients")

    def _call(self, name: str) -> Callable[[bytes], bytes]:
        call = self._channel.unary_unary(f"/proto.Pserver/{name}")
        return lambda request: call(request, timeout=CALL_SECONDS)

    def __enter__(self) -> "Calls":
        return self

    def __exit__(self, *_) -> None:
        self._channel.close()


class Load(NamedTuple):
    """The result of some seconds of calls."""
    rows_per_s: float
    latencies: List[float]  # of each call, in ms


def repeat(call: Callable[[bytes], bytes], requests: Iterator[bytes], rows: int,
           whole: Callable[[bytes], bool], end: float) -> Load:
    """Makes calls with this number of rows, one after the other, until `end`."""
    latencies: List[float] = []
    begin = now = time.monotonic()
    while now < end:
        reply = call(next(requests))
        then, now = now, time.monotonic()
        assert whole(reply), f"the Go ps answered {reply[:40]!r}, of {len(reply)} bytes"
        latencies.append((now - then) * 1e3)
    return Load(rows * len(latencies) / (now - begin), latencies)


def together(loads: Iterable[Load]) -> Load:
    """The sum of results that ran in parallel."""
    loads = list(loads)
    return Load(sum(load.rows_per_s for load in loads),
                [latency for load in loads for latency in load.latencies])


def reply_size(rows: int, dim: int) -> int:
    """The expected size of the reply to a pull."""
    return len(tensor(np.zeros((rows, dim))))


def accepted(reply: bytes) -> bool:
    return reply.startswith(number_field(1, 1))


def client(seed: int, address: str, dim: int, known: int, batch: int, orders) -> None:
    """A process that executes loads from a pipe, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    random = np.random.default_rng(seed)
    ids = [random.choice(known, batch, replace=False) for _ in range(CLIENT_REQUESTS)]
    gradients = tensor(np.ones((batch, dim)))
    size = reply_size(batch, dim)
    with Calls(address) as calls:
        kinds = {
            "pull": (calls.pull, cycle([pull_request(TABLE, some) for some in ids]), batch,
                     lambda reply: len(reply) == size),
            "push": (calls.push, cycle([push_request(TABLE, some, gradients) for some in ids]),
                     batch, accepted)}
        orders.send("ready")
        while True:
            try:
                kind, depth, end = orders.recv()
            except EOFError:
                return
            with ThreadPoolExecutor(depth) as pool:
                running = [pool.submit(repeat, *kinds[kind], end) for _ in range(depth)]
                orders.send(together(one.result() for one in running))


@contextmanager
def running_clients(count: int, *arguments) -> Iterator[list]:
    """Starts clients and returns their pipes. They are spawned, because a process that uses gRPC
    cannot be forked safely."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as ended:
        pipes = []
        for seed in range(count):
            pipe, orders = spawn.Pipe()
            process = spawn.Process(target=client, daemon=True, args=(seed, *arguments, orders))
            process.start()
            ended.callback(process.join)
            ended.callback(process.kill)
            ended.callback(pipe.close)
            orders.close()
            pipes.append(pipe)
        for pipe in pipes:
            answer(pipe)
        yield pipes


def answer(pipe):
    if not pipe.poll(2 * CALL_SECONDS):
        raise TimeoutError("a client of the Go ps does not answer")
    return pipe.recv()


def load(pipes: list, setting: Setting, kind: str, seconds: float) -> Load:
    end = time.monotonic() + seconds
    for pipe in pipes[:setting.clients]:
        pipe.send((kind, setting.depth, end))
    return together(answer(pipe) for pipe in pipes[:setting.clients])


def create(calls: Calls, table: str, initializer: str, dim: int, ids: np.ndarray,
           batch: int) -> float:
    """Creates these rows by pulls, with two in flight. Returns rows/s."""
    calls.describe(table_info(table, dim, initializer))
    parts = np.split(ids, range(batch, len(ids), batch))
    requests = [pull_request(table, part) for part in parts]
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        sizes = list(pool.map(lambda request: len(calls.pull(request)), requests))
    speed = len(ids) / (time.monotonic() - begin)
    assert sizes == [reply_size(len(part), dim) for part in parts], sizes
    return speed


def push_once(calls: Calls, dim: int, ids: np.ndarray, batch: int) -> None:
    """Pushes ones to all of these rows of zeros, so that they have accumulators, and pulls some to
    check the result."""
    for part in np.split(ids, range(batch, len(ids), batch)):
        gradients = tensor(np.ones((len(part), dim)))
        assert accepted(calls.push(push_request(TABLE, part, gradients)))
    reply = calls.pull(pull_request(TABLE, ids[:batch]))
    assert len(reply) == reply_size(batch, dim)
    weights = np.frombuffer(reply[-4 * dim * batch:], "<f4")
    np.testing.assert_allclose(weights, -LEARNING_RATE, rtol=1e-6)


def run_rounds(ps: Ps, dim: int, known: int, batch: int, rounds: int,
               seconds: float) -> Dict[str, Dict[Setting, List[Load]]]:
    loads: Dict[str, Dict[Setting, List[Load]]] = {
        kind: {setting: [] for setting in SETTINGS} for kind in ("pull", "push")}
    clients = max(setting.clients for setting in SETTINGS)
    with running_clients(clients, ps.address, dim, known, batch) as pipes:
        for number in range(rounds):
            print(f"Go ps, dim {dim}, round {number + 1}, M rows/s by clients x calls in flight:",
                  end="")
            for kind, of_kind in loads.items():
                print(f" {kind}", end="")
                for setting, found in of_kind.items():
                    found.append(load(pipes, setting, kind, seconds))
                    print(f" {setting} {found[-1].rows_per_s / 1e6:.2f}", end="", flush=True)
            print(flush=True)
    return loads


def measure(dim: int = 16, known: int = 4_194_304, batch: int = 53_248, rounds: int = 5,
            seconds: float = 2) -> Dict[str, float]:
    """Starts a server and measures one table with this number of rows. Rates are medians of the
    rounds with the fastest setting: `clients` and the `depth` of each (its calls in flight) for
    pulls, `push_clients` and `push_depth` for pushes. Percentiles are those of all calls with that
    setting; those of `alone` have one call in flight. Raises LeftOut if the server cannot be
    run."""
    assert known >= batch
    ids = np.random.default_rng(0).permutation(known)
    with running_ps() as ps, Calls(ps.address) as calls:
        empty = ps.resident_bytes()
        created = create(calls, TABLE, "zeros", dim, ids, batch)
        push_once(calls, dim, ids, batch)
        measured = {"create_rows_per_s": created,
                    "bytes_per_row": (ps.resident_bytes() - empty) / known}
        loads = run_rounds(ps, dim, known, batch, rounds, seconds)
        measured["create_uniform_rows_per_s"] = create(
            calls, UNIFORM_TABLE, "uniform", dim, ids[:UNIFORM_BATCHES * batch], batch)
    for kind, prefix in (("pull", ""), ("push", "push_")):
        medians = {setting: median([one.rows_per_s for one in found])
                   for setting, found in loads[kind].items()}
        best = max(SETTINGS, key=lambda setting: medians[setting])
        measured[f"{kind}_rows_per_s"] = medians[best]
        measured[f"{prefix}clients"], measured[f"{prefix}depth"] = best
        for name, setting in ((kind, best), (f"{kind}_alone", ALONE)):
            latencies = together(loads[kind][setting]).latencies
            for percent in (50, 99):
                measured[f"{name}_p{percent}_ms"] = float(np.percentile(latencies, percent))
    return measured


def show_figures(measured: Dict[str, float], dim: int) -> None:
    print(f"Go ps, dim {dim}, clients x calls in flight at the best: "
          f"pull {measured['clients']}x{measured['depth']} "
          f"push {measured['push_clients']}x{measured['push_depth']}")
    for kind in ("pull", "push", "create", "create_uniform"):
        figure(f"ps.go.{kind}_rows_per_s.dim{dim}", measured[f"{kind}_rows_per_s"], "rows/s")
    for kind in ("pull", "pull_alone", "push", "push_alone"):
        for percent in (50, 99):
            name = f"{kind}_p{percent}_ms"
            figure(f"ps.go.{name}.dim{dim}", measured[name], "ms")
    figure(f"ps.go.bytes_per_row.dim{dim}.adagrad", measured["bytes_per_row"], "bytes")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--known", type=int, default=4_194_304)
    parser.add_argument("--batch", type=int, default=53_248)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    try:
        measured = measure(**vars(options))
    except LeftOut as why:
        print(f"go_ps: left out, {why}", flush=True)
        return 1
    show_figures(measured, options.dim)
    return 0


if __name__ == "__main__":
    sys.exit(main())
