"""Parameter servers that hang, are cut off or are restarted, as a program sees them."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from relay import Relay

from elasticdl import Outcome, ParameterClient, ParameterError

TABLE = {"name": "rows", "dim": 2, "initializer": {"name": "zeros"}}
IDS = np.arange(50)
GRADIENTS = -np.ones((50, 2), np.float32)
TIMEOUT = 2.0
# The time in which a call must fail after TIMEOUT, on a busy machine.
AT_MOST = 20.0


def connect(address, **more):
    client = ParameterClient(address, **more)
    client.declare(tables=[TABLE])
    return client


def add_one(client):
    return client.push({"rows": (IDS, GRADIENTS)}, learning_rate=1.0)


def raises_in_time(call):
    """The call raises TimeoutError after TIMEOUT."""
    begin = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer") as caught:
        call()
    assert isinstance(caught.value, ParameterError)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    assert TIMEOUT * 0.9 <= time.monotonic() - begin < AT_MOST


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_a_stopped_server_fails_calls_after_the_timeout(start_ps, transport, tmp_path):
    server, = start_ps()
    with connect(server.address, transport=transport, timeout=TIMEOUT) as client:
        add_one(client)
        server.freeze()
        raises_in_time(lambda: client.pull("rows", IDS))
        raises_in_time(lambda: client.save(tmp_path / "checkpoint"))
        server.thaw()
        # No batch was pushed while the server was stopped.
        np.testing.assert_array_equal(client.pull("rows", IDS), 1)
        assert add_one(client).applied


def test_a_stopped_server_blocks_neither_declare_nor_the_first_push(start_ps):
    server, = start_ps()
    with ParameterClient(server.address, timeout=TIMEOUT) as client:
        server.freeze()
        raises_in_time(lambda: client.declare(tables=[TABLE]))
        server.thaw()
    with connect(server.address, timeout=TIMEOUT) as client:
        server.freeze()
        pushed = client.push_async({"rows": (IDS, GRADIENTS)}, learning_rate=1.0)
        assert not pushed.done(), "push_async must return while the server is stopped"
        raises_in_time(pushed.result)
        server.thaw()


def test_calls_time_out_when_the_network_is_cut(start_ps):
    server, = start_ps()
    relay = Relay(lambda: server.address)
    with connect(relay.address, timeout=TIMEOUT) as client:
        add_one(client)
        relay.cut()
        raises_in_time(lambda: client.pull("rows", IDS))
        relay.heal()
        np.testing.assert_array_equal(client.pull("rows", IDS), 1)
    relay.close()


def train(client, batches, recover):
    """Pulls, then pushes, and recovers if a server was restarted."""
    done = 0
    while done < batches:
        try:
            client.pull("rows", IDS)
            assert add_one(client).applied
            done += 1
        except ParameterError as error:
            assert error.code == "ABORTED"
            recover()
            done = 0


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_the_documented_recovery_works_in_a_loop_that_pulls_first(start_ps, tmp_path, transport):
    server, = start_ps()
    client = connect(server.address, transport=transport)
    train(client, 5, lambda: pytest.fail("nothing was restarted"))
    client.save(tmp_path / "checkpoint")
    train(client, 3, lambda: pytest.fail("nothing was restarted"))
    server.kill()
    start_ps(port=server.port)
    recovered = []

    def recover():
        recovered.append(client.restore(tmp_path / "checkpoint"))

    train(client, 4, recover)

    assert recovered == [len(IDS)], "reported once, before a row is read or created"
    np.testing.assert_array_equal(client.pull("rows", IDS), 5 + 4)
    client.close()


def test_a_restart_is_reported_once_to_each_thread(start_ps):
    server, = start_ps()
    client = connect(server.address)
    add_one(client)
    server.kill()
    start_ps(port=server.port)
    codes = []

    def call_twice(call):
        for _ in range(2):
            try:
                call()
            except ParameterError as error:
                codes.append(error.code)

    for call in (lambda: client.pull("rows", IDS), lambda: add_one(client),
                 lambda: client.prefetch({"rows": IDS}).result()):
        thread = threading.Thread(target=call_twice, args=(call,))
        thread.start()
        thread.join()
    assert codes == ["ABORTED"] * 3
    client.close()


FORKED = """
import os
import sys
import numpy as np
from elasticdl import ParameterClient
client = ParameterClient(sys.argv[1])
client.declare(tables=[{"name": "rows", "dim": 2}])
handle = client.prefetch({"rows": np.arange(3)})
child = os.fork()
if child == 0:
    for call in (lambda: client.pull("rows", np.arange(3)), handle.result, client.flush,
                 lambda: client.push_async({}, {}, learning_rate=1)):
        try:
            call()
        except RuntimeError as error:
            assert "before a fork" in str(error), error
        else:
            sys.exit(3)
    sys.exit(0)  # closes clients, as usual
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 0, status
assert client.pull("rows", np.arange(3)).shape == (3, 2)
"""


def test_a_forked_child_gets_an_error_and_exits(start_ps):
    server, = start_ps()
    done = subprocess.run([sys.executable, "-c", FORKED, server.address], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_staleness_is_that_of_the_batch(start_ps):
    """Pulls of another thread or of an evaluation do not change the staleness of a batch."""
    server, = start_ps()
    rounds = {"gradients": 2, "tolerance": 0}
    client = ParameterClient(server.address, consistency=rounds)
    client.declare(tables=[TABLE])
    with ParameterClient(server.address, consistency=rounds) as other:
        other.declare(tables=[TABLE])
        client.pull("rows", IDS)
        for _ in range(2):  # a whole round of another worker
            other.pull("rows", IDS)
            assert add_one(other).applied
        evaluation = threading.Thread(target=client.pull, args=("rows", IDS))
        evaluation.start()
        evaluation.join()
        client.pull("rows", IDS, create=False)
        assert add_one(client).outcome is Outcome.STALE
        client.pull("rows", IDS)
        assert add_one(client).applied
    client.close()


@pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="takes a minute")
def test_a_server_that_was_stopped_for_a_minute_continues(start_ps):
    server, = start_ps()
    with connect(server.address) as client:
        add_one(client)
        server.freeze()
        timer = threading.Timer(60, server.thaw)
        timer.start()
        assert add_one(client).watermark == 2
        np.testing.assert_array_equal(client.pull("rows", IDS), 2)
