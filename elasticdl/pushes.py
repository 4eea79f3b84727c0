"""Batches that were pushed: their position in a shard, and their outcome."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from elasticdl.native_module import ParameterError, _native
from elasticdl.shards import ShardKey
from elasticdl.thread_state import ThreadStates, restarted_error

_T = TypeVar("_T")


class Outcome(enum.Enum):
    """The outcome of a push."""

    # The numbers come from C++: wire::PushOutcome.
    APPLIED = _native.OUTCOMES["APPLIED"]  # every server has applied the batch once
    AHEAD = _native.OUTCOMES["AHEAD"]  # an earlier batch is missing: the watermark is the first
    NOT_OPEN = _native.OUTCOMES["NOT_OPEN"]  # the shard is not open, as after a server's restart
    FENCED = _native.OUTCOMES["FENCED"]  # another process has the shard now
    STALE = _native.OUTCOMES["STALE"]  # the parameters were too old for the round: pull, and
    #                                    compute the batch again
    REFUSED = _native.OUTCOMES["REFUSED"]  # a gradient was NaN or infinite: the batch counts as
    #                                        applied, and changed nothing


class PushResult(NamedTuple):
    outcome: Outcome
    watermark: int  # how many batches of the shard all servers have

    @property
    def applied(self) -> bool:
        return self.outcome is Outcome.APPLIED


class BatchPosition:
    """Where a batch belongs: its lease, its shard and its index. Interprets what the servers
    answer to the push of the batch."""

    def __init__(self, lease: int, shard: ShardKey, batch: int, own: _native.OwnShard | None,
                 fail_on_nan: bool, threads: ThreadStates) -> None:
        self.ids = lease, tuple(shard), batch
        # The first batch of the thread's own shard opens it.
        self.opens = own is not None and batch == 0
        self._own = own  # None: a master counts the batches
        self._fail_on_nan = fail_on_nan
        self._threads = threads

    @classmethod
    def at(cls, position: tuple[int, ShardKey, int], fail_on_nan: bool,
           threads: ThreadStates) -> BatchPosition:
        """A position that the program knows, from a lease of its master."""
        lease, shard, batch = position
        return cls(lease, ShardKey(*shard), batch, None, fail_on_nan, threads)

    @classmethod
    def next_own(cls, fail_on_nan: bool, threads: ThreadStates) -> BatchPosition:
        """The next position in the thread's own shard."""
        own = threads.own_shard()
        return cls(_native.OWN_LEASE, ShardKey(*own.key()), own.next(), own, fail_on_nan, threads)

    def attempt(self, act: Callable[[], _T]) -> _T:
        """Calls `act`. If it raises, the outcome of the batch is unknown, and no later batch of
        its shard can be applied."""
        try:
            return act()
        except BaseException as error:
            if self._own:
                self._own.break_off()
            if isinstance(error, ParameterError) and error.code == "ABORTED":
                self._threads.note_restarts()
            raise

    def finish(self, wait: Callable[[], tuple[int, int, bool]]) -> PushResult:
        """Waits for the answers of the servers, and returns the result."""
        result = self.attempt(lambda: self._result_of(*wait()))
        if self._fail_on_nan and result.outcome is Outcome.REFUSED:
            raise FloatingPointError("a gradient of this batch is NaN or infinite; the batch "
                                     "changed nothing")
        return result

    def _result_of(self, number: int, watermark: int, refused: bool) -> PushResult:
        if self._own:
            number = self._own.settle(self.ids[2], number)
        outcome = Outcome(number)
        if refused and outcome is Outcome.APPLIED:
            outcome = Outcome.REFUSED
        return PushResult(outcome, watermark)


class PendingPush:
    """A push that was started by `ParameterClient.push_async`."""

    def __init__(self, native: _native.PendingPush | UnsentPush, position: BatchPosition) -> None:
        self._native = native
        self._position = position

    def done(self) -> bool:
        """Whether `result` would return without waiting."""
        return self._native.done()

    def result(self) -> PushResult:
        """Waits, and returns or raises what `push` would have."""
        return self._position.finish(self._native.result)


class UnsentPush:
    """A batch that was not sent, because a server was restarted since its parameters were pulled.
    """

    def done(self) -> bool:
        return True

    def result(self) -> tuple[int, int, bool]:
        raise restarted_error()
