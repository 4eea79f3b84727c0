"""`elasticdl ps` with unauthorised callers, exhausted limits and large declarations."""

import contextlib
import re
import resource
import signal
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest
from harness import BINARY

from elasticdl import ParameterClient, ParameterError

MIB = 1 << 20


@contextlib.contextmanager
def running(*flags, log, open_files=None):
    """A server that logs to a file, and its port."""
    def limit():
        if open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    with open(log, "wb") as file, subprocess.Popen(
            [BINARY, "ps", "--port=0", "--lanes=2", *flags], stdout=subprocess.PIPE, stderr=file,
            stdin=subprocess.DEVNULL, text=True, preexec_fn=limit) as process:
        try:
            line = process.stdout.readline()
            yield process, int(re.search(r"listening on port (\d+)", line)[1])
        finally:
            process.kill()


def test_it_waits_for_descriptors_without_filling_its_log(tmp_path):
    log = tmp_path / "log"
    with running(log=log, open_files=64) as (process, port), contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        deadline = time.monotonic() + 30
        while b"Too many open files" not in log.read_bytes():
            assert time.monotonic() < deadline, log.read_bytes()
            time.sleep(0.05)
        before = process_seconds(process.pid)
        time.sleep(1.5)  # the interval in which its CPU time and its log are measured
        assert process_seconds(process.pid) - before < 0.5
        assert log.stat().st_size < 8192
        stack.close()
        with ParameterClient(f"127.0.0.1:{port}", transport="tcp") as client:
            client.declare(tables=[{"name": "t", "dim": 2}])
            assert client.pull("t", np.arange(3)).shape == (3, 2)


def process_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_rejected_callers_do_not_fill_the_log(tmp_path):
    log, token = tmp_path / "log", tmp_path / "token"
    token.write_text("secret")
    with running(f"--token_file={token}", log=log) as (_, port):
        for _ in range(20):
            with pytest.raises(PermissionError):
                ParameterClient(f"127.0.0.1:{port}", token="wrong", transport="tcp")
        assert len(log.read_bytes().splitlines()) <= 10


def test_health_is_served_beside_requests_that_never_end(start_ps):
    server, = start_ps(flags=["--http_port=0"])
    port = int(re.search(r"metrics on port (\d+)", server.process.stdout.readline())[1])
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=4) as response:
            assert response.read() == b"ok\n"


def test_memory_is_proportional_to_the_rows(start_ps):
    server, = start_ps(lanes=8)
    with ParameterClient(server.address) as client:
        client.declare(tables=[{"name": f"t{i}", "dim": 16, "optimizer": {"name": "Adagrad"}}
                               for i in range(200)])
        before = server.most_resident_bytes()
        client.pull_many({f"t{i}": np.arange(250) for i in range(200)})
        # 50,000 rows of 144 bytes. The rest is for messages.
        assert server.most_resident_bytes() - before < 60 * MIB


def test_thousands_of_tables_can_be_declared(start_ps):
    server, = start_ps(lanes=8)
    with ParameterClient(server.address) as client:
        client.declare(tables=[{"name": f"t{i}", "dim": 4} for i in range(3000)])
        assert client.pull("t2999", np.arange(5)).shape == (5, 4)
        assert server.most_resident_bytes() < 200 * MIB


def test_a_limit_that_is_too_low_is_rejected_with_the_minimum(start_ps):
    server, = start_ps()
    with ParameterClient(server.address) as client:
        table = {"name": "t", "dim": 100_000, "optimizer": {"name": "Adam"}}
        with pytest.raises(ValueError, match=r"most_bytes=1048576 is too little.*at least \d+"):
            client.declare(tables=[{**table, "most_bytes": MIB}])


def test_it_saves_nothing_without_a_root_or_a_token(tmp_path):
    with running(log=tmp_path / "log") as (_, port), \
            ParameterClient(f"127.0.0.1:{port}") as client:
        client.declare(tables=[{"name": "t", "dim": 2}])
        with pytest.raises(PermissionError, match="--checkpoint_root=DIR"):
            client.save(tmp_path / "checkpoint")
    assert not list((tmp_path / "checkpoint").glob("part*"))


def test_a_restarted_server_is_restored_in_a_loop_that_pulls_first(start_ps, tmp_path):
    server, = start_ps()
    ids = np.arange(100)
    table = {"name": "t", "dim": 2, "initializer": {"name": "zeros"}}
    with ParameterClient(server.address) as client:
        client.declare(tables=[table])
        client.push({"t": (ids, np.full((100, 2), -1, np.float32))}, learning_rate=1)
        client.save(tmp_path / "checkpoint")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) == 0
    restarted, = start_ps(port=server.port)
    with ParameterClient(restarted.address) as client:
        client.declare(tables=[table])
        assert not client.pull("t", ids).any(), "the pull must create untrained rows"
        assert client.restore(tmp_path / "checkpoint") == 100
        assert (client.pull("t", ids) == 1).all()
        client.push({"t": (ids, np.full((100, 2), -1, np.float32))}, learning_rate=1)
        with pytest.raises(ParameterError, match="trained since"):
            client.restore(tmp_path / "checkpoint")
