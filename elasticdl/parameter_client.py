"""A client of parameter servers: pulls, pushes, saves and restores parameters.

    client = ParameterClient("127.0.0.1:40001")
    client.declare(tables=[{"name": "users", "dim": 16}],
                   tensors=[{"name": "bias", "value": np.zeros(1, np.float32)}])
    rows = client.pull("users", ids)
    client.push({"users": (ids, gradients)}, {"bias": gradient}, learning_rate=0.1)

docs/parameter-server.md is the user's guide.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from elasticdl.arrays import Floats, Ids, checked_array, checked_mapping
from elasticdl.declaration import Declaration
from elasticdl.gradients import (
    LearningRate,
    NumberedRows,
    NumberedTensor,
    TableGradients,
    TensorGradients,
    checked_rates,
    clip,
)
from elasticdl.native_module import ParameterError, _native
from elasticdl.prefetch import Prefetch
from elasticdl.pushes import BatchPosition, Outcome, PendingPush, PushResult, UnsentPush
from elasticdl.shards import OpenedShard, ShardKey
from elasticdl.thread_state import ThreadStates

__all__ = ["OpenedShard", "Outcome", "ParameterClient", "ParameterError", "PendingPush", "Prefetch",
           "PushResult", "ShardKey"]

_T = TypeVar("_T")


class ParameterClient:
    """A client of one or more parameter servers (`elasticdl ps`).

    Thread-safe; a call releases the GIL while it waits. The batches that a thread pushes are
    applied in their order. A client does not survive a fork: its calls raise RuntimeError in the
    child, which has to make its own client.
    """

    def __init__(self, servers: str | Iterable[str], *, token: str | None = None,
                 token_file: str | os.PathLike[str] | None = None, transport: str = "auto",
                 timeout: float = 600.0, caller: str | None = None,
                 consistency: Mapping[str, Any] | None = None, managed: bool = False) -> None:
        """Connects to the servers, and waits for servers that do not run yet.

        servers: "host:port", or a list of them in the order of their --index.
        token, token_file: the token of the servers' --token_file, or that file.
        transport: "tcp", "shm" (shared memory), or "auto": shared memory with the servers of this
            machine that support it, TCP with all others.
        timeout: calls fail when a server sends nothing for this many seconds, whether it cannot be
            reached, hangs or delays a request. math.inf: calls wait without a limit.
        caller: name of this process in the logs and errors of the servers.
        consistency: default of the argument of `declare`.
        managed: a master restores the servers, as in a job (`job_client`). False: the restart of a
            server raises an error with code ABORTED, once in each thread, before the thread reads
            untrained rows.
        """
        if math.isnan(timeout) or timeout < 0:
            raise ValueError(f"timeout is {timeout}; it must be at least 0 seconds")
        if transport not in ("auto", "tcp", "shm"):
            raise ValueError(f'transport is {transport!r}; it is "auto", "tcp" or "shm"')
        if token is not None and token_file is not None:
            raise ValueError("token and token_file are both given; give one of them")
        if token_file is not None:
            token = _native.read_secret_file(os.fspath(token_file))
        if isinstance(servers, str):
            servers = servers.split(",")
        self._native = _native.Client(
            [_address(server) for server in servers], token or "",
            caller or f"process {os.getpid()}", transport, float(timeout), managed)
        # Also at the end of the program, so that no thread is left.
        self._closing = weakref.finalize(self, self._native.close)
        self._consistency = dict(consistency or {})
        self._tables: dict[str, tuple[int, int]] | None = None  # {name: (number, dim)}
        self._tensors: dict[str, tuple[int, tuple[int, ...]]] | None = None  # (number, shape)
        self._values: list[Floats] = []  # of tensors, from `declare`
        self._threads = ThreadStates(self._native)

    def declare(self, tables: Sequence[Mapping[str, Any]] = (),
                tensors: Sequence[Mapping[str, Any]] = (), seed: int = 0,
                consistency: Mapping[str, Any] | None = None) -> None:
        """Declares the parameters. All clients of the servers declare the same, each once.

        tables: dicts with `name`, `dim`, `initializer`, `optimizer` as in
            docs/formats/parameters.md; {"name": ..., "dim": ...} is enough.
        tensors: dicts with `name`, `value` (a NumPy array of float32 and any shape; servers that
            have no value yet take it), and `optimizer` (default: SGD) or `trainable=False`: without
            an optimizer a push adds its gradient to the tensor.
        seed: of new rows; a row is the same whichever client creates it.
        consistency: a dict with `gradients` (how many gradients a synchronous round has; 0 or 1:
            there are no rounds), `tolerance` (a gradient whose parameters are older than this many
            rounds is STALE) and `modulate` (without rounds: the learning rate is divided by the
            number of pushes since the parameters were pulled). {}, the default, is asynchronous.
        """
        if self._tables is not None:
            raise RuntimeError("this client has already declared its parameters")
        declaration = Declaration(tables, tensors, seed,
                                  self._consistency if consistency is None else consistency)
        self._native.declare(declaration.text, declaration.dims(), declaration.sizes())
        self._values = [value.copy() for value in declaration.values]
        self.put_first_values()
        self._tables = declaration.table_numbers()
        self._tensors = declaration.tensor_numbers()

    def put_first_values(self) -> None:
        """Sets tensors that have no value to the values of `declare` again: the successor of a
        server that was lost before the first checkpoint has no parameters."""
        if self._values:
            self._native.put(list(enumerate(self._values)))

    def pull(self, table: str, ids: Ids, create: bool = True) -> Floats:
        """Returns the rows of `ids` (int64, any shape) as an array of shape ids.shape + (dim,).

        create: whether to create the rows of new ids. False: returns the rows that would be
            created, as for an evaluation.
        """
        return self.pull_many({table: ids}, create)[table]

    def pull_many(self, ids: Mapping[str, Ids], create: bool = True) -> dict[str, Floats]:
        """{table: ids} -> {table: rows}, in one message to each server."""
        wanted = self._wanted(ids)
        with self._threads.reading():
            rows, versions = self._native.pull(wanted, create)
        if create:
            self._threads.note_pull(versions)
        return dict(zip(ids, rows))

    def prefetch(self, ids: Mapping[str, Ids], create: bool = True,
                 tensors: Iterable[str] = ()) -> Prefetch:
        """Starts to pull {table: ids} and the tensors of these names, and returns immediately: the
        rows of the next batch arrive while this batch is computed. They do not include what is
        pushed after this call.
        """
        names = list(tensors)
        shapes = [self._found(self._tensors, "tensor", name) for name in names]
        wanted = self._wanted(ids)
        self._threads.check_restarts()
        return Prefetch(self._native.start_pull(wanted, shapes, create), list(ids), names,
                        self._threads, create)

    def pull_tensors(self, names: Iterable[str] | None = None) -> dict[str, Floats]:
        """Returns {name: array} of these tensors, or of all tensors."""
        names = list(self._declared(self._tensors) if names is None else names)
        wanted = [self._found(self._tensors, "tensor", name) for name in names]
        with self._threads.reading():
            values, versions = self._native.pull_tensors(wanted)
        self._threads.note_pull(versions)
        return dict(zip(names, values))

    def push(self, tables: TableGradients | None = None, tensors: TensorGradients | None = None, *,
             learning_rate: LearningRate, at: tuple[int, ShardKey, int] | None = None,
             fail_on_nan: bool = False, clipnorm: float | None = None,
             global_clipnorm: float | None = None) -> PushResult:
        """Trains with the gradients of a batch, and returns a `PushResult`.

        tables: {table: (ids, gradients)}, gradients of shape ids.shape + (dim,). An id may come
            more than once: its gradients are summed.
        tensors: {name: gradient}, of the tensor's shape.
        learning_rate: a number, or {name: number} for each table and tensor of this push.
        at: (lease, shard, batch) in a shard that was opened. None: the client counts the batches of
            each thread.
        fail_on_nan: raises FloatingPointError for a batch that is refused because of NaN or
            infinity.
        clipnorm: scales the gradients of a table or tensor down to this norm if theirs is larger.
            The gradients of an id that comes more than once are summed before; Keras sums slices
            after clipping.
        global_clipnorm: the same for the norm of all gradients of this push together.

        A batch is applied once, even if the connection is lost during the push. Without `at`, the
        restart of a server raises an error with code ABORTED, because the server lacks batches of
        this client; the next push continues with the parameters that the servers have.

        In synchronous rounds the outcome may be STALE: pull, compute the batch again, and push
        it (without `at` as the next one). Each parameter is still changed once by the batch.
        """
        gradients = self._gradients(tables, tensors, learning_rate, clipnorm, global_clipnorm)
        position, versions = self._next_position(at, fail_on_nan)
        return position.finish(lambda: self._native.push(*position.ids, *gradients, versions,
                                                         position.opens))

    def push_async(self, tables: TableGradients | None = None,
                   tensors: TensorGradients | None = None, *, learning_rate: LearningRate,
                   at: tuple[int, ShardKey, int] | None = None, fail_on_nan: bool = False,
                   clipnorm: float | None = None,
                   global_clipnorm: float | None = None) -> PendingPush:
        """Starts a `push` and returns a `PendingPush` immediately: the batch is sent while the next
        one is computed. The arrays may change as soon as this returns.

        Call `result()` of each, in the order in which they were started: only it returns the
        outcome of the batch. Pulls after this call include the batch.
        """
        gradients = self._gradients(tables, tensors, learning_rate, clipnorm, global_clipnorm)
        if not self._threads.knows_restarts():  # `result()` raises it, as for batches in flight
            return PendingPush(UnsentPush(), BatchPosition.at((0, ShardKey(0), 0), fail_on_nan,
                                                              self._threads))
        position, versions = self._next_position(at, fail_on_nan)
        return PendingPush(
            position.attempt(lambda: self._native.start_push(*position.ids, *gradients, versions,
                                                             position.opens)), position)

    def open_shard(self, lease: int, shard: ShardKey, at_least: int = 0) -> OpenedShard:
        """Opens a shard for pushes under a lease, and returns an `OpenedShard`. Older leases of the
        shard are fenced from now on. A lease that has ended raises an error with code ABORTED.

        at_least: the epoch of the servers, from the master. A server with a lower epoch was
            replaced and does not know it: the client disconnects and waits for its successor.
        """
        return OpenedShard(*self._native.open(lease, tuple(ShardKey(*shard)), at_least))

    def flush(self) -> None:
        """Closes open synchronous rounds with the gradients that they have, because no more will
        come. The master of a job does it at the end of the data."""
        self._native.flush()

    def save(self, folder: str | os.PathLike[str]) -> int:
        """Saves all parameters to a new folder, and returns its size in bytes. The servers write to
        the folder under the same path. Pulls and pushes continue meanwhile."""
        return self._native.save(os.fspath(folder))[0]

    def restore(self, folder: str | os.PathLike[str]) -> int:
        """Loads a checkpoint, which any number of servers may have saved, into servers that have no
        parameters yet. Returns the number of rows. Call this before `declare`, which would set the
        first values of tensors; or, after a restart of servers, when a call raised ABORTED."""
        rows = self._native.restore(os.fspath(folder))
        self._threads.reset()
        return rows

    def close(self) -> None:
        """Closes the connections. Calls that are waiting fail with code CANCELLED."""
        self._closing()

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _gradients(
            self, tables: TableGradients | None, tensors: TensorGradients | None,
            learning_rate: LearningRate, clipnorm: float | None, global_clipnorm: float | None,
    ) -> tuple[list[NumberedRows], list[NumberedTensor]]:
        tables = checked_mapping(tables, "tables", "{table: (ids, gradients)}")
        tensors = checked_mapping(tensors, "tensors", "{tensor: gradient}")
        rate = checked_rates(learning_rate, [*tables, *tensors])
        rows = [self._row_gradients(name, gradient, rate(name))
                for name, gradient in tables.items()]
        values = [self._tensor_gradient(name, gradient, rate(name))
                  for name, gradient in tensors.items()]
        return clip(rows, values, clipnorm, global_clipnorm)

    def _next_position(
            self, at: tuple[int, ShardKey, int] | None, fail_on_nan: bool,
    ) -> tuple[BatchPosition, _native.PulledVersions | None]:
        self._threads.check_restarts()
        versions = self._threads.versions()
        self._threads.note_push()
        if at is not None:
            return BatchPosition.at(at, fail_on_nan, self._threads), versions
        return BatchPosition.next_own(fail_on_nan, self._threads), versions

    def _declared(self, names: dict[str, _T] | None) -> dict[str, _T]:
        if names is None:
            raise RuntimeError("this client has not declared its parameters: call declare() first")
        return names

    def _found(self, names: dict[str, _T] | None, kind: str, name: str) -> _T:
        declared = self._declared(names)
        try:
            return declared[name]
        except KeyError:
            raise KeyError(f"no {kind} {name!r} was declared; the {kind}s are: "
                           f"{', '.join(map(repr, declared))}") from None

    def _wanted(self, ids: Mapping[str, Ids]) -> list[tuple[int, Ids]]:
        return [(self._found(self._tables, "table", name)[0],
                 checked_array(array, np.int64, f"ids of table {name!r}"))
                for name, array in checked_mapping(ids, "ids", "{table: ids}").items()]

    def _row_gradients(self, name: str, given: tuple[Ids, Floats], rate: float) -> NumberedRows:
        number, dim = self._found(self._tables, "table", name)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError(f"table {name!r} is given a {type(given).__name__}; a push takes "
                            "{table: (ids, gradients)}")
        ids = checked_array(given[0], np.int64, f"ids of table {name!r}")
        gradients = checked_array(given[1], np.float32, f"gradients of table {name!r}")
        if gradients.shape != (*ids.shape, dim):
            raise ValueError(f"gradients of table {name!r} have shape {gradients.shape}; ids of "
                             f"shape {ids.shape} want {(*ids.shape, dim)}")
        return number, ids, gradients, rate

    def _tensor_gradient(self, name: str, gradient: Floats, rate: float) -> NumberedTensor:
        number, shape = self._found(self._tensors, "tensor", name)
        gradient = checked_array(gradient, np.float32, f"the gradient of tensor {name!r}")
        if gradient.shape != shape:
            raise ValueError(f"the gradient of tensor {name!r} has shape {gradient.shape}, and "
                             f"the tensor {shape}")
        return number, gradient, rate


def _address(server: str) -> tuple[str, int]:
    if not isinstance(server, str):
        raise TypeError(f'a server is a {type(server).__name__}; it must be a string "host:port"')
    return _native.parse_host_port(server.strip())
