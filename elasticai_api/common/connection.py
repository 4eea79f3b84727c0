"""One channel to the master: single attempts, whose errors are classified for the caller."""

import threading
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

import grpc

from elasticai_api.common import messages
from elasticai_api.common.errors import MasterError
from elasticai_api.common.identity import read_token
from elasticai_api.util.log_utils import default_logger as logger

_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A restarted master is reached within a second, not within gRPC's default of two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),  # despite its name, the timeout of one attempt
    ("grpc.enable_http_proxy", 0),
    # After a fork, the child must not get its parent's sockets from a shared pool.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)

_UNREACHABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)

_HINTS = {
    grpc.StatusCode.UNAUTHENTICATED: "the job's token is wrong or missing",
    grpc.StatusCode.UNIMPLEMENTED: "is that an ElasticDL master of version 2 or later?",
}


# How long a fork waits for the calls in progress to end.
_FORK_WAITS_S = 1.0
# In older versions, calls in a child of a process that uses gRPC are never answered.
_FORKS_WELL = (1, 85)


class Unreachable(Exception):
    """The call was not answered. The same call may be sent again."""


class JoinAgain(Exception):
    """The master does not know this incarnation, or has closed it."""


# Channels of a parent process. Closing or collecting them in the child would affect the parent's
# sockets, so the child keeps references to them for ever.
_abandoned: List[Any] = []


class Backoff:
    """Waits between attempts, with increasing pauses. Logs a warning at most every ten seconds.

    Confined: each call has its own.
    """

    FIRST_S, LONGEST_S, GROWTH = 0.05, 2.0, 1.6
    SILENT_S, WARN_EVERY_S = 2.0, 10.0

    def __init__(self, what: str, closed: threading.Event):
        self._what = what
        self._closed = closed
        self._pause_s = self.FIRST_S
        self._since: Optional[float] = None
        self._warned: Optional[float] = None

    def pause(self, reason: object) -> None:
        """Waits. Raises MasterError if the client is closed meanwhile."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        quiet = now - self._since < self.SILENT_S
        if not quiet and (self._warned is None or now - self._warned >= self.WARN_EVERY_S):
            self._warned = now
            logger.warning(
                "%s: waiting for the master since %.0f s (%s)",
                self._what, now - self._since, reason,
            )
        if self._closed.wait(self._pause_s):
            raise MasterError(f"{self._what}: the master client was closed meanwhile", "CANCELLED")
        self._pause_s = min(self._pause_s * self.GROWTH, self.LONGEST_S)


class Connection:
    """Makes single calls, each with a deadline. Thread-safe.

    Without `channel`, a channel is made on first use, and again after a fork and after `reset`.
    Without `token`, the token is read from the environment.
    """

    def __init__(self, address: str, channel: Optional[Any] = None, token: Optional[str] = None):
        self.address = address
        self.closed = threading.Event()
        self._given_channel = channel
        self._given_token = token
        self._lock = threading.Condition(threading.Lock())
        self._channel: Optional[Any] = None
        self._calls_in_progress = 0
        self._forking = False
        self._in_use_at_fork = False
        self._forked_in_use = False  # this process is a child of one that used gRPC
        self._calls: dict = {}
        self._metadata: tuple = ()
        self._token_source = ""
        self.last_answer = time.monotonic()

    def attempt(self, name: str, request: Any, timeout_s: float) -> Any:
        """Makes one attempt. Raises Unreachable, JoinAgain or MasterError."""
        call = self._begin_call(name, streams=False)
        try:
            response = call(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._classified(name, error) from None
        except ValueError as error:  # reset() has just closed the channel
            raise Unreachable(str(error)) from None
        finally:
            self._end_call()
        self.last_answer = time.monotonic()
        return response

    def stream(self, name: str, request: Any, on_open: Callable[[Any], None]) -> Iterator[Any]:
        """Yields the messages of a server stream. `on_open` gets the call and may cancel it."""
        make = self._begin_call(name, streams=True)
        try:
            call = make(request, metadata=self._metadata)
            on_open(call)
            for response in call:
                self.last_answer = time.monotonic()
                yield response
        except grpc.RpcError as error:
            raise self._classified(name, error) from None
        except ValueError as error:
            raise Unreachable(str(error)) from None
        finally:
            self._end_call()

    def reset(self) -> None:
        """Closes the channel, because its peer is silent. Later calls use a new one."""
        if self._given_channel is not None:
            return
        with self._lock:
            channel, self._channel, self._calls = self._channel, None, {}
            self.last_answer = time.monotonic()
        if channel is not None:
            channel.close()

    def close(self) -> None:
        self.closed.set()
        self.reset()

    def before_fork(self) -> None:
        """Ends the calls in progress and closes the channel: gRPC crashes in a child that is forked
        while a thread is inside of gRPC. The callers repeat their calls after the fork."""
        with self._lock:
            self._forking = True
            self._in_use_at_fork = self._channel is not None
        self.reset()
        with self._lock:
            self._lock.wait_for(lambda: self._calls_in_progress == 0, _FORK_WAITS_S)

    def after_fork_in_parent(self) -> None:
        with self._lock:
            self._forking = False
            self._lock.notify_all()

    def after_fork(self) -> None:
        """In the child: forgets the calls of the parent's threads. A channel that could not be
        closed is replaced without closing it."""
        if self._channel is not None:
            _abandoned.append((self._channel, self._calls))
        self._forked_in_use = self._forked_in_use or self._in_use_at_fork
        self._lock = threading.Condition(threading.Lock())
        self._calls_in_progress = 0
        self._forking = False
        self.closed = threading.Event()
        self._channel, self._calls = None, {}
        self.last_answer = time.monotonic()

    def _begin_call(self, name: str, streams: bool) -> Any:
        """Waits for the end of a fork. Call _end_call after the call."""
        with self._lock:
            self._lock.wait_for(lambda: not self._forking)
            call = self._callable(name, streams)
            self._calls_in_progress += 1
        return call

    def _end_call(self) -> None:
        with self._lock:
            self._calls_in_progress -= 1
            self._lock.notify_all()

    def _callable(self, name: str, streams: bool) -> Any:
        """REQUIRES: _lock is held."""
        if self.closed.is_set() and name != "Leave":
            raise MasterError(f"{name}: the master client is closed", "CANCELLED")
        if self._forked_in_use and _grpc_version() < _FORKS_WELL:
            raise MasterError(
                f"{name}: this process was forked from one that had already called the master, "
                f"and grpcio {grpc.__version__} does not work in such a child; fork before the "
                "first call, use multiprocessing's spawn method, or install grpcio>="
                + ".".join(map(str, _FORKS_WELL)),
                "FAILED_PRECONDITION",
            )
        if self._channel is None:
            if self._given_token is None:
                token, self._token_source = read_token()
            else:
                token, self._token_source = self._given_token, "given by the program"
            self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
            self._channel = self._given_channel or grpc.insecure_channel(
                self.address, options=_CHANNEL_OPTIONS
            )
        if name not in self._calls:
            method = messages.method(name)
            make = self._channel.unary_stream if streams else self._channel.unary_unary
            self._calls[name] = make(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        return self._calls[name]

    def _classified(self, name: str, error: Any) -> Exception:
        code, details = error.code(), error.details() or ""
        # A server that dies while it answers causes INTERNAL with a reset stream.
        if code in _UNREACHABLE or (code == grpc.StatusCode.INTERNAL and "RST_STREAM" in details):
            return Unreachable(f"{code.name}: {details}")
        if code == grpc.StatusCode.ABORTED:
            return JoinAgain(details)
        hint = _HINTS.get(code, "")
        if code == grpc.StatusCode.UNAUTHENTICATED:
            hint += f" (token: {self._token_source})"
        return MasterError(
            f"{name}: the master at {self.address} answered {code.name}: {details}"
            + (f"; {hint}" if hint else ""),
            code.name,
        )


def _grpc_version() -> Tuple[int, ...]:
    return tuple(int(part) for part in grpc.__version__.split(".")[:2])
