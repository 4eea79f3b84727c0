"""elasticdl.ParameterClient with real `elasticdl ps` processes."""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from harness import ROOT
from relay import Relay

import elasticdl
from elasticdl import Outcome, ParameterClient, ParameterError, ShardKey

DIM = 3
TABLE = {"name": "rows", "dim": DIM, "initializer": {"name": "constant", "value": 1.0}}
OTHER = {"name": "other", "dim": 2}
VALUE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MEAN = np.zeros((), np.float32)


def ids_of(*ids):
    return np.array(ids, np.int64)


def ones(*shape):
    return np.ones(shape, np.float32)


def connect(servers, **more):
    return ParameterClient([server.address for server in servers], **more)


def declare(client):
    client.declare(tables=[TABLE, OTHER], seed=4, tensors=[
        {"name": "dense/kernel", "value": VALUE},
        {"name": "mean", "value": MEAN, "trainable": False}])


@pytest.fixture(params=[(1, "tcp"), (1, "shm"), (2, "tcp"), (2, "auto")],
                ids=lambda param: f"{param[0]}-{param[1]}")
def client(request, start_ps):
    count, transport = request.param
    with connect(start_ps(count), transport=transport) as client:
        declare(client)
        yield client


def test_rows_have_the_shape_of_their_ids(client):
    ids = ids_of(5, -7, 5, 2**62, 0, 9).reshape(2, 3)
    rows = client.pull("rows", ids)
    assert rows.shape == (2, 3, DIM) and rows.dtype == np.float32
    np.testing.assert_array_equal(rows, 1)
    pulled = client.pull_many({"other": ids, "rows": ids_of(1)})
    assert pulled["other"].shape == (2, 3, 2) and pulled["rows"].shape == (1, DIM)
    np.testing.assert_array_equal(pulled["other"][0, 0], pulled["other"][0, 2])
    assert client.pull("rows", ids_of()).shape == (0, DIM)


def test_initial_rows_depend_neither_on_the_client_nor_on_the_number_of_servers(start_ps):
    ids = np.arange(-500, 500, dtype=np.int64) ** 3
    seen = []
    for count, order in ((1, ids), (2, ids[::-1].copy()), (3, np.roll(ids, 317))):
        with connect(start_ps(count)) as client:
            declare(client)
            for some in np.array_split(order, count + 1):
                client.pull("other", some)
            seen.append(client.pull("other", ids))
    assert len(np.unique(seen[0], axis=0)) > 900
    assert (seen[0] == seen[1]).all() and (seen[0] == seen[2]).all()


def test_gradients_of_the_same_id_are_added(client):
    ids = ids_of(4, 8, 4, 4)
    gradients = np.repeat(np.float32([[1], [10], [2], [3]]), DIM, axis=1)
    result = client.push({"rows": (ids, gradients)}, learning_rate=0.5)
    assert result.applied and result.watermark == 1
    rows = client.pull("rows", ids_of(4, 8, 15))
    np.testing.assert_allclose(rows[:, 0], [1 - 0.5 * 6, 1 - 0.5 * 10, 1])


def test_tensors_keep_their_shapes(client):
    pulled = client.pull_tensors()
    np.testing.assert_array_equal(pulled["dense/kernel"], VALUE)
    assert pulled["mean"].shape == ()
    client.push(tensors={"dense/kernel": ones(2, 3, 4), "mean": np.full((), 7, np.float32)},
                learning_rate={"dense/kernel": 0.25, "mean": 1})
    np.testing.assert_array_equal(client.pull_tensors(["dense/kernel"])["dense/kernel"],
                                  VALUE - 0.25)
    assert client.pull_tensors(["mean"])["mean"] == 7, "a tensor without an optimizer is a sum"


def test_a_second_client_finds_the_parameters_of_the_first(start_ps):
    servers = start_ps(2)
    with connect(servers) as first, connect(servers) as second:
        declare(first)
        first.push({"rows": (ids_of(1), ones(1, DIM))}, {"dense/kernel": VALUE}, learning_rate=1)
        declare(second)
        np.testing.assert_array_equal(second.pull("rows", ids_of(1)), 0)
        np.testing.assert_array_equal(second.pull_tensors()["dense/kernel"], 0)
        other = {**TABLE, "dim": 4}
        with connect(servers) as third, pytest.raises(ParameterError, match="'rows' was already"):
            third.declare(tables=[other])


def test_a_pull_that_creates_nothing(start_ps, tmp_path):
    with connect(start_ps()) as client:
        client.declare(tables=[TABLE])
        np.testing.assert_array_equal(client.pull("rows", ids_of(1, 2), create=False), 1)
        client.save(tmp_path / "empty")
        with connect(start_ps()) as other:
            assert other.restore(tmp_path / "empty") == 0
        client.pull("rows", ids_of(1, 2))
        client.save(tmp_path / "two")
        with connect(start_ps()) as other:
            assert other.restore(tmp_path / "two") == 2


def test_prefetch_returns_unique_rows_and_their_inverse(client):
    ids = ids_of(3, 1, 3, 2, 1, 3).reshape(3, 2)
    client.push({"rows": (ids_of(3), ones(1, DIM))}, learning_rate=1)
    handle = client.prefetch({"rows": ids, "other": ids[:1]})
    wanted = client.pull("rows", ids)
    ids[:] = 77  # the handle has a copy
    rows, inverse = handle.result()["rows"]
    assert handle.done() and rows.shape == (3, DIM) and inverse.shape == (3, 2)
    np.testing.assert_array_equal(rows[inverse], wanted)
    unique = handle.ids()["rows"]
    assert sorted(unique) == [1, 2, 3]
    # Gradients of the unique rows can be pushed as they are.
    assert client.push({"rows": (unique, rows)}, learning_rate=1).applied
    np.testing.assert_array_equal(client.pull("rows", unique), 0)
    assert handle.result()["other"][1].shape == (1, 2)


def test_many_prefetches_are_in_flight_beside_pushes(client):
    batches = [np.arange(n, n + 20000) for n in range(6)]
    handles = []
    for ids in batches:
        handles.append(client.prefetch({"rows": ids}))
        client.push({"rows": (ids, ones(len(ids), DIM))}, learning_rate=1)
    for number, handle in enumerate(handles):
        rows, inverse = handle.result()["rows"]
        # Only earlier pushes were applied: none to the last row, one to the row before it.
        np.testing.assert_array_equal(rows[inverse][-2:, 0], [1, 1] if number == 0 else [0, 1])


def test_prefetch_returns_tensors_with_the_rows(client):
    handle = client.prefetch({"rows": ids_of(1)}, tensors=["mean", "dense/kernel"])
    client.push(tensors={"dense/kernel": VALUE}, learning_rate=1)
    tensors = handle.tensors()
    assert list(tensors) == ["mean", "dense/kernel"]
    assert handle.result()["rows"][0].shape == (1, DIM)
    np.testing.assert_array_equal(tensors["dense/kernel"], VALUE)  # not the later ones
    assert tensors["mean"].shape == ()
    with pytest.raises(KeyError, match="'mean'"):
        client.prefetch({}, tensors=["median"])
    assert client.prefetch({"rows": ids_of(1)}).tensors() == {}


def test_pushes_are_in_flight_while_the_program_continues(client):
    ids, gradient, kernel = np.arange(5000), ones(5000, DIM), ones(2, 3, 4)
    pushes = []
    for _ in range(5):
        pushes.append(client.push_async({"rows": (ids, gradient)}, {"dense/kernel": kernel},
                                        learning_rate=1))
        # The push has a copy, and a later pull sees its effect.
        ids += 1
        gradient *= 2
        kernel *= 2
        handle = client.prefetch({"rows": ids_of(4999)}, tensors=["dense/kernel"])
    assert [push.result() for push in pushes] == [(Outcome.APPLIED, mark) for mark in range(1, 6)]
    assert all(push.done() for push in pushes)
    assert pushes[0].result().applied, "the result can be read again"
    np.testing.assert_array_equal(client.pull("rows", ids_of(0, 1, 4999))[:, 0], [0, -2, -30])
    np.testing.assert_array_equal(handle.result()["rows"][0], -30)
    np.testing.assert_array_equal(handle.tensors()["dense/kernel"], VALUE - 31)
    assert client.push({"rows": (ids_of(0), ones(1, DIM))}, learning_rate=1).watermark == 6


def test_threads_push_with_one_client(client):
    gradients, caught = ones(20000, DIM), []

    def push_all():
        try:
            pushes = [client.push_async({"rows": (np.arange(20000), gradients)}, learning_rate=1)
                      for _ in range(10)]
            assert [push.result().watermark for push in pushes] == list(range(1, 11))
        except Exception as error:
            caught.append(error)

    threads = [threading.Thread(target=push_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not caught
    np.testing.assert_array_equal(client.pull("rows", ids_of(0, 19999)), 1 - 30)


def test_a_push_without_a_wait_is_applied(client):
    for _ in range(3):
        client.push_async({"rows": (np.arange(20000), ones(20000, DIM))},
                          {"dense/kernel": ones(2, 3, 4)}, learning_rate=1)
    np.testing.assert_array_equal(client.pull("rows", ids_of(19999)), 1 - 3)
    np.testing.assert_array_equal(client.pull_tensors()["dense/kernel"], VALUE - 3)


def test_a_pending_push_fails_as_a_push_would(start_ps):
    server, = start_ps()
    with connect([server]) as client:
        declare(client)
        batch = {"rows": (ids_of(1), ones(1, DIM))}
        with pytest.raises(ValueError, match="no entry for"):
            client.push_async(batch, learning_rate={})
        bad = {"rows": (ids_of(1), np.full((1, DIM), np.nan, np.float32))}
        refused = [client.push_async(bad, learning_rate=1),
                   client.push_async(bad, learning_rate=1, fail_on_nan=True)]
        assert refused[0].result().outcome is Outcome.REFUSED
        with pytest.raises(FloatingPointError):
            refused[1].result()
        assert client.push_async(batch, learning_rate=1).result().watermark == 3
        shard = ShardKey(ledger=5)
        assert client.push_async(batch, learning_rate=1, at=(7, shard, 0)).result().outcome is (
            Outcome.NOT_OPEN)

        server.kill()
        server, = start_ps(port=server.port)
        lost = [client.push_async(batch, learning_rate=1) for _ in range(3)]
        for push in lost:
            with pytest.raises(ParameterError, match="restarted") as caught:
                push.result()
            assert caught.value.code == "ABORTED"
        assert client.push(batch, learning_rate=1) == (Outcome.APPLIED, 1), "the next one succeeds"
        np.testing.assert_array_equal(client.pull("rows", ids_of(1)), 0)

        server.freeze()
        under_way = client.push_async(batch, learning_rate=1)
        assert not under_way.done()
        client.close()
        with pytest.raises(ParameterError, match="closed"):
            under_way.result()


def test_arrays_are_aligned_and_do_not_leak(client):
    native = client._native
    for count in (1, 5, 1000, 40001):
        ids = np.arange(count)
        rows = client.pull("rows", ids)
        handle = client.prefetch({"rows": ids})
        arrays = [rows, *handle.result()["rows"], *handle.ids().values(),
                  *client.pull_tensors().values()]
        assert [array.ctypes.data % 64 for array in arrays] == [0] * len(arrays)
        assert native.live_arrays() == len(arrays)
        assert rows.flags.writeable and not rows.flags.owndata  # a capsule owns it
        del rows, handle, arrays
        assert native.live_arrays() == 0
    kept = client.pull("rows", np.arange(1000))
    client.prefetch({"rows": np.arange(1000)})  # the result is not used
    client.close()
    np.testing.assert_array_equal(kept, 1)  # arrays are valid after the client is closed


def test_arrays_are_pushed_without_a_copy(client):
    ids, gradients = np.arange(8), ones(8, DIM)
    ids.flags.writeable = gradients.flags.writeable = False
    assert client.push({"rows": (ids, gradients)}, learning_rate=1).applied
    np.testing.assert_array_equal(client.pull("rows", ids), 0)


@pytest.mark.parametrize("wrong, error, words", [
    (np.arange(3, dtype=np.int32), TypeError,
     "ids of table 'rows': expected dtype int64, found int32"),
    (np.arange(3, dtype=np.uint64), TypeError, "uint64"),
    (np.array([1.0, 2.0]), TypeError, "float64"),
    (np.array(["a"]), TypeError, "<U1"),
    (np.array([1, None]), TypeError, "object"),
    ([1, 2, 3], TypeError, "expected a NumPy array, found list"),
    (np.arange(6).reshape(2, 3).T, ValueError, "ascontiguousarray"),
    (np.arange(6)[::2], ValueError, "ascontiguousarray"),
    (np.arange(3).astype(">i8"), TypeError, ">i8"),
])
def test_ids_of_another_type_are_rejected(start_ps, wrong, error, words):
    with connect(start_ps()) as client:
        declare(client)
        for call in (lambda: client.pull("rows", wrong), lambda: client.prefetch({"rows": wrong}),
                     lambda: client.push({"rows": (wrong, ones(3, DIM))}, learning_rate=1)):
            with pytest.raises(error, match=words):
                call()
        # The native module checks too.
        with pytest.raises(TypeError):
            client._native.pull([(0, wrong)], True)


def test_an_invalid_push_is_rejected_before_anything_is_sent(start_ps):
    with connect(start_ps()) as client:
        with pytest.raises(RuntimeError, match="not declared"):
            client.pull("rows", ids_of(1))
        declare(client)
        for error, words, tables, tensors, rate in [
                (TypeError, "float64", {"rows": (ids_of(1), np.ones((1, DIM)))}, {}, 1),
                (ValueError, r"want \(2, 3\)", {"rows": (ids_of(1, 2), ones(1, DIM))}, {}, 1),
                (ValueError, "not contig", {"rows": (ids_of(1), ones(1, 2 * DIM)[:, ::2])}, {}, 1),
                (ValueError, "the tensor", {}, {"dense/kernel": ones(24)}, 1),
                (KeyError, "'rows', 'other'", {"row": (ids_of(1), ones(1, DIM))}, {}, 1),
                (KeyError, "'dense/kernel'", {}, {"bias": ones(1)}, 1),
                (ValueError, "learning rate", {"rows": (ids_of(1), ones(1, DIM))}, {}, np.nan),
                (ValueError, "no entry for", {"rows": (ids_of(1), ones(1, DIM))}, {}, {})]:
            with pytest.raises(error, match=words):
                client.push(tables, tensors, learning_rate=rate)
        for words, clips in (("both given", {"clipnorm": 1, "global_clipnorm": 1}),
                             ("above 0", {"clipnorm": 0}), ("above 0", {"clipnorm": np.nan})):
            with pytest.raises(ValueError, match=words):
                client.push({"rows": (ids_of(1), ones(1, DIM))}, learning_rate=1, **clips)
        for wrong in ([(0, ids_of(1), ones(2, DIM), 1.0)], [(9, ids_of(1), ones(1, DIM), 1.0)]):
            with pytest.raises(ValueError):
                client._native.push(1, (1, 0, 0, 0, 0), 0, wrong, [])
        np.testing.assert_array_equal(client.pull("rows", ids_of(1)), 1)


@pytest.mark.parametrize("tables, tensors, words", [
    ([{"dim": 3}], [], "no 'name'"),
    ([{"name": "t"}], [], "no 'dim'"),
    ([TABLE, TABLE], [], "same name"),
    ([{**TABLE, "optimiser": {}}], [], "optimiser"),
    ([{**TABLE, "optimizer": {"name": "Adem"}}], [], "Adem"),
    ([], [{"name": "d", "value": VALUE, "dim": 3}], "dim"),
    ([], [{"name": "d", "value": VALUE, "trainable": False, "optimizer": {"name": "SGD"}}],
     "trainable"),
])
def test_a_wrong_declaration_is_a_value_error(start_ps, tables, tensors, words):
    with connect(start_ps()) as client:
        with pytest.raises(ValueError, match=words):
            client.declare(tables=tables, tensors=tensors)
        declare(client)  # a correct declaration is accepted afterwards
        assert client.pull("rows", ids_of(1)).shape == (1, DIM)


def test_batches_with_nan_or_infinity_are_refused(client):
    for bad in (np.nan, np.inf):
        gradients = ones(2, DIM)
        gradients[1, 1] = bad
        result = client.push({"rows": (ids_of(1, 2), gradients)}, learning_rate=1)
        assert result.outcome is Outcome.REFUSED and not result.applied
        with pytest.raises(FloatingPointError):
            client.push({"rows": (ids_of(1, 2), gradients)}, learning_rate=1, fail_on_nan=True)
    assert client.push({"rows": (ids_of(1), ones(1, DIM))}, learning_rate=1).watermark == 5
    np.testing.assert_array_equal(client.pull("rows", ids_of(1, 2))[:, 0], [0, 1])


SUMS = {"name": "sums", "dim": 1, "initializer": {"name": "zeros"}}
ROUNDS = {"gradients": 2, "tolerance": 0}


def add_one(client, start=None):
    """Adds 1 to row 1 of SUMS."""
    return (start or client.push)({"sums": (ids_of(1), -ones(1, 1))}, learning_rate=1.0)


def test_a_round_is_applied_when_it_is_full_or_flushed(start_ps):
    servers = start_ps(2)
    with connect(servers) as client:
        client.declare(tables=[SUMS], consistency=ROUNDS)
        assert add_one(client).applied
        assert client.pull("sums", ids_of(1)) == 0
        assert add_one(client).applied
        assert client.pull("sums", ids_of(1)) == 2
        add_one(client)
        client.flush()
        assert client.pull("sums", ids_of(1)) == 3


def test_a_stale_batch_is_computed_again_and_counts_once(start_ps):
    servers = start_ps(2)
    with connect(servers) as slow, connect(servers) as fast:
        for client in (slow, fast):
            client.declare(tables=[SUMS], consistency=ROUNDS)
            client.pull("sums", ids_of(1))
        for _ in range(2):
            assert add_one(fast).applied
        late = [add_one(slow, slow.push_async) for _ in range(3)]
        assert [push.result().outcome for push in late] == [Outcome.STALE] * 3
        assert slow.pull("sums", ids_of(1)) == 2
        again = [add_one(slow, slow.push_async) for _ in range(2)]
        assert [push.result().outcome for push in again] == [Outcome.APPLIED] * 2
        assert slow.pull("sums", ids_of(1)) == 4


def test_a_declaration_with_another_consistency_is_rejected(start_ps):
    servers = start_ps(1)
    with connect(servers) as client, connect(servers) as other:
        client.declare(tables=[SUMS], consistency=ROUNDS)
        with pytest.raises(ParameterError, match="consistency") as failed:
            other.declare(tables=[SUMS])
        assert failed.value.code == "FAILED_PRECONDITION"
    with connect(servers) as client:
        with pytest.raises(ValueError, match="gradients"):
            client.declare(tables=[SUMS], consistency={"gradients": -1})


def test_a_shard_is_pushed_once_and_fenced(client):
    shard = ShardKey(ledger=5, ordinal=3)
    batch = {"rows": (ids_of(1), ones(1, DIM))}

    def push(lease, number):
        return client.push(batch, learning_rate=1, at=(lease, shard, number)).outcome

    assert push(7, 0) is Outcome.NOT_OPEN
    assert client.open_shard(7, shard) == (0, 0)
    assert [push(7, 0), push(7, 0), push(7, 2)] == [Outcome.APPLIED, Outcome.APPLIED, Outcome.AHEAD]
    assert client.open_shard(8, shard) == (1, 0)
    assert push(7, 1) is Outcome.FENCED
    with pytest.raises(ParameterError) as caught:
        client.open_shard(7, shard)
    assert caught.value.code == "ABORTED"
    np.testing.assert_array_equal(client.pull("rows", ids_of(1)), 0)


def test_a_token_is_required(start_ps, tmp_path):
    file = tmp_path / "token"
    file.write_text("secret\n")
    server, = start_ps(token_file=file)
    for given in ({"token": "guess"}, {}):
        with pytest.raises(PermissionError) as caught:
            ParameterClient(server.address, **given)
        assert isinstance(caught.value, ParameterError) and caught.value.code == "UNAUTHENTICATED"
    for given in ({"token": "secret"}, {"token_file": file}):
        ParameterClient(server.address, **given).close()
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(ValueError, match=str(empty)):
        ParameterClient(server.address, token_file=empty)
    with pytest.raises(ParameterError, match="nowhere"):
        ParameterClient(server.address, token_file=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="host:port"):
        ParameterClient("localhost")


def test_a_server_that_never_starts_is_a_connection_error(start_ps):
    server, = start_ps()
    server.kill()
    with pytest.raises(ConnectionError, match=str(server.port)) as caught:
        ParameterClient(server.address, timeout=0.2)
    assert caught.value.code == "UNAVAILABLE"


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_a_killed_server_is_restored_from_its_checkpoint(start_ps, tmp_path, transport):
    server, = start_ps()
    client = connect([server], transport=transport)
    declare(client)
    push = {"rows": (ids_of(1, 2), ones(2, DIM))}
    client.push(push, {"dense/kernel": VALUE}, learning_rate=1)
    assert client.save(tmp_path / "checkpoint") > 0
    with pytest.raises(ParameterError) as caught:
        client.save(tmp_path / "checkpoint")
    assert caught.value.code == "ALREADY_EXISTS"
    client.push(push, learning_rate=1)

    server.kill()
    server, = start_ps(port=server.port)
    assert client.restore(tmp_path / "checkpoint") == 2
    np.testing.assert_array_equal(client.pull("rows", ids_of(1, 2, 3))[:, 0], [0, 0, 1])
    np.testing.assert_array_equal(client.pull_tensors()["dense/kernel"], 0)
    assert client.push(push, learning_rate=1) == (Outcome.APPLIED, 1)

    server.kill()
    server, = start_ps(port=server.port)
    with pytest.raises(ParameterError, match="restarted") as caught:
        client.push(push, learning_rate=1)
    assert caught.value.code == "ABORTED"
    assert client.push(push, learning_rate=1).applied, "the error is reported once"
    client.close()


@pytest.mark.parametrize("disk", ["1m"], indirect=True)
def test_a_full_disk_fails_the_save_and_nothing_else(start_ps, disk):
    ids = np.arange(200_000)
    with connect(start_ps(2)) as client:
        declare(client)
        client.pull("rows", ids)
        with pytest.raises(ParameterError, match="space") as caught:
            client.save(disk / "too-large")
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        assert not list(disk.rglob("manifest*")), "a folder without a manifest is not a checkpoint"
        assert client.push({"rows": (ids, ones(len(ids), DIM))}, learning_rate=1).applied
        np.testing.assert_array_equal(client.pull("rows", ids), 0)
        assert client.save(disk.parent / "elsewhere") > 0


def test_a_batch_whose_answer_was_lost_is_applied_once(start_ps):
    server, = start_ps()
    proxy = Relay(lambda: server.address)
    with ParameterClient(proxy.address) as client:
        declare(client)
        ids, pushes = np.arange(100), 6
        for number in range(1, pushes + 1):
            proxy.lose_next_answer()
            result = client.push({"rows": (ids, ones(100, DIM))}, learning_rate=1)
            assert result == (Outcome.APPLIED, number) and proxy.lost == number
        np.testing.assert_array_equal(client.pull("rows", ids), 1 - pushes)
    proxy.close()


def test_no_batch_is_lost_or_doubled_by_a_wait(start_ps):
    server, = start_ps()
    with connect([server]) as client:
        declare(client)
        timer = threading.Timer(0.3, server.thaw)
        for number in range(1, 4):
            if number == 2:
                server.freeze()
                timer.start()
            pushed = client.push({"rows": (ids_of(1), ones(1, DIM))}, learning_rate=1)
            assert pushed.watermark == number
        np.testing.assert_array_equal(client.pull("rows", ids_of(1)), 1 - 3)


def test_other_threads_run_while_one_waits(start_ps):
    server, = start_ps()
    with connect([server]) as client:
        declare(client)
        server.freeze()
        handle = client.prefetch({"rows": ids_of(1)})
        waiting = threading.Thread(target=handle.result)
        waiting.start()
        pulling = threading.Thread(target=client.pull, args=("rows", ids_of(2)))
        pulling.start()
        # If one of them held the GIL, this would never end.
        assert sum(1 for _ in range(100000)) == 100000
        assert waiting.is_alive() and pulling.is_alive() and not handle.done()
        server.thaw()
        waiting.join()
        pulling.join()
        assert handle.done()


def test_close_ends_waits_and_calls_fail_after_it(start_ps):
    server, = start_ps()
    client = connect([server])
    declare(client)
    server.freeze()
    caught = []

    def pull():
        try:
            client.pull("rows", ids_of(1))
        except ParameterError as error:
            caught.append(error.code)

    waiting = threading.Thread(target=pull)
    waiting.start()
    handle = client.prefetch({"rows": ids_of(1)})
    client.close()
    client.close()
    waiting.join()
    assert caught == ["CANCELLED"]
    for call in (handle.result, lambda: client.pull("rows", ids_of(1))):
        with pytest.raises(ParameterError, match="closed"):
            call()


# A program that is started in the background ignores SIGINT unless it sets a handler.
INTERRUPTED = """
import signal
import sys
import numpy as np
from elasticdl import ParameterClient
signal.signal(signal.SIGINT, signal.default_int_handler)
client = ParameterClient(sys.argv[1])
client.declare(tensors=[{"name": "d", "value": np.zeros(1000, np.float32)}])
print("declared", flush=True)
try:
    sys.stdin.readline()
    print("pushes", flush=True)
    client.push(tensors={"d": np.ones(1000, np.float32)}, learning_rate=1)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_wait_can_be_interrupted(start_ps):
    server, = start_ps()
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, server.address], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        timeout = threading.Timer(60, program.kill)
        timeout.start()
        assert program.stdout.readline() == "declared\n"
        server.freeze()
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "pushes\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "interrupted\n"
    timeout.cancel()
    assert program.returncode == 0


def test_the_example_learns(start_ps):
    server, = start_ps()
    done = subprocess.run([sys.executable, ROOT / "examples/parameter_server/train.py",
                           server.address], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    errors = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert errors[-1] < errors[0] / 4, done.stdout


def test_the_program_in_the_docs_learns(start_ps):
    server, = start_ps()
    text = (ROOT / "docs/parameter-server.md").read_text()
    lines = re.search(r"```python\n(.*?)```", text, flags=re.S)[1]
    known = {}
    exec(lines.replace("127.0.0.1:40001", server.address), known)
    assert np.square(known["error"]).mean() < 0.05


def test_importing_the_package_loads_no_framework():
    code = ("import sys, elasticdl; assert 'numpy' not in sys.modules; "
            "assert 'ParameterClient' in dir(elasticdl)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_native_module_links_neither_grpc_nor_protobuf():
    file = next(Path(elasticdl.__file__).parent.glob("_native*.so"))
    needed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    names = subprocess.run(["nm", "-C", file], capture_output=True, text=True, check=True).stdout
    assert "grpc" not in needed + names and "protobuf" not in needed + names
    assert "libfmt" not in needed and "libstdc++" not in needed, "it must only need Python"
    seen = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True,
                          check=True).stdout
    assert [line.split()[-1] for line in seen.splitlines()] == ["PyInit__native"]
