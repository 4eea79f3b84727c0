"""Parameters that live on parameter servers: pulled, pushed, trained there, saved and restored.

    client = ParameterClient("127.0.0.1:40001")
    client.declare(tables=[{"name": "users", "dim": 16}],
                   tensors=[{"name": "bias", "value": np.zeros(1, np.float32)}])
    rows = client.pull("users", ids)
    client.push({"users": (ids, gradients)}, {"bias": gradient}, learning_rate=0.1)

docs/parameter-server.md tells the rest.
"""

import enum
import json
import math
import os
import secrets
import threading
import weakref
from typing import NamedTuple

import numpy as np

try:
    from elasticdl import _native
except ImportError as error:
    raise ImportError(f"elasticdl._native cannot be loaded ({error}); in a clone it is made by: "
                      "make setup native") from error

ParameterError = _native.ParameterError

# Of a client's own batches. No master gives it, and none can outdate it.
OWN_LEASE = 2**64 - 1


class Outcome(enum.Enum):
    """What became of a batch."""

    APPLIED = 0   # every server has it, once
    REFUSED = 1   # its gradients held NaN or infinity: it was counted, and changed nothing
    AHEAD = 2     # a batch before it is missing; `mark` is the first
    NOT_OPEN = 3  # the shard is not open, as after a restart of the server
    FENCED = 4    # another one has the shard now
    STALE = 5     # its parameters were too old for the round: pull, and compute it again


class PushResult(NamedTuple):
    outcome: Outcome
    mark: int  # batches that all servers have

    @property
    def applied(self):
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

    def __init__(self, native, tables, tensors):
        self._native = native
        self._names = tables, tensors
        self._taken = None

    def done(self):
        """Whether `result` would not wait."""
        return self._native.done()

    def result(self):
        """{table: (rows, inverse)}: a row for each distinct id, and for each id that was given
        the place of its row, so that rows[inverse] is what `pull` would have returned."""
        return {name: taken[:2] for name, taken in self._take()[0].items()}

    def ids(self):
        """{table: ids}, the distinct ids in the order of the rows: what gradients with respect
        to the rows are pushed with."""
        return {name: taken[2] for name, taken in self._take()[0].items()}

    def tensors(self):
        """{name: array} of the tensors that were asked for."""
        return self._take()[1]

    def _take(self):
        if self._taken is None:
            self._taken = [dict(zip(names, arrays))
                           for names, arrays in zip(self._names, self._native.take())]
        return self._taken


class PendingPush:
    """A batch on its way, of `ParameterClient.push_async`."""

    def __init__(self, native, place):
        self._native = native
        self._place = place

    def done(self):
        """Whether `result` would not wait."""
        return self._native.done()

    def result(self):
        """Waits, and returns or raises what `push` would have."""
        return self._place.finish(self._native.result)


class _OwnShard:
    """Batches that a thread counts by itself."""

    def __init__(self):
        self.key = ShardKey(secrets.randbits(64))
        self.batches = 0
        self.stale_from = None  # the first batch that is to be computed again
        self.is_broken = False

    def look(self, batch, outcome):
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

    def __init__(self, lease, shard, batch, own, fail_on_nan):
        self.names = lease, tuple(ShardKey(*shard)), batch
        self._own = own  # None: somebody else counts
        self._fail_on_nan = fail_on_nan

    def attempt(self, act):
        try:
            return act()
        except BaseException:
            # The batch is lost, or nobody knows: none after it in its shard can be applied.
            if self._own:
                self._own.is_broken = True
            raise

    def finish(self, wait):
        """The result of what the servers say."""
        result = self.attempt(lambda: self._checked(*wait()))
        if self._fail_on_nan and result.outcome is Outcome.REFUSED:
            raise FloatingPointError("a gradient of this batch is NaN or infinite; the batch "
                                     "changed nothing")
        return result

    def _checked(self, outcome, mark, refused):
        outcome = Outcome.REFUSED if refused and outcome == 0 else Outcome(outcome)
        if self._own:
            outcome = self._own.look(self.names[2], outcome)
        result = PushResult(outcome, mark)
        if self._own and outcome not in (Outcome.APPLIED, Outcome.REFUSED, Outcome.STALE):
            error = ParameterError(
                "a parameter server was started anew and lacks batches of this client: restore a "
                "checkpoint, or go on with what the servers have")
            error.code = "ABORTED"
            raise error
        return result


class ParameterClient:
    """Parameters on one or more servers (`elasticdl ps`).

    Any thread may call it, and none holds the GIL while it waits. Batches that a thread pushes
    are applied in its order. A client does not survive a fork: make it in the child.
    """

    def __init__(self, servers, *, token=None, token_file=None, transport="auto", patience=600.0,
                 caller=None, consistency=None):
        """Connects, and waits for servers that are not there yet.

        servers: "host:port", or a list of them in the order of their --index.
        token, token_file: what the servers were given by --token_file, or the file.
        transport: "tcp", "shm" (shared memory), or "auto": shared memory with the servers of this
            machine that can be reached so, TCP with all others.
        patience: for how many seconds a server may be away before calls fail.
        caller: who this is, in messages of the server.
        consistency: of `declare`, where it is not given there.
        """
        if transport not in ("auto", "tcp", "shm"):
            raise ValueError(f'transport is {transport!r}; it is "auto", "tcp" or "shm"')
        if token is not None and token_file is not None:
            raise ValueError("token and token_file are both given")
        if token_file is not None:
            with open(token_file, encoding="utf-8") as opened:
                token = opened.read().rstrip("\n")
        if isinstance(servers, str):
            servers = servers.split(",")
        self._native = _native.Client(
            [_address(server) for server in servers], token or "",
            caller or f"process {os.getpid()}", transport, float(patience))
        # Also at the end of the program: no thread is left behind.
        self._closing = weakref.finalize(self, self._native.close)
        self._consistency = consistency or {}
        self._tables = None  # name -> (number, dim)
        self._tensors = None  # name -> (number, shape)
        self._values = []  # of tensors, as they were declared
        self._own = threading.local()  # `shard` of each thread's pushes without `at`

    def declare(self, tables=(), tensors=(), seed=0, consistency=None):
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
        tables = [dict(table) for table in tables]
        values, described = [], []
        for tensor in tensors:
            text, value = _tensor_of(dict(tensor))
            described.append(text)
            values.append(value)
        for kind, specs in (("table", tables), ("tensor", described)):
            names = [_required(spec, "name", kind) for spec in specs]
            if len(set(names)) != len(names):
                raise ValueError(f"two {kind}s have the same name: {sorted(names)}")
        dims = [int(_required(table, "dim", "table")) for table in tables]
        text = json.dumps({"seed": seed, "tables": tables, "tensors": described,
                           "consistency": (self._consistency if consistency is None
                                           else consistency)}, allow_nan=False)
        self._native.declare(text, dims, [(spec["name"], spec["size"]) for spec in described])
        self._values = [value.copy() for value in values]
        self.put_first_values()
        self._tables = {table["name"]: (number, dims[number])
                        for number, table in enumerate(tables)}
        self._tensors = {spec["name"]: (number, value.shape)
                         for number, (spec, value) in enumerate(zip(described, values))}

    def put_first_values(self):
        """Gives tensors that have none the values of `declare` once more: a server that was lost
        before the first checkpoint has come back with nothing."""
        if self._values:
            self._native.put(list(enumerate(self._values)))

    def pull(self, table, ids, create=True):
        """The rows of `ids` (int64, any shape) as an array of shape ids.shape + (dim,).

        An id without a row gets one; with create=False it is only told what it would be, as
        for an evaluation.
        """
        return self._native.pull(self._wanted({table: ids}), create)[0]

    def pull_many(self, ids, create=True):
        """{table: ids} -> {table: rows}, in one message to each server."""
        return dict(zip(ids, self._native.pull(self._wanted(ids), create)))

    def prefetch(self, ids, create=True, tensors=()):
        """Starts to pull {table: ids}, and the tensors of these names, and returns at once: the
        rows of the next batch come while this one is computed. They are as old as this call: what
        is pushed later is not in them.
        """
        names = list(tensors)
        shapes = [self._found(self._tensors, "tensor", name) for name in names]
        return Prefetch(self._native.start_pull(self._wanted(ids), shapes, create), list(ids),
                        names)

    def pull_tensors(self, names=None):
        """{name: array} of these tensors, or of all."""
        names = list(self._declared(self._tensors) if names is None else names)
        wanted = [self._found(self._tensors, "tensor", name) for name in names]
        return dict(zip(names, self._native.pull_tensors(wanted)))

    def push(self, tables=None, tensors=None, *, learning_rate, at=None, fail_on_nan=False,
             clipnorm=None, global_clipnorm=None):
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
        place = self._place(at, fail_on_nan)
        return place.finish(lambda: self._native.push(*place.names, *gradients))

    def push_async(self, tables=None, tensors=None, *, learning_rate, at=None, fail_on_nan=False,
                   clipnorm=None, global_clipnorm=None):
        """Starts a `push` and returns a `PendingPush` at once: the batch travels while the next
        one is computed. The arrays may change as soon as this returns.

        Wait for each with `result()`, in the order in which they were started: what became of a
        batch is told there alone. What is pulled after this call has the batch in it.
        """
        gradients = self._gradients(tables, tensors, learning_rate, clipnorm, global_clipnorm)
        place = self._place(at, fail_on_nan)
        return PendingPush(
            place.attempt(lambda: self._native.start_push(*place.names, *gradients)), place)

    def open_shard(self, lease, shard):
        """Says that this client is about to push the batches of a `ShardKey` under a lease, and
        returns an `OpenedShard`. A lower lease is fenced from now on."""
        return OpenedShard(*self._native.open(lease, tuple(ShardKey(*shard))))

    def flush(self):
        """Applies synchronous rounds that are not full with what they have: nobody will fill
        them. The master of a job does it at the end of the data."""
        self._native.flush()

    def save(self, folder):
        """Saves all parameters to a new folder that the servers can write, at paths that are
        the same for them; returns its bytes. Pulls and pushes go on meanwhile."""
        return self._native.save(os.fspath(folder))[0]

    def restore(self, folder):
        """Gives servers that have nothing yet the parameters of a checkpoint, saved by any number
        of servers; returns how many rows. Do it before `declare`, which would give tensors their
        first values."""
        rows = self._native.restore(os.fspath(folder))
        self._own = threading.local()
        return rows

    def close(self):
        """Ends the connections; calls that wait fail with code CANCELLED."""
        self._closing()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def _gradients(self, tables, tensors, learning_rate, clipnorm, global_clipnorm):
        tables, tensors = tables or {}, tensors or {}
        rate = _rates(learning_rate, [*tables, *tensors])
        checked = ([self._row_gradient(name, *gradient, rate(name))
                    for name, gradient in tables.items()],
                   [self._tensor_gradient(name, gradient, rate(name))
                    for name, gradient in tensors.items()])
        if clipnorm is None and global_clipnorm is None:
            return checked
        return _clipped(*checked, clipnorm, global_clipnorm)

    def _place(self, at, fail_on_nan):
        if at is not None:
            return _Place(*at, None, fail_on_nan)
        own = getattr(self._own, "shard", None)
        if own is None or own.is_broken:
            own = _OwnShard()
            self._native.open(OWN_LEASE, tuple(own.key))
            self._own.shard = own
        own.batches += 1
        return _Place(OWN_LEASE, own.key, own.batches - 1, own, fail_on_nan)

    def _declared(self, names):
        if names is None:
            raise RuntimeError("this client has not declared its parameters yet")
        return names

    def _found(self, names, kind, name):
        try:
            return self._declared(names)[name]
        except KeyError:
            raise KeyError(f"no {kind} {name!r} was declared; there are: "
                           f"{', '.join(map(repr, names))}") from None

    def _wanted(self, ids):
        return [(self._found(self._tables, "table", name)[0],
                 _checked(array, np.int64, f"ids of table {name!r}"))
                for name, array in ids.items()]

    def _row_gradient(self, name, ids, gradients, rate):
        number, dim = self._found(self._tables, "table", name)
        ids = _checked(ids, np.int64, f"ids of table {name!r}")
        gradients = _checked(gradients, np.float32, f"gradients of table {name!r}")
        if gradients.shape != (*ids.shape, dim):
            raise ValueError(f"gradients of table {name!r} have shape {gradients.shape}; ids of "
                             f"shape {ids.shape} want {(*ids.shape, dim)}")
        return number, ids, gradients, rate

    def _tensor_gradient(self, name, gradient, rate):
        number, shape = self._found(self._tensors, "tensor", name)
        gradient = _checked(gradient, np.float32, f"the gradient of tensor {name!r}")
        if gradient.shape != shape:
            raise ValueError(f"the gradient of tensor {name!r} has shape {gradient.shape}, and "
                             f"the tensor {shape}")
        return number, gradient, rate


def _address(server):
    host, colon, port = server.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f'server {server!r} is not "host:port"')
    return host.strip("[]"), int(port)


def _required(spec, field, kind):
    try:
        return spec[field]
    except KeyError:
        raise ValueError(f"a {kind} has no {field!r}: {spec}") from None


def _tensor_of(tensor):
    """What is declared of a tensor, and its value."""
    name = _required(tensor, "name", "tensor")
    value = _checked(_required(tensor, "value", "tensor"), np.float32, f"value of tensor {name!r}")
    unknown = set(tensor) - {"name", "value", "optimizer", "trainable"}
    if unknown:
        raise ValueError(f"tensor {name!r} has {sorted(unknown)}; it may have name, value, "
                         "optimizer, trainable")
    text = {"name": name, "size": value.size}
    if tensor.get("trainable", True):
        text["optimizer"] = tensor.get("optimizer", {"name": "SGD"})
    elif "optimizer" in tensor:
        raise ValueError(f"tensor {name!r} has an optimizer and trainable=False")
    return text, value


def _checked(array, dtype, what):
    """The array itself: it is used where it lies."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} are no NumPy array: {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{what} are of {array.dtype}; {np.dtype(dtype)} is needed")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{what} do not lie in one piece; np.ascontiguousarray() makes it so")
    return array


def _clipped(tables, tensors, clipnorm, global_clipnorm):
    """The gradients, scaled down where their norm is too large. The rows of a push are of many
    servers, so only who has all of them knows it."""
    if clipnorm is not None and global_clipnorm is not None:
        raise ValueError("clipnorm and global_clipnorm are both given")
    most = global_clipnorm if clipnorm is None else clipnorm
    if not (math.isfinite(most) and most > 0):
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


def _summed(ids, gradients):
    """Distinct ids, and the sum of the gradients of each."""
    distinct, places = np.unique(ids, return_inverse=True)
    if distinct.size == ids.size:
        return ids, gradients
    sums = np.zeros((distinct.size, gradients.shape[-1]), np.float32)
    np.add.at(sums, places.ravel(), gradients.reshape(ids.size, -1))
    return distinct, sums


def _rates(learning_rate, names):
    """A function of a name. Every one must be there before anything is sent."""
    rates = (dict.fromkeys(names, learning_rate) if not hasattr(learning_rate, "keys")
             else {name: learning_rate[name] for name in names if name in learning_rate})
    for name in names:
        if name not in rates:
            raise ValueError(f"learning_rate has nothing for {name!r}")
        if not math.isfinite(rates[name]):
            raise ValueError(f"the learning rate of {name!r} is {rates[name]}")
    return lambda name: float(rates[name])
