"""A table with a memory limit of a quarter of its size, which is trained and saved."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from planted import COLUMNS, NUMBERS, Generator, area_under_curve
from servers import Server

from elasticdl import ParameterClient

MIB = 1 << 20
DIM = 16  # the first is the id's weight, the others are its factors
ROW_BYTES = 16 + 2 * 4 * DIM  # header, weights, Adagrad's sums
ONCE = range(2, COLUMNS, 2)  # columns whose ids fill the table
HELD_OUT, SAVES = 40_000, 4
SAVE_BUFFER = 4 * MIB  # for both lanes together
OTHER = 16 * MIB       # other memory of the process


class Size(NamedTuple):
    table: int   # bytes of all rows that are pushed
    budget: int  # bytes
    batch: int   # records
    most: int    # categories of a column with repeated ids

    def message(self):
        """Bytes of the ids and rows of a batch."""
        return self.batch * COLUMNS * (8 + 4 * DIM)


class Seen(NamedTuple):
    """Results of a table without a limit, and of one with a limit."""

    size: Size
    unbounded_auc: float
    auc: float
    restored_auc: float
    most_bytes: int      # reported by the server
    resident_bytes: int  # the increase since the server was empty
    rows: int
    evicted: int


class Model:
    """A factorisation machine in NumPy, with its parameters on a server."""

    def __init__(self, server):
        self.client = ParameterClient(server.address)

    def declare(self, **bounds):
        self.client.declare(
            tables=[{"name": "rows", "dim": DIM, **bounds,
                     "initializer": {"name": "uniform", "minval": -0.01, "maxval": 0.01},
                     "optimizer": {"name": "Adagrad", "initial_accumulator_value": 1e-7}}],
            tensors=[{"name": name, "value": np.zeros(size, np.float32),
                      "optimizer": {"name": "Adam"}}
                     for name, size in (("numbers", NUMBERS), ("bias", 1))])

    def train(self, records):
        rows = self.client.pull("rows", records.ids)
        scores, sums = self._scores(rows, records.numbers)
        errors = (1 / (1 + np.exp(-scores)) - records.labels) / len(records)
        gradients = errors[:, None, None] * (sums[:, None] - rows)
        gradients[:, :, 0] = errors[:, None]
        self.client.push({"rows": (records.ids, gradients)},
                         {"numbers": records.numbers.T @ errors,
                          "bias": errors.sum(keepdims=True)},
                         learning_rate={"rows": 0.05, "numbers": 0.01, "bias": 0.01})

    def auc(self, records):
        rows = self.client.pull("rows", records.ids, create=False)
        return area_under_curve(self._scores(rows, records.numbers)[0], records.labels)

    def _scores(self, rows, numbers):
        dense = self.client.pull_tensors()
        factors, sums = rows[:, :, 1:], rows.sum(1)
        pairs = np.square(sums[:, 1:]).sum(1) - np.einsum("nck,nck->n", factors, factors)
        return dense["bias"] + numbers @ dense["numbers"] + sums[:, 0] + pairs / 2, sums


class Data:
    """Training data. Every instance has the same records."""

    def __init__(self, size):
        self._size = size
        self._generator = Generator(size.most, once=ONCE)
        self.held_out = self._generator.draw(HELD_OUT)
        self.count = -(-size.table // (ROW_BYTES * size.batch * len(ONCE)))

    def batches(self):
        return (self._generator.draw(self._size.batch) for _ in range(self.count))


def train_unbounded(server, size):
    data, model = Data(size), Model(server)
    with model.client:
        model.declare()
        for records in data.batches():
            model.train(records)
        assert server.metrics()["rows"] * ROW_BYTES >= size.table
        return model.auc(data.held_out)


def train_bounded(server, size, folder):
    """Trains and saves repeatedly, and records the server's memory."""
    data, model, most_bytes = Data(size), Model(server), 0
    with model.client, ThreadPoolExecutor(1) as beside:
        model.declare(most_bytes=size.budget)
        resident, saving = server.most_resident_bytes(), beside.submit(int)
        for number, records in enumerate(data.batches(), 1):
            model.train(records)
            most_bytes = max(most_bytes, server.metrics()["memory_bytes"])
            if number % (data.count // SAVES) == 0:
                saving.result()
                shutil.rmtree(folder, ignore_errors=True)
                saving = beside.submit(model.client.save, folder)
        saving.result()
        shutil.rmtree(folder)
        model.client.save(folder)
        metrics = server.metrics()
        return {"most_bytes": most_bytes,
                "resident_bytes": server.most_resident_bytes() - resident,  # before a large answer
                "auc": model.auc(data.held_out),
                "rows": metrics["rows"], "evicted": metrics["evicted_rows_total"]}


def auc_of_restored(server, size, folder):
    model = Model(server)
    with model.client:
        model.client.restore(folder)
        model.declare(most_bytes=size.budget)
        return model.auc(Data(size).held_out)


@pytest.fixture(scope="module", params=[
    pytest.param(Size(64 * MIB, 16 * MIB, 512, 100_000), id="64 MiB in 16"),
    pytest.param(Size(4096 * MIB, 1024 * MIB, 4096, 2_000_000), id="4 GiB in 1",
                 marks=pytest.mark.skipif("ELASTICDL_NIGHTLY" not in os.environ,
                                          reason="left to make nightly"))])
def seen(request, tmp_path_factory):
    size, folder = request.param, tmp_path_factory.mktemp("bounds") / "checkpoint"

    def on_server(act, *arguments):
        server = Server(flags=["--http_port=0", f"--save_buffer_mb={SAVE_BUFFER // MIB}"])
        try:
            return act(server, size, *arguments)
        finally:
            server.kill()

    unbounded_auc = on_server(train_unbounded)
    bounded = on_server(train_bounded, folder)
    restored_auc = on_server(auc_of_restored, folder)
    shutil.rmtree(folder)
    result = Seen(size=size, unbounded_auc=unbounded_auc, restored_auc=restored_auc, **bounded)
    print(result)
    return result


def test_it_stays_within_its_limit(seen):
    assert seen.most_bytes <= seen.size.budget
    # A few batches are in flight, in ring buffers of shared memory and in other buffers.
    assert seen.resident_bytes <= (
        seen.size.budget + SAVE_BUFFER + 4 * seen.size.message() + OTHER)


def test_it_reports_how_many_rows_it_evicted(seen):
    assert seen.rows * ROW_BYTES <= seen.size.budget
    assert seen.evicted >= seen.size.table / ROW_BYTES - seen.rows


def test_it_learns_as_much_as_without_a_limit(seen):
    assert seen.unbounded_auc > 0.6
    assert abs(seen.auc - seen.unbounded_auc) < 0.01


def test_the_checkpoint_has_what_it_learned(seen):
    assert abs(seen.restored_auc - seen.auc) < 1e-4
