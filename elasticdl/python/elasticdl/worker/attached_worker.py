"""A worker process of a job with --attach_workers, and its connection to the master."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Mapping, NamedTuple, Optional

from elasticai_api.common import messages
from elasticai_api.common.connection import Connection, JoinAgain, Unreachable
from elasticai_api.common.constants import PodEnv
from elasticai_api.common.errors import MasterError
from elasticai_api.util.log_utils import default_logger as logger

# How long to wait for a master that is not there yet, and for one that was there.
FIRST_WAIT_S = 60.0
RESTART_WAIT_S = 20.0
_RETRY_S = 0.2
_DETACH_S = 5.0
# Between SIGTERM and SIGKILL, when the master is gone.
_LOST_GRACE_S = 2.0
_FAILED = 1

# Kills the worker when the process that started it has died, then becomes the worker.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"cannot run the worker: {sys.argv[2]}: {error.strerror}; correct ELASTICDL_PYTHON")
"""


class _Event(NamedTuple):
    """What the threads and signal handlers tell the main thread."""

    kind: str  # run, stop, lost, refused, exited, signal
    source: Any  # the attachment or the process that it is about
    value: Any = None


class AttachedWorker:
    """Attaches to the master and runs the worker process that the master describes. If the master
    is lost, ends that process and attaches again. Use it from the main thread, once."""

    def __init__(self, address: str, token: str, python: str, own: Mapping[str, str],
                 label: str) -> None:
        """own: arguments of the worker that replace those of the master."""
        self._address = address
        self._token = token
        self._python = python
        self._own = dict(own)
        self._label = f"worker {label}" if label else "this worker"
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._stream: Optional[_Stream] = None
        self._process: Optional[_Process] = None
        self._deadline = 0.0
        self._wait_s = 0.0
        self._attached_before = False
        self._ending = False  # exit with the worker process, and do not attach again
        self._signal = 0  # from the user
        self._exit_code = _FAILED

    def run(self) -> int:
        """Returns the exit code: that of the worker process, or 1."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda n, _: self._events.put(_Event("signal", None, n)))
        self._attach(FIRST_WAIT_S)
        done = False
        while not done:
            done = self._handle(self._events.get())
        return self._exit_code

    def _handle(self, event: _Event) -> bool:
        """Returns whether everything is done."""
        if event.kind == "signal":
            return self._on_signal(event.value)
        if event.kind == "exited":
            return event.source is self._process and self._on_exit(event.value)
        if event.source is not self._stream:
            return False  # of an earlier attachment
        if event.kind == "run":
            self._start(event.value)
        elif event.kind == "stop":
            logger.info("the master stops %s", self._label)
            self._ending = True
            self._end_process(event.value)
        elif event.kind == "refused":
            logger.error("%s", event.value)
            self._ending = True
            if self._process is None:
                return True
            self._end_process(_LOST_GRACE_S)
        elif event.kind == "lost":
            return self._on_lost(event.value)
        return False

    def _attach(self, wait_s: float) -> None:
        self._exit_code = _FAILED
        self._wait_s = wait_s
        self._deadline = time.monotonic() + wait_s
        self._open_stream()

    def _open_stream(self) -> None:
        self._stream = _Stream(self._address, self._token, self._events)

    def _on_signal(self, number: int) -> bool:
        if self._process is None:
            self._exit_code = 128 + number
            return True
        # The worker gives its shards back after SIGTERM. A second signal does not wait for that.
        self._process.send(signal.SIGKILL if self._signal else signal.SIGTERM)
        self._signal = number
        self._ending = True
        return False

    def _on_lost(self, reason: str) -> bool:
        if self._process is not None:
            logger.warning("lost the master at %s (%s); ending the worker process", self._address,
                           reason)
            self._end_process(_LOST_GRACE_S)
            return False
        if self._ending:
            return True
        if time.monotonic() >= self._deadline:
            logger.error(
                "no master answers at %s for %.0f s (%s); %s", self._address, self._wait_s, reason,
                "the job has ended, or its master was stopped" if self._attached_before else
                "start it with `python -m elasticdl.python.elasticdl.master.main`, or correct "
                "--master_addr")
            return True
        if not self._stream.retried:
            logger.info("waiting up to %.0f s for the master at %s (%s)", self._wait_s,
                        self._address, reason)
        timer = threading.Timer(_RETRY_S, self._stream.retry)
        timer.daemon = True
        timer.start()
        return False

    def _start(self, worker: Any) -> None:
        logger.info("%s is %s of the master at %s", self._label, worker.name, self._address)
        self._attached_before = True
        self._process = _Process(worker, worker_command(self._python, worker.command, self._own),
                                 self._address, self._events)

    def _end_process(self, grace_s: float) -> None:
        if self._process is not None:
            self._process.stop(grace_s)

    def _on_exit(self, status: int) -> bool:
        process, self._process = self._process, None
        if self._signal:
            status = -self._signal  # not the end of the work, even if the process exits with 0
        self._exit_code = status if status >= 0 else 128 - status
        stream, self._stream = self._stream, None
        was_lost = stream.lost
        if not was_lost:
            process.report_exit(self._address, status)
        stream.close()
        if self._ending or not was_lost:
            logger.info("%s ended with exit code %d", process.name, self._exit_code)
            return True
        self._attach(RESTART_WAIT_S)
        return False


class _Stream:
    """An Attach call, and its repetitions until the master answers. A thread reads it."""

    def __init__(self, address: str, token: str, events: queue.SimpleQueue) -> None:
        self.lost = False
        self.retried = False
        self._connection = Connection(address, token=token)
        self._events = events
        self._call: Any = None
        self._read_on_thread()

    def retry(self) -> None:
        self.lost = False
        self.retried = True
        self._read_on_thread()

    def close(self) -> None:
        self._connection.close()

    def _read_on_thread(self) -> None:
        threading.Thread(target=self._read, name="attach", daemon=True).start()

    def _read(self) -> None:
        request = messages.method("Attach").request(
            process=f"{socket.gethostname()}:{os.getpid()}")
        reason: object = "the master closed the stream"
        try:
            for notice in self._connection.stream("Attach", request, lambda call: None):
                if notice.HasField("run"):
                    self._events.put(_Event("run", self, notice.run))
                elif notice.HasField("stop"):
                    self._events.put(_Event("stop", self, notice.stop.grace_ms / 1e3))
        except (Unreachable, JoinAgain) as error:
            reason = error
        except Exception as error:  # noqa: B902 - the main thread waits for a result
            if not isinstance(error, MasterError):
                logger.exception("Attach failed")
            self._events.put(_Event("refused", self, str(error)))
            return
        self.lost = True
        self._events.put(_Event("lost", self, str(reason)))


class _Process:
    """The worker process. A thread waits for its exit. The process does not outlive its parent."""

    def __init__(self, worker: Any, command: list[str], address: str,
                 events: queue.SimpleQueue) -> None:
        self.name: str = worker.name
        self._token: str = worker.token
        # A file without a name: nothing is left on a disk, and only this process and its child can
        # open it.
        token_file = os.memfd_create("token")
        try:
            os.write(token_file, self._token.encode())
            self._child = subprocess.Popen(
                [sys.executable, "-c", _LAUNCHER, str(os.getpid()), *command],
                env=worker_environment(worker.env, address, f"/proc/self/fd/{token_file}"),
                pass_fds=[token_file],
                start_new_session=True)  # Ctrl-C signals this process only
        finally:
            os.close(token_file)
        threading.Thread(
            target=lambda: events.put(_Event("exited", self, self._child.wait())),
            name="wait", daemon=True).start()

    def send(self, number: int) -> None:
        self._child.send_signal(number)

    def stop(self, grace_s: float) -> None:
        self.send(signal.SIGTERM)
        timer = threading.Timer(grace_s, self._child.kill)
        timer.daemon = True
        timer.start()

    def report_exit(self, address: str, status: int) -> None:
        connection = Connection(address, token=self._token)
        request = messages.method("Detach").request(
            name=self.name, exit_code=max(status, 0), signal=max(-status, 0))
        try:
            connection.attempt("Detach", request, _DETACH_S)
        except (Unreachable, JoinAgain, MasterError) as error:
            logger.warning("cannot report the exit of %s: %s", self.name, error)
        finally:
            connection.close()


def worker_command(python: str, command: list[str], own: Mapping[str, str]) -> list[str]:
    """The command of the master, with the Python of this machine and the arguments in `own`."""
    arguments = dict(word[2:].split("=", 1) for word in command if word.startswith("--"))
    for name, value in own.items():
        if name == "model_module":  # the master decides on the symbol
            symbol = arguments.get("model_def", "custom_model").rsplit(".", 1)[-1]
            name, value = "model_def", f"{value}.{symbol}"
        arguments[name] = value
    return [python, "-m", "elasticdl.worker",
            *(f"--{name}={value}" for name, value in arguments.items())]


def worker_environment(given: Mapping[str, str], address: str, token_file: str) -> dict[str, str]:
    """The environment of the worker process: that of this process, and that of the master."""
    env = {**os.environ, **given}
    env[PodEnv.MASTER_ADDR] = env[PodEnv.DLROVER_MASTER_ADDR] = address
    env[PodEnv.TOKEN_FILE] = token_file
    env.pop(PodEnv.TOKEN, None)
    # Folders of the master's machine, which may be those of another container.
    for name in ("ELASTICDL_JOB_DIR", "ELASTICDL_CHECKPOINTS"):
        if name in env and not os.path.isdir(env[name]):
            del env[name]
    return env
