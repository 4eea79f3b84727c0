"""Runs real jobs for the tests: the binary, with its own ELASTICDL_HOME."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from relay import Relay
from waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "e2e" / "programs"
BINARY = os.environ.get("ELASTICDL_BIN", str(ROOT / "build/release/apps/elasticdl/elasticdl"))


def processes_with(text: str) -> Dict[int, str]:
    """{process id: command line} of processes with `text` in their command line or environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if not command:  # a kernel thread, or one that is being reaped
                continue
            if text.encode() in command or text.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    found.pop(os.getpid(), None)
    return found


class Job:
    """One `elasticdl train` (or another verb), which runs in the background."""

    def __init__(self, home: Path, name: str, command: str, *flags: str,
                 env: Optional[Dict[str, str]] = None, binary: str = BINARY,
                 verb: str = "train") -> None:
        self.home, self.name, self.binary = home, name, binary
        self.folder = home / "jobs" / name
        self.env = dict(os.environ, ELASTICDL_HOME=str(home), PYTHONPATH=str(ROOT),
                        PYTHONUNBUFFERED="1", **(env or {}))
        # Training programs run with the interpreter of the tests.
        self.env["PATH"] = f"{Path(sys.executable).parent}:{self.env['PATH']}"
        self.output_path = home / f"{name}.out"
        self._output = open(self.output_path, "wb")  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [binary, verb, "--backend=local", f"--job_name={name}",
             f"--job_command={command}", *flags],
            cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=self._output,
            stderr=subprocess.STDOUT, start_new_session=True)

    def cli(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run([self.binary, *arguments], env=self.env, text=True,
                              capture_output=True, timeout=60)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def status(self) -> dict:
        return json.loads(self.cli("status", self.name, "--output=json"))

    def try_status(self) -> Optional[dict]:
        """None while the job has no status."""
        with contextlib.suppress(AssertionError, ValueError):
            return self.status()
        return None

    def ledger(self) -> dict:
        return json.loads(self.cli("ledger", self.name))

    def dataset(self, view: Optional[dict] = None) -> Optional[dict]:
        view = view or self.try_status()
        return view["datasets"][0] if view and view["datasets"] else None

    def records_done(self) -> int:
        dataset = self.dataset()
        return dataset["records_done"] if dataset else 0

    def running(self, role: str) -> List[dict]:
        view = self.try_status()
        return [r for r in view["replicas"] if r["role"] == role and r["state"] == "running"
                and r["pid"] > 0] if view else []

    def master_pid(self) -> Optional[int]:
        for pid, command in processes_with(f"--job_dir={self.folder}").items():
            if " master " in command:
                return pid
        return None

    def wait(self, seconds: float = 120) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the job did not end within {seconds} s:\n{self.tail()}") from None

    def tail(self) -> str:
        logs = [self.output()[-3000:]]
        for path in sorted(self.folder.glob("logs/*.log")):
            logs.append(f"--- {path.name}\n" + path.read_text(errors="replace")[-1500:])
        return "\n".join(logs)

    def leftovers(self) -> Dict[int, str]:
        """Processes of this job that still exist."""
        return processes_with(str(self.folder))

    def assert_nothing_left(self) -> None:
        wait_for("all processes of the job to exit", lambda: not self.leftovers(), 10)

    def assert_succeeded(self, seconds: float = 120) -> dict:
        code = self.wait(seconds)
        assert code == 0, self.tail()
        self.assert_nothing_left()
        view = self.status()
        assert view["state"] == "succeeded"
        return view

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._output.close()


def draw_seed() -> int:
    """The seed of the kills of a test: ELASTICDL_TEST_SEED, or a new one. Prints it immediately, so
    that it is also known if the test fails."""
    given = os.environ.get("ELASTICDL_TEST_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 30)
    print(f"ELASTICDL_TEST_SEED={seed}")
    return seed


class Killer:
    """Kills random replicas with SIGKILL, and counts those that held a lease."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.random = random.Random(draw_seed())
        self.killed: List[str] = []
        self.hits = 0

    def kill_one(self, role: str) -> bool:
        running = self.job.running(role)
        # Mostly replicas with a lease, because their loss has an effect.
        running = [r for r in running if r["leases"] > 0] or (
            running if self.random.random() < 0.1 else [])
        if not running:
            return False
        victim = self.random.choice(running)
        # Only if the process id still belongs to this job.
        if victim["pid"] not in self.job.leftovers():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim["pid"], signal.SIGKILL)
            self.killed.append(victim["name"])
            self.hits += 1 if victim["leases"] > 0 else 0
        return True

    def report(self) -> None:
        print(f"{len(self.killed)} kills, {self.hits} hit an open lease")


def relay_to_master(job_folder: Path, seed: int = 0, lose: float = 0.0) -> Relay:
    """A relay to the master of a job, at its current address."""
    return Relay(lambda: (job_folder / "master.addr").read_text().strip(), seed, lose)


def logged_records(log_dir: Path) -> Iterator[tuple]:
    """Yields (replica, epoch, lease, record) for each line that record_logger.py wrote."""
    for path in log_dir.glob("*.log"):
        role, replica, _ = path.stem.rsplit("-", 2)
        for line in path.read_text().splitlines():
            _, epoch, lease, record = line.split()
            yield (f"{role}-{replica}", int(epoch), int(lease), int(record))
