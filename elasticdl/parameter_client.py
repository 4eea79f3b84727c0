"""Parameters that live on parameter servers: pulled, pushed, trained there, saved and restored.

    client = ParameterClient("127.0.0.1:40001")
    client.declare(tables=[{"name": "users", "dim": 16}],
                   tensors=[{"name": "bias", "value": np.zeros(1, np.float32)}])
    rows = client.pull("users", ids)
    client.push({"users": (ids, gradients)}, {"bias": gradient}, learning_rate=0.1)

docs/parameter-server.md tells the rest.
"""

from __future__ import annotations

import enum
import json
import math
import operator
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar, Union

import numpy as np
import numpy.typing as npt

from elasticdl.optimizers import check_optimizer

try:
    from elasticdl import _native
except ImportError as error:
    raise ImportError(f"elasticdl._native cannot be loaded ({error}); in a clone it is made by: "
                      "make setup native") from error

ParameterError = _native.ParameterError

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
# {table: (ids, gradients)}, {tensor: gradient}, and a number or {name: number}.
TableGradients = Mapping[str, tuple[Ids, Floats]]
TensorGradients = Mapping[str, Floats]
LearningRate = Union[float, Mapping[str, float]]
_T = TypeVar("_T")
_TableGradient = tuple[int, Ids, Floats, float]
_TensorGradient = tuple[int, Floats, float]

_LARGEST_FLOAT = float(np.finfo(np.float32).max)

# The lease of a client's own batches. No master gives it out, and none can outdate it.
OWN_LEASE = 2**64 - 1


class Outcome(enum.Enum):
    """What became of a batch."""

    # The numbers are those of wire::PushAnswer::Outcome.
    APPLIED = _native.OUTCOMES["APPLIED"]  # every server has it, once
    AHEAD = _native.OUTCOMES["AHEAD"]  # a batch before it is missing; `mark` is the first
    NOT_OPEN = _native.OUTCOMES["NOT_OPEN"]  # the shard is not open, as after a server's restart
    FENCED = _native.OUTCOMES["FENCED"]  # another one has the shard now
    STALE = _native.OUTCOMES["STALE"]  # its parameters were too old for the round: pull, and
    #                                    compute it again
    # The client's own finding, of a batch that the servers applied.
    REFUSED = -1  # its gradients held NaN or infinity: it was counted, and changed nothing


class PushResult(NamedTuple):
    outcome: Outcome
    mark: int  # batches that all servers have

    @property
    def applied(self) -> bool:
        return self.outcome is Outcome.APPLIED


class OpenedShard(NamedTuple):
    """What the servers have of a shard that was opened."""

    batches: int  # that all of them have: the first to push
    ps_epoch: int  # of the job's servers, to be named in the shard's report; 0: there is no master


class ShardKey(NamedTuple):
    """A shard of a dataset in one epoch; its batches are counted from 0."""

    ledger: int
    dataset: int = 0
    generation: int = 0
    epoch: int = 0
    ordinal: int = 0


class Prefetch:
    """Rows and tensors on their way, of `ParameterClient.prefetch`."""

    def __init__(self, native: _native.Prefetch, tables: list[str], tensors: list[str],
                 threads: _Threads, create: bool) -> None:
        self._native = native
        self._names = tables, tensors
        self._threads = threads
        self._create = create
        self._taken: tuple[dict[str, tuple[Floats, npt.NDArray[np.int32], Ids]],
                           dict[str, Floats]] | None = None

    def done(self) -> bool:
        """Whether `result` would not wait."""
        return self._native.done()

    def result(self) -> dict[str, tuple[Floats, npt.NDArray[np.int32]]]:
        """{table: (rows, inverse)}: a row for each distinct id, and for each id that was given
        the place of its row, so that rows[inverse] is what `pull` would have returned."""
        return {name: taken[:2] for name, taken in self._take()[0].items()}

    def ids(self) -> dict[str, Ids]:
        """{table: ids}, the distinct ids in the order of the rows: what gradients with respect
        to the rows are pushed with."""
        return {name: taken[2] for name, taken in self._take()[0].items()}

    def tensors(self) -> dict[str, Floats]:
        """{name: array} of the tensors that were asked for."""
        return self._take()[1]

    def _take(self) -> tuple[dict[str, tuple[Floats, npt.NDArray[np.int32], Ids]],
                             dict[str, Floats]]:
        if self._taken is None:
            with self._threads.told():
                tables, tensors = self._native.take()
            self._taken = (dict(zip(self._names[0], tables)), dict(zip(self._names[1], tensors)))
            if self._create:
                self._threads.pulled(self._native.versions())
        return self._taken


class PendingPush:
    """A batch on its way, of `ParameterClient.push_async`."""

    def __init__(self, native: _native.PendingPush | _UnsentPush, place: _Place) -> None:
        self._native = native
        self._place = place

    def done(self) -> bool:
        """Whether `result` would not wait."""
        return self._native.done()

    def result(self) -> PushResult:
        """Waits, and returns or raises what `push` would have."""
        return self._place.finish(self._native.result)


def _restarted(message: str = "a parameter server was started anew and lacks what this client "
                              "trained: restore a checkpoint, or go on with what the servers have",
               ) -> ParameterError:
    error = ParameterError(message)
    error.code = "ABORTED"
    return error


class _UnsentPush:
    """A batch that was computed with parameters of a server that is gone."""

    def done(self) -> bool:
        return True

    def result(self) -> tuple[int, int, bool]:
        raise _restarted()


class _Threads:
    """What each thread of the program knows of the servers: which batches it counts by itself, how
    old the parameters are that it pulled last, and of which restarts it was told. Thread-safe."""

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        self.reset()

    def reset(self) -> None:
        """Begins anew, for all threads."""
        self._known_restarts = self._native.restarts()
        self._local = threading.local()

    @property
    def own(self) -> _OwnShard | None:
        return getattr(self._local, "own", None)

    @own.setter
    def own(self, shard: _OwnShard) -> None:
        self._local.own = shard

    def told(self) -> _Told:
        """The context of a call that reads or writes parameters."""
        return _Told(self)

    def check(self) -> None:
        """Raises once in each thread when a server was started anew."""
        if self.is_told():
            return
        self.note()
        raise _restarted()

    def is_told(self) -> bool:
        """Whether this thread knows of all restarts."""
        return self._native.restarts() == self._seen()

    def note(self) -> None:
        """This thread knows of all restarts so far; batches that it counted are lost."""
        self._local.restarts = self._native.restarts()
        if self.own is not None:
            self.own.is_broken = True

    def _seen(self) -> int:
        return getattr(self._local, "restarts", self._known_restarts)

    def pulled(self, versions: _native.PulledVersions) -> None:
        """A batch is computed with what all pulls since the last push brought: it is as old as the
        oldest of them."""
        before = None if self._pushed() else self.versions()
        self._local.versions = versions if before is None else before.oldest(versions)
        self._local.pushed = False

    def versions(self) -> _native.PulledVersions | None:
        return getattr(self._local, "versions", None)

    def pushed(self) -> None:
        self._local.pushed = True

    def _pushed(self) -> bool:
        return getattr(self._local, "pushed", True)


class _Told:
    """Sees to it that a thread is told of a restart once, before it reads untrained rows."""

    def __init__(self, threads: _Threads) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._threads.check()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, ParameterError) and error.code == "ABORTED":
            self._threads.note()


class _OwnShard:
    """Batches that a thread counts by itself."""

    def __init__(self) -> None:
        self.key = ShardKey(secrets.randbits(64))
        self.batches = 0
        self.stale_from: int | None = None  # the first batch that is to be computed again
        self.is_broken = False

    def look(self, batch: int, outcome: Outcome) -> Outcome:
        """The outcome of a batch as its sender sees it: after one that was stale, those on their
        way behind it are to be computed again too, and take its and their numbers."""
        if self.stale_from is not None and batch >= self.stale_from:
            if outcome is Outcome.AHEAD:
                return Outcome.STALE
            if batch == self.stale_from and outcome is not Outcome.STALE:
                self.stale_from = None
        if outcome is Outcome.STALE:
            self.batches = self.stale_from = batch
        return outcome


class _Place:
    """Of a push, among the batches of its shard."""

    def __init__(self, lease: int, shard: Sequence[int], batch: int, own: _OwnShard | None,
                 fail_on_nan: bool, threads: _Threads) -> None:
        self.names = lease, tuple(ShardKey(*shard)), batch
        self.opens = own is not None and batch == 0
        self._own = own  # None: somebody else counts
        self._fail_on_nan = fail_on_nan
        self._threads = threads

    def attempt(self, act: Callable[[], _T]) -> _T:
        try:
            return act()
        except BaseException as error:
            # The batch is lost, or nobody knows: none after it in its shard can be applied.
            if self._own:
                self._own.is_broken = True
            if isinstance(error, ParameterError) and error.code == "ABORTED":
                self._threads.note()
            raise

    def finish(self, wait: Callable[[], tuple[int, int, bool]]) -> PushResult:
        """The result of what the servers say."""
        result = self.attempt(lambda: self._checked(*wait()))
        if self._fail_on_nan and result.outcome is Outcome.REFUSED:
            raise FloatingPointError("a gradient of this batch is NaN or infinite; the batch "
                                     "changed nothing")
        return result

    def _checked(self, outcome_number: int, mark: int, refused: bool) -> PushResult:
        outcome = Outcome(outcome_number)
        if refused and outcome is Outcome.APPLIED:
            outcome = Outcome.REFUSED
        if self._own:
            outcome = self._own.look(self.names[2], outcome)
        result = PushResult(outcome, mark)
        if self._own and outcome not in (Outcome.APPLIED, Outcome.REFUSED, Outcome.STALE):
            raise _restarted(
                "a parameter server was started anew and lacks batches of this client: restore a "
                "checkpoint, or go on with what the servers have")
        return result


class ParameterClient:
    """Parameters on one or more servers (`elasticdl ps`).

    Any thread may call it, and none holds the GIL while it waits. Batches that a thread pushes
    are applied in its order. A client does not survive a fork: make it in the child; calls of a
    client that was made before the fork raise RuntimeError there.
    """

    def __init__(self, servers: str | Iterable[str], *, token: str | None = None,
                 token_file: str | os.PathLike[str] | None = None, transport: str = "auto",
                 timeout: float = 600.0, caller: str | None = None,
                 consistency: Mapping[str, Any] | None = None, managed: bool = False) -> None:
        """Connects, and waits for servers that are not there yet.

        servers: "host:port", or a list of them in the order of their --index.
        token, token_file: what the servers were given by --token_file, or the file.
        transport: "tcp", "shm" (shared memory), or "auto": shared memory with the servers of this
            machine that can be reached so, TCP with all others.
        timeout: calls fail when a server brings nothing for so many seconds, whether it is away,
            hangs or keeps a request waiting. math.inf: they wait as long as it takes.
        caller: who this is, in messages of the server.
        consistency: of `declare`, where it is not given there.
        managed: the servers have a master that restores them, as `job_client` knows. Otherwise a
            server that was started anew is an error with code ABORTED, once in each thread, before
            its untrained rows are read.
        """
        if math.isnan(timeout) or timeout < 0:
            raise ValueError(f"timeout is {timeout}; it must be at least 0 seconds")
        if transport not in ("auto", "tcp", "shm"):
            raise ValueError(f'transport is {transport!r}; it is "auto", "tcp" or "shm"')
        if token is not None and token_file is not None:
            raise ValueError("token and token_file are both given")
        if token_file is not None:
            token = _native.read_secret_file(os.fspath(token_file))
        if isinstance(servers, str):
            servers = servers.split(",")
        self._native = _native.Client(
            [_address(server) for server in servers], token or "",
            caller or f"process {os.getpid()}", transport, float(timeout), managed)
        # Also at the end of the program: no thread is left behind.
        self._closing = weakref.finalize(self, self._native.close)
        self._consistency = dict(consistency or {})
        self._tables: dict[str, tuple[int, int]] | None = None  # name -> (number, dim)
        self._tensors: dict[str, tuple[int, tuple[int, ...]]] | None = None  # (number, shape)
        self._values: list[Floats] = []  # of tensors, as they were declared
        self._threads = _Threads(self._native)

    def declare(self, tables: Sequence[Mapping[str, Any]] = (),
                tensors: Sequence[Mapping[str, Any]] = (), seed: int = 0,
                consistency: Mapping[str, Any] | None = None) -> None:
        """Names the parameters. All clients of the servers declare the same, each once.

        tables: dicts with `name`, `dim`, `initializer`, `optimizer` as in
            docs/formats/parameters.md; {"name": ..., "dim": ...} is enough.
        tensors: dicts with `name`, `value` (a NumPy array of float32 and any shape, which is taken
            by servers that have none yet), `optimizer` (SGD unless said) or `trainable=False`: no
            optimizer, and a push adds what it carries.
        seed: of the rows; a row is the same whoever asks for it first.
        consistency: a dict with `gradients` (a synchronous round has so many; 0 or 1: there are
            no rounds), `tolerance` (a gradient of parameters that are more rounds old is refused
            as STALE) and `modulate` (without rounds: learning rates are divided by how many pushes
            came since the parameters were pulled). {}, the default, is asynchronous.
        """
        if self._tables is not None:
            raise RuntimeError("this client has declared its parameters already")
        described_tables = [_table_of(table) for table in _specs(tables, "tables")]
        values, described = [], []
        for tensor in _specs(tensors, "tensors"):
            text, value = _tensor_of(tensor)
            described.append(text)
            values.append(value)
        for kind, specs in (("table", described_tables), ("tensor", described)):
            names = [spec["name"] for spec in specs]
            if len(set(names)) != len(names):
                raise ValueError(f"two {kind}s have the same name: {sorted(names)}")
        dims = [table["dim"] for table in described_tables]
        declared = {"seed": _integer(seed, "seed"), "tables": described_tables,
                    "tensors": described,
                    "consistency": self._consistency if consistency is None else consistency}
        try:
            text = json.dumps(declared, allow_nan=False, default=_plain)
        except ValueError as error:
            raise ValueError(f"the declaration holds NaN or infinity: {error}") from None
        self._native.declare(text, dims, [(spec["name"], spec["size"]) for spec in described])
        self._values = [value.copy() for value in values]
        self.put_first_values()
        self._tables = {table["name"]: (number, dims[number])
                        for number, table in enumerate(described_tables)}
        self._tensors = {spec["name"]: (number, value.shape)
                         for number, (spec, value) in enumerate(zip(described, values))}

    def put_first_values(self) -> None:
        """Gives tensors that have none the values of `declare` once more: a server that was lost
        before the first checkpoint has come back with nothing."""
        if self._values:
            self._native.put(list(enumerate(self._values)))

    def pull(self, table: str, ids: Ids, create: bool = True) -> Floats:
        """The rows of `ids` (int64, any shape) as an array of shape ids.shape + (dim,).

        An id without a row gets one; with create=False it is only told what it would be, as
        for an evaluation.
        """
        return self.pull_many({table: ids}, create)[table]

    def pull_many(self, ids: Mapping[str, Ids], create: bool = True) -> dict[str, Floats]:
        """{table: ids} -> {table: rows}, in one message to each server."""
        wanted = self._wanted(ids)
        with self._threads.told():
            rows, versions = self._native.pull(wanted, create)
        if create:
            self._threads.pulled(versions)
        return dict(zip(ids, rows))

    def prefetch(self, ids: Mapping[str, Ids], create: bool = True,
                 tensors: Iterable[str] = ()) -> Prefetch:
        """Starts to pull {table: ids}, and the tensors of these names, and returns at once: the
        rows of the next batch come while this one is computed. They are as old as this call: what
        is pushed later is not in them.
        """
        names = list(tensors)
        shapes = [self._found(self._tensors, "tensor", name) for name in names]
        wanted = self._wanted(ids)
        self._threads.check()
        return Prefetch(self._native.start_pull(wanted, shapes, create), list(ids), names,
                        self._threads, create)

    def pull_tensors(self, names: Iterable[str] | None = None) -> dict[str, Floats]:
        """{name: array} of these tensors, or of all."""
        names = list(self._declared(self._tensors) if names is None else names)
        wanted = [self._found(self._tensors, "tensor", name) for name in names]
        with self._threads.told():
            values, versions = self._native.pull_tensors(wanted)
        self._threads.pulled(versions)
        return dict(zip(names, values))

    def push(self, tables: TableGradients | None = None, tensors: TensorGradients | None = None, *,
             learning_rate: LearningRate, at: tuple[int, ShardKey, int] | None = None,
             fail_on_nan: bool = False, clipnorm: float | None = None,
             global_clipnorm: float | None = None) -> PushResult:
        """Trains with the gradients of a batch, and returns a `PushResult`.

        tables: {table: (ids, gradients)}, gradients of shape ids.shape + (dim,). An id may come
            more than once: its gradients are added.
        tensors: {name: gradient}, of the tensor's shape.
        learning_rate: a number, or {name: number} for each table and tensor of this push.
        at: (lease, shard, batch) in a shard that was opened; without it the client counts its
            batches by itself.
        fail_on_nan: a batch that is refused for NaN or infinity raises FloatingPointError.
        clipnorm: gradients of a table or tensor whose norm is larger are scaled down to it. Those
            of an id that comes more than once are added before; of slices, Keras adds them after.
        global_clipnorm: the same for the norm of all gradients of this push together.

        A batch is applied once, also when the connection is lost in the middle. Without `at`, a
        server that was started anew, and so lacks batches of this client, is an error with code
        ABORTED; the push after it goes on with what the servers have.

        In synchronous rounds the outcome may be STALE: pull, compute the batch again, and push
        it (without `at` as the next one). It changes each parameter once all the same.
        """
        gradients = self._gradients(tables, tensors, learning_rate, clipnorm, global_clipnorm)
        place, versions = self._place(at, fail_on_nan)
        return place.finish(lambda: self._native.push(*place.names, *gradients, versions,
                                                      place.opens))

    def push_async(self, tables: TableGradients | None = None,
                   tensors: TensorGradients | None = None, *, learning_rate: LearningRate,
                   at: tuple[int, ShardKey, int] | None = None, fail_on_nan: bool = False,
                   clipnorm: float | None = None,
                   global_clipnorm: float | None = None) -> PendingPush:
        """Starts a `push` and returns a `PendingPush` at once: the batch travels while the next
        one is computed. The arrays may change as soon as this returns.

        Wait for each with `result()`, in the order in which they were started: what became of a
        batch is told there alone. What is pulled after this call has the batch in it.
        """
        gradients = self._gradients(tables, tensors, learning_rate, clipnorm, global_clipnorm)
        if not self._threads.is_told():  # `result()` raises it, as for batches that were sent
            return PendingPush(_UnsentPush(), _Place(0, ShardKey(0), 0, None, fail_on_nan,
                                                     self._threads))
        place, versions = self._place(at, fail_on_nan)
        return PendingPush(
            place.attempt(lambda: self._native.start_push(*place.names, *gradients, versions,
                                                          place.opens)), place)

    def open_shard(self, lease: int, shard: ShardKey, at_least: int = 0) -> OpenedShard:
        """Says that this client is about to push the batches of a `ShardKey` under a lease, and
        returns an `OpenedShard`. A lower lease is fenced from now on; one that is over is an error
        with code ABORTED.

        at_least: the epoch of the servers, as the master told it. A server that serves a lower one
        was replaced and does not know it: it is left, and its successor is waited for.
        """
        return OpenedShard(*self._native.open(lease, tuple(ShardKey(*shard)), at_least))

    def flush(self) -> None:
        """Applies synchronous rounds that are not full with what they have: nobody will fill
        them. The master of a job does it at the end of the data."""
        self._native.flush()

    def save(self, folder: str | os.PathLike[str]) -> int:
        """Saves all parameters to a new folder that the servers can write, at paths that are
        the same for them; returns its bytes. Pulls and pushes go on meanwhile."""
        return self._native.save(os.fspath(folder))[0]

    def restore(self, folder: str | os.PathLike[str]) -> int:
        """Gives servers that have nothing yet the parameters of a checkpoint, saved by any number
        of servers; returns how many rows. Do it before `declare`, which would give tensors their
        first values; after a restart of the servers, do it when a call raised ABORTED."""
        rows = self._native.restore(os.fspath(folder))
        self._threads.reset()
        return rows

    def close(self) -> None:
        """Ends the connections; calls that wait fail with code CANCELLED."""
        self._closing()

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _gradients(
            self, tables: TableGradients | None, tensors: TensorGradients | None,
            learning_rate: LearningRate, clipnorm: float | None, global_clipnorm: float | None,
    ) -> tuple[list[_TableGradient], list[_TensorGradient]]:
        tables = _mapping(tables, "tables", "{table: (ids, gradients)}")
        tensors = _mapping(tensors, "tensors", "{tensor: gradient}")
        rate = _rates(learning_rate, [*tables, *tensors])
        checked = ([self._row_gradient(name, gradient, rate(name))
                    for name, gradient in tables.items()],
                   [self._tensor_gradient(name, gradient, rate(name))
                    for name, gradient in tensors.items()])
        if clipnorm is None and global_clipnorm is None:
            return checked
        return _clipped(*checked, clipnorm, global_clipnorm)

    def _place(self, at: tuple[int, ShardKey, int] | None,
               fail_on_nan: bool) -> tuple[_Place, _native.PulledVersions | None]:
        self._threads.check()
        versions = self._threads.versions()
        self._threads.pushed()
        if at is not None:
            return _Place(*at, None, fail_on_nan, self._threads), versions
        own = self._threads.own
        if own is None or own.is_broken:
            own = self._threads.own = _OwnShard()
        own.batches += 1
        return _Place(OWN_LEASE, own.key, own.batches - 1, own, fail_on_nan,
                      self._threads), versions

    def _declared(self, names: dict[str, _T] | None) -> dict[str, _T]:
        if names is None:
            raise RuntimeError("this client has not declared its parameters yet")
        return names

    def _found(self, names: dict[str, _T] | None, kind: str, name: str) -> _T:
        declared = self._declared(names)
        try:
            return declared[name]
        except KeyError:
            raise KeyError(f"no {kind} {name!r} was declared; there are: "
                           f"{', '.join(map(repr, declared))}") from None

    def _wanted(self, ids: Mapping[str, Ids]) -> list[tuple[int, Ids]]:
        return [(self._found(self._tables, "table", name)[0],
                 _checked(array, np.int64, f"ids of table {name!r}"))
                for name, array in _mapping(ids, "ids", "{table: ids}").items()]

    def _row_gradient(self, name: str, given: tuple[Ids, Floats], rate: float) -> _TableGradient:
        number, dim = self._found(self._tables, "table", name)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError(f"table {name!r} is given a {type(given).__name__}; a push takes "
                            "{table: (ids, gradients)}")
        ids = _checked(given[0], np.int64, f"ids of table {name!r}")
        gradients = _checked(given[1], np.float32, f"gradients of table {name!r}")
        if gradients.shape != (*ids.shape, dim):
            raise ValueError(f"gradients of table {name!r} have shape {gradients.shape}; ids of "
                             f"shape {ids.shape} want {(*ids.shape, dim)}")
        return number, ids, gradients, rate

    def _tensor_gradient(self, name: str, gradient: Floats, rate: float) -> _TensorGradient:
        number, shape = self._found(self._tensors, "tensor", name)
        gradient = _checked(gradient, np.float32, f"the gradient of tensor {name!r}")
        if gradient.shape != shape:
            raise ValueError(f"the gradient of tensor {name!r} has shape {gradient.shape}, and "
                             f"the tensor {shape}")
        return number, gradient, rate


def _address(server: str) -> tuple[str, int]:
    if not isinstance(server, str):
        raise TypeError(f'a server is a {type(server).__name__}; it must be a string "host:port"')
    return _native.parse_host_port(server.strip())


def _mapping(given: Mapping[str, _T] | None, what: str, form: str) -> Mapping[str, _T]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a {type(given).__name__}; it must be a dict {form}")
    return given


def _specs(given: Sequence[Mapping[str, Any]], what: str) -> list[dict[str, Any]]:
    """The dicts of a declaration."""
    if isinstance(given, (Mapping, str)):
        raise TypeError(f"{what} is a {type(given).__name__}; it must be a list of dicts, such as "
                        f'[{{"name": "users", ...}}]')
    specs = list(given)
    for spec in specs:
        if not isinstance(spec, Mapping):
            raise TypeError(f"{what} holds a {type(spec).__name__}; it must be a list of dicts")
        for field in spec:
            if not isinstance(field, str):
                raise TypeError(f"{what}: field {field!r} is no string")
    return [dict(spec) for spec in specs]


def _required(spec: Mapping[str, Any], field: str, kind: str) -> Any:
    try:
        return spec[field]
    except KeyError:
        raise ValueError(f"a {kind} has no {field!r}: {spec}") from None


def _integer(value: Any, what: str) -> int:
    """An integer of any kind, NumPy's too, as one of Python's."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; it must be an integer") from None


def _plain(value: Any) -> Any:
    """A number of NumPy's as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a declaration holds {value!r}, a {type(value).__name__}; it may hold dicts, "
                    "lists, strings, numbers and booleans")


def _name_of(spec: Mapping[str, Any], kind: str) -> str:
    name = _required(spec, "name", kind)
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} is {name!r}; it must be a string")
    return name


def _table_of(table: dict[str, Any]) -> dict[str, Any]:
    """What is declared of a table."""
    name = _name_of(table, "table")
    described = {**table, "dim": _integer(_required(table, "dim", "table"),
                                          f"dim of table {name!r}")}
    check_optimizer(table.get("optimizer"), f"table {name!r}")
    return described


def _tensor_of(tensor: dict[str, Any]) -> tuple[dict[str, Any], Floats]:
    """What is declared of a tensor, and its value."""
    name = _name_of(tensor, "tensor")
    value = _checked(_required(tensor, "value", "tensor"), np.float32, f"value of tensor {name!r}")
    unknown = set(tensor) - {"name", "value", "optimizer", "trainable"}
    if unknown:
        raise ValueError(f"tensor {name!r} has {sorted(unknown)}; it may have name, value, "
                         "optimizer, trainable")
    text: dict[str, Any] = {"name": name, "size": value.size}
    if tensor.get("trainable", True):
        text["optimizer"] = tensor.get("optimizer", {"name": "SGD"})
        check_optimizer(text["optimizer"], f"tensor {name!r}")
    elif "optimizer" in tensor:
        raise ValueError(f"tensor {name!r} has an optimizer and trainable=False")
    return text, value


def _checked(array: Any, dtype: type, what: str) -> npt.NDArray[Any]:
    """The array itself: it is used where it lies."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} are no NumPy array: {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{what} are of {array.dtype}; {np.dtype(dtype)} is needed")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{what} do not lie in one piece; np.ascontiguousarray() makes it so")
    return array


def _clipped(
        tables: list[_TableGradient], tensors: list[_TensorGradient], clipnorm: float | None,
        global_clipnorm: float | None,
) -> tuple[list[_TableGradient], list[_TensorGradient]]:
    """The gradients, scaled down where their norm is too large. The rows of a push are of many
    servers, so only who has all of them knows it."""
    if clipnorm is not None and global_clipnorm is not None:
        raise ValueError("clipnorm and global_clipnorm are both given")
    most = global_clipnorm if clipnorm is None else clipnorm
    if most is None or not (math.isfinite(most) and most > 0):
        raise ValueError(f"a norm is clipped to {most}; it must be a number above 0")
    sums = [_summed(ids, gradients) for _, ids, gradients, _ in tables]
    arrays = [gradients for _, gradients in sums] + [gradient for _, gradient, _ in tensors]
    norms = [math.sqrt(np.sum(np.square(array, dtype=np.float64))) for array in arrays]
    if clipnorm is None:
        norms = [math.hypot(*norms)] * len(norms)
    # What is no number is for the servers to refuse.
    arrays = [array * np.float32(most / norm) if norm > most else array
              for array, norm in zip(arrays, norms)]
    return ([(number, ids, array, rate)
             for (number, *_, rate), (ids, _), array in zip(tables, sums, arrays)],
            [(number, array, rate)
             for (number, _, rate), array in zip(tensors, arrays[len(tables):])])


def _summed(ids: Ids, gradients: Floats) -> tuple[Ids, Floats]:
    """Distinct ids, and the sum of the gradients of each."""
    distinct, places = np.unique(ids, return_inverse=True)
    if distinct.size == ids.size:
        return ids, gradients
    sums = np.zeros((distinct.size, gradients.shape[-1]), np.float32)
    np.add.at(sums, places.ravel(), gradients.reshape(ids.size, -1))
    return distinct, sums


def _rates(learning_rate: LearningRate, names: list[str]) -> Callable[[str], float]:
    """A function of a name. Every rate is checked before anything is sent."""
    rates = ({name: learning_rate[name] for name in names if name in learning_rate}
             if isinstance(learning_rate, Mapping) else dict.fromkeys(names, learning_rate))
    for name in names:
        if name not in rates:
            raise ValueError(f"learning_rate has nothing for {name!r}")
        rate = rates[name]
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number)):
            raise TypeError(f"the learning rate of {name!r} is {rate!r}; it must be a number")
        # Servers compute in 32 bits, in which 1e39 is infinite.
        if not abs(float(rate)) <= _LARGEST_FLOAT:
            raise ValueError(f"the learning rate of {name!r} is {rate}; it must be finite as "
                             f"float32, at most {_LARGEST_FLOAT:.3g}")
    return lambda name: float(rates[name])
