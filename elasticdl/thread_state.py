"""What a ParameterClient remembers for each thread of the program."""

from __future__ import annotations

import threading
from types import TracebackType

from elasticdl.native_module import ParameterError, _native


def restarted_error() -> ParameterError:
    """The error of a thread that has not learned of a server's restart yet."""
    error = ParameterError(
        "a parameter server was restarted and lacks what this client trained: restore a "
        "checkpoint, or continue with the parameters that the servers have")
    error.code = "ABORTED"
    return error


class ThreadStates:
    """Keeps for each thread: its own shard, the age of the parameters that it pulled, and the
    restarts of servers that it knows of. Thread-safe: each thread sees its own state."""

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        self.reset()

    def reset(self) -> None:
        """Forgets the state of all threads."""
        self._known_restarts = self._native.restarts()
        self._local = threading.local()

    def own_shard(self) -> _native.OwnShard:
        """The shard in which this thread counts batches that no master counts."""
        own = getattr(self._local, "own", None)
        if own is None or own.is_broken():
            own = self._local.own = _native.OwnShard()
        return own

    def reading(self) -> _RestartGuard:
        """The context of a call that reads or writes parameters."""
        return _RestartGuard(self)

    def check_restarts(self) -> None:
        """Raises, once in each thread, if a server was restarted."""
        if self.knows_restarts():
            return
        self.note_restarts()
        raise restarted_error()

    def knows_restarts(self) -> bool:
        """Whether this thread knows of all restarts."""
        known = getattr(self._local, "restarts", self._known_restarts)
        return self._native.restarts() == known

    def note_restarts(self) -> None:
        """Records that this thread knows of all restarts so far. Its own shard is lost."""
        self._local.restarts = self._native.restarts()
        own = getattr(self._local, "own", None)
        if own is not None:
            own.break_off()

    def note_pull(self, versions: _native.PulledVersions) -> None:
        """Records the age of pulled parameters. A batch is computed with all pulls since the last
        push, so it is as old as the oldest of them."""
        before = None if getattr(self._local, "pushed", True) else self.versions()
        self._local.versions = versions if before is None else before.oldest(versions)
        self._local.pushed = False

    def note_push(self) -> None:
        """Records a push: the next pull begins another batch."""
        self._local.pushed = True

    def versions(self) -> _native.PulledVersions | None:
        """The age of the parameters that the next push was computed with."""
        return getattr(self._local, "versions", None)


class _RestartGuard:
    """Raises a restart once in each thread, before the thread reads untrained rows."""

    def __init__(self, threads: ThreadStates) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._threads.check_restarts()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, ParameterError) and error.code == "ABORTED":
            self._threads.note_restarts()
