"""A lock that at most one thread of all processes of the job holds."""

import threading
import time
from typing import Any, Dict, Optional

from elasticai_api.common.master_client import build_master_client
from elasticai_api.util.log_utils import default_logger as logger

# The master grants locks to processes. These locks exclude the threads of this process.
_thread_locks: Dict[str, threading.Lock] = {}
_thread_locks_guard = threading.Lock()


class RemoteLock:
    """Excludes all other processes of the job, and all other threads of this one.

        with RemoteLock("prepare-data"):
            ...

    The master releases a lock whose holder was lost, or was frozen for so long that it counts as
    lost. Not reentrant. Without a master, the lock only excludes the threads of this process.
    """

    def __init__(self, name: str, timeout: float = -1, master_client: Optional[Any] = None):
        """`timeout`: the default of `acquire`, in seconds. Below 0: without limit."""
        self._name = name
        self._timeout = timeout
        self._mc = master_client or build_master_client()
        with _thread_locks_guard:
            self._threads = _thread_locks.setdefault(name, threading.Lock())

    def acquire(self, timeout: Optional[float] = None) -> bool:
        """Waits up to `timeout` seconds (below 0: without limit). False: the lock was not
        acquired."""
        timeout = self._timeout if timeout is None else timeout
        end = None if timeout < 0 else time.monotonic() + timeout
        if not self._threads.acquire(timeout=-1 if end is None else timeout):
            return False
        acquired = False
        try:
            left = None if end is None else max(0.0, end - time.monotonic())
            acquired = self._mc.acquire_lock(self._name, left)
        finally:
            if not acquired:
                self._threads.release()
        return acquired

    def release(self) -> None:
        """Releases the lock. Raises RuntimeError if no thread of this process holds it."""
        try:
            if not self._mc.release_lock(self._name):
                logger.warning(
                    "lock %r was released, but this process no longer held it: the master "
                    "considered the process lost, and another one may have held the lock",
                    self._name,
                )
        finally:
            self._threads.release()

    def __enter__(self) -> "RemoteLock":
        if not self.acquire():
            raise TimeoutError(f"lock {self._name!r} was not acquired within {self._timeout} s")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()
