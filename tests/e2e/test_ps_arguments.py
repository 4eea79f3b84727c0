"""Wrong arguments of the Python API. Each error names the argument and the fix."""

import math

import numpy as np
import pytest

import elasticdl
from elasticdl import ParameterClient, ParameterError

TABLE = {"name": "t", "dim": 3}


@pytest.fixture
def client(start_ps):
    server, = start_ps()
    with ParameterClient(server.address, timeout=20) as client:
        yield client


@pytest.mark.parametrize("tables, error, words", [
    ({"t": TABLE}, TypeError, "must be a list of dicts"),
    ("t", TypeError, "must be a list of dicts"),
    (["t"], TypeError, "contains a str"),
    ([{"name": "t", "dim": 3.5}], TypeError, "dim of table 't' is 3.5; it must be an integer"),
    ([{"name": "t", "dim": "3"}], TypeError, "must be an integer"),
    ([{"name": 7, "dim": 3}], TypeError, "the name of a table is 7"),
    ([{**TABLE, "optimizer": "Adam"}], TypeError, 'a dict such as {"name": "Adagrad"}'),
    ([{**TABLE, "optimizer": {"name": "adam"}}], ValueError, "there are SGD, Momentum, Adagrad"),
    ([{**TABLE, "optimizer": {"name": "SGD", "beta_1": 0.9}}], ValueError,
     "optimizer SGD has no 'beta_1'; it has momentum, nesterov, weight_decay"),
    ([{**TABLE, "optimizer": {"name": "Adam", "learning_rate": 0.1}}], ValueError,
     "comes with each push"),
    ([{**TABLE, "initializer": {"name": "constant", "value": np.inf}}], ValueError, "NaN"),
    ([{**TABLE, "initializer": object()}], TypeError, "it may contain dicts"),
])
def test_wrong_declarations(client, tables, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(").replace("{", r"\{")):
        client.declare(tables=tables)


def test_numpy_numbers_are_accepted(client):
    client.declare(seed=np.int64(4), tables=[
        {"name": "t", "dim": np.int64(3), "most_bytes": np.int64(1 << 30),
         "initializer": {"name": "constant", "value": np.float32(2)}}])
    np.testing.assert_array_equal(client.pull("t", np.arange(2)), 2)
    assert client.push({"t": (np.arange(2), np.ones((2, 3), np.float32))},
                       learning_rate=np.float32(1)).applied
    np.testing.assert_array_equal(client.pull("t", np.arange(2)), 1)


def test_wrong_pushes(client):
    client.declare(tables=[TABLE])
    rows = np.arange(2), np.ones((2, 3), np.float32)
    for error, words, tables, rate in [
            (TypeError, r"given a ndarray; a push takes \{table: \(ids, gradients\)\}",
             {"t": np.ones((2, 3), np.float32)}, 1.0),
            (TypeError, "tables is a list", [("t", rows)], 1.0),
            (ValueError, "must be finite as float32", {"t": rows}, 1e39),
            (ValueError, "must be finite", {"t": rows}, math.nan),
            (TypeError, "must be a number", {"t": rows}, "0.1"),
            (TypeError, "must be a number", {"t": rows}, None)]:
        with pytest.raises(error, match=words):
            client.push(tables, learning_rate=rate)
    with pytest.raises(TypeError, match="ids is a ndarray; it must be a dict"):
        client.pull_many(np.arange(3))
    np.testing.assert_array_equal(np.isfinite(client.pull("t", np.arange(2))), True)


def test_wrong_clients():
    for words, more in (("timeout is -1", {"timeout": -1}), ("timeout is nan",
                                                               {"timeout": math.nan})):
        with pytest.raises(ValueError, match=words):
            ParameterClient("127.0.0.1:1", **more)
    with pytest.raises(TypeError, match="host:port"):
        ParameterClient([("127.0.0.1", 1)])


def test_a_declaration_that_exceeds_a_frame_is_rejected_immediately(client):
    many = [{"name": f"{number:0200}", "dim": 1} for number in range(6000)]
    with pytest.raises(ParameterError, match="declare fewer tables") as caught:
        client.declare(tables=many)
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    client.declare(tables=[TABLE])


@pytest.mark.parametrize("disk", ["1m"], indirect=True)
def test_a_folder_that_cannot_be_written_is_an_os_error(client, disk):
    import subprocess

    client.declare(tables=[TABLE])
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(PermissionError, match=str(disk)) as caught:
        client.save(disk / "checkpoint")
    assert isinstance(caught.value, ParameterError) and not isinstance(caught.value,
                                                                       ConnectionError)


def test_an_infinite_timeout_is_accepted(start_ps):
    server, = start_ps()
    with ParameterClient(server.address, timeout=math.inf) as client:
        client.declare(tables=[TABLE])
        assert client.pull("t", np.arange(2)).shape == (2, 3)


def test_the_package_is_typed():
    from pathlib import Path

    assert (Path(elasticdl.__file__).parent / "py.typed").exists()
    assert elasticdl.__version__.count(".") == 2
