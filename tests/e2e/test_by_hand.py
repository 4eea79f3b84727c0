"""A master and workers that are started by hand, as tutorial 4 does it: `master.main` and
`worker.main`.

As root, everything runs in a network namespace of the test, so that port 50001 is free. Except in
the first test, the worker processes are played by a program without TensorFlow.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest
from harness import BINARY, PROGRAMS, ROOT, Job, wait_for
from namespace import Namespace

MASTER = "elasticdl.python.elasticdl.master.main"
WORKER = "elasticdl.python.elasticdl.worker.main"
MODEL = "elasticdl/python/examples/mnist_functional_api.py"
NOBODY = 65534


class Place:
    """Where the processes of a test run: a network namespace if the user may make one."""

    def __init__(self, folder: Path) -> None:
        self.namespace = Namespace(folder) if os.geteuid() == 0 else None
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.port = 50001 if self.namespace else free_port()
        self.processes: List[subprocess.Popen] = []

    def command(self, *words: str) -> List[str]:
        inside = ["ip", "netns", "exec", self.namespace.name] if self.namespace else []
        return [*inside, *words]

    def env(self, **more: str) -> Dict[str, str]:
        # Programs use one thread each, so that several of them run well on two cores.
        return dict(os.environ, ELASTICDL_HOME=str(self.home), PYTHONPATH=str(ROOT),
                    ELASTICDL_BIN=BINARY, PYTHONUNBUFFERED="1", TF_NUM_INTRAOP_THREADS="1",
                    TF_NUM_INTEROP_THREADS="1",
                    PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more)

    def close(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.namespace:
            self.namespace.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


class Master(Job):
    """One `master.main`."""

    def __init__(self, place: Place, *flags: str, name: str = "test") -> None:
        self.home, self.name = place.home, name
        self.binary = str(place.namespace.binary) if place.namespace else BINARY
        self.folder = place.home / "jobs" / name
        self.env = place.env()
        self.output_path = place.home / f"{name}.out"
        port = [] if place.namespace else [f"--port={place.port}"]
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                place.command(sys.executable, "-m", MASTER, f"--job_name={name}", *flags, *port),
                cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True)
        place.processes.append(self.process)


def played(*more: str) -> List[str]:
    """Flags of a job whose workers are played by model_worker.py: 300 records in 30 shards."""
    return [f"--model_file={MODEL}", "--training_data_dir=300", "--evaluation_data_dir=20",
            "--records_per_task=10", "--minibatch_size=5", *more]


class Worker:
    """One `worker.main`."""

    def __init__(self, place: Place, name: str, *flags: str, wrapper: Optional[List[str]] = None,
                 **env: str) -> None:
        self.output_path = place.home.parent / f"{name}.out"
        words = [*(wrapper or []), sys.executable, "-m", WORKER, f"--worker_id={name}",
                 f"--master_addr=localhost:{place.port}", *flags]
        env.setdefault("ELASTICDL_PYTHON", str(PROGRAMS / "model_worker.py"))
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                place.command(*words), cwd=ROOT, env=place.env(**env), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        place.processes.append(self.process)

    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def wait(self, seconds: float = 60) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"worker.main did not exit within {seconds} s:\n"
                                 + self.output()) from None


def workers(job: Master, state: str) -> List[str]:
    view = job.try_status() or {"replicas": []}
    return sorted(r["name"] for r in view["replicas"]
                  if r["role"] == "worker" and r["state"] == state)


def version(job: Master) -> int:
    return (job.try_status() or {}).get("version", 0)


def generate(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "elasticdl.data_gen", "mnist", str(folder),
                    "--fraction=0.01"], cwd=ROOT, check=True, timeout=120, capture_output=True,
                   env=dict(os.environ, PYTHONPATH=str(ROOT)))
    return folder


def test_the_commands_of_tutorial_4(place: Place, tmp_path: Path) -> None:
    data = generate(tmp_path / "mnist")
    job = Master(place, f"--model_file={MODEL}", f"--training_data_dir={data}/train",
                 f"--evaluation_data_dir={data}/test", "--records_per_task=100", "--num_epochs=2",
                 "--codec_type=tf_example", "--grads_to_wait=2", "--minibatch_size=10",
                 "--log_level=INFO")
    # Like another container: its own mounts, processes and System V memory, and no job folder.
    apart = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-c", f'mount -t tmpfs tmpfs {place.home} && exec "$@"', "sh"]
    worker = Worker(place, "1", f"--model_file={MODEL}", "--codec_type=tf_example",
                    "--log_level=INFO", wrapper=apart if os.geteuid() == 0 else None,
                    ELASTICDL_PYTHON="")

    assert worker.wait() == 0, worker.output() + job.tail()
    view = job.assert_succeeded()
    trained = next(d for d in view["datasets"] if d["name"] == "training")
    assert (trained["size"], trained["records_done"]) == (600, 1200)
    assert view["version"] == 120 and view["relaunches"] == 0
    assert re.search(r"evaluation +accuracy = 0\.\d+ \(version 120\)", job.output()), job.output()
    assert "worker 1 is elasticdl-test-worker-0" in worker.output()
    assert "Loss = " in worker.output(), "the output of a worker is in its own terminal"


def test_a_worker_that_attaches_later_shares_the_work(place: Place) -> None:
    job = Master(place, *played("--log_loss_steps=100"))
    first = Worker(place, "first")
    wait_for("version 4", lambda: version(job) >= 4)

    second = Worker(place, "second")

    wait_for("two workers", lambda: len(workers(job, "running")) == 2)
    assert first.wait() == 0 and second.wait() == 0, first.output() + second.output()
    view = job.assert_succeeded()
    assert view["version"] == 60
    assert [r["state"] for r in view["replicas"] if r["role"] == "worker"] == ["succeeded"] * 2


def test_the_job_does_not_wait_for_workers_that_nobody_starts(place: Place) -> None:
    job = Master(place, *played("--num_workers=3"))
    only = Worker(place, "only")

    assert only.wait() == 0, only.output()
    view = job.assert_succeeded()
    assert sorted(r["state"] for r in view["replicas"] if r["role"] == "worker") == [
        "stopped", "stopped", "succeeded"]


def test_a_worker_that_fails_fails_the_job(place: Place) -> None:
    job = Master(place, *played("--custom_data_reader=fail"))
    only = Worker(place, "only")

    assert only.wait() != 0
    assert job.wait() == 1
    assert "cannot import the model: No module named 'nowhere'" in job.output()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_worker_that_ends_is_replaced_by_hand(place: Place, number: int, tmp_path: Path) -> None:
    job = Master(place, *played("--log_loss_steps=40"))
    # Like the real worker, it exits with 0 after SIGTERM, although work is left.
    leaves = tmp_path / "leaves"
    leaves.write_text(f"""#!/usr/bin/env python3
import runpy, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
runpy.run_path({str(PROGRAMS / "model_worker.py")!r}, run_name="__main__")
""")
    leaves.chmod(0o755)
    first = Worker(place, "first", ELASTICDL_PYTHON=str(leaves))
    wait_for("version 8", lambda: version(job) >= 8)
    child = child_of(first.process.pid)

    if number == signal.SIGKILL:
        os.kill(child, signal.SIGSTOP)  # so that it cannot exit by itself
    first.process.send_signal(number)

    assert first.wait() == (143 if number == signal.SIGTERM else -number), first.output()
    wait_for("the end of its process", lambda: not Path(f"/proc/{child}").exists())
    wait_for("a worker to wait for a process", lambda: workers(job, "pending"))
    second = Worker(place, "second")
    assert second.wait() == 0, second.output()
    view = job.assert_succeeded()
    assert view["version"] == 60 and view["relaunches"] == 1
    assert view["evaluations"][-1]["metrics"] == {"records": 20}


def child_of(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def test_a_worker_attaches_again_after_the_master_restarted(place: Place) -> None:
    job = Master(place, *played("--log_loss_steps=40"))
    worker = Worker(place, "only")
    wait_for("version 8", lambda: version(job) >= 8)

    os.kill(job.master_pid(), signal.SIGKILL)

    assert worker.wait() == 0, worker.output()
    assert "lost the master" in worker.output()
    assert "is elasticdl-test-worker-1" in worker.output()
    assert job.assert_succeeded()["version"] == 60


@pytest.mark.parametrize("by", ["Ctrl-C", "elasticdl stop"])
def test_a_worker_ends_when_its_job_is_stopped(place: Place, by: str) -> None:
    job = Master(place, *played("--log_loss_steps=40"))
    worker = Worker(place, "only")
    wait_for("version 4", lambda: version(job) >= 4)
    child = child_of(worker.process.pid)

    if by == "Ctrl-C":
        job.process.send_signal(signal.SIGINT)
    else:
        job.cli("stop", job.name)

    worker.wait(15)
    assert "the master stops worker only" in worker.output()
    assert not Path(f"/proc/{child}").exists()
    assert job.wait() != 0
    job.assert_nothing_left()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_attach(place: Place) -> None:
    job = Master(place, *played())
    wait_for("a worker to wait for a process", lambda: workers(job, "pending"))
    # Imported before the user changes, who may not be able to read the files.
    program = (f"import grpc._channel, os, sys, {WORKER} as w;"
               "import elasticdl.python.elasticdl.worker.attached_worker;"
               f"os.setresuid({NOBODY}, {NOBODY}, {NOBODY});"
               f"sys.exit(w.main(['--master_addr=localhost:{place.port}']))")

    done = subprocess.run(place.command(sys.executable, "-c", program), cwd=ROOT, env=place.env(),
                          text=True, capture_output=True, timeout=60)

    assert done.returncode == 1, done.stderr
    assert "PERMISSION_DENIED" in done.stderr
    assert "is not a process of the user of job test" in done.stderr
    assert workers(job, "running") == []


def test_a_token_file_is_required_of_workers(place: Place, tmp_path: Path) -> None:
    for name, token in (("token", "open-sesame"), ("wrong", "guess")):
        (tmp_path / name).write_text(token + "\n")
    job = Master(place, *played(f"--token_file={tmp_path / 'token'}"))

    without = Worker(place, "without")
    wrong = Worker(place, "wrong", f"--token_file={tmp_path / 'wrong'}")
    for refused in (without, wrong):
        assert refused.wait() == 1
        assert "UNAUTHENTICATED" in refused.output()
        assert "the job was started with --token_file" in refused.output()
    right = Worker(place, "right", f"--token_file={tmp_path / 'token'}")

    assert right.wait() == 0, right.output()
    job.assert_succeeded()


def test_a_worker_waits_for_its_master(place: Place) -> None:
    worker = Worker(place, "early")
    wait_for("a message", lambda: "waiting up to 60 s for the master" in worker.output())

    job = Master(place, *played())

    assert worker.wait() == 0, worker.output()
    job.assert_succeeded()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {WORKER} as w, "
         "elasticdl.python.elasticdl.worker.attached_worker as a; a.FIRST_WAIT_S = 0.5;"
         "sys.exit(w.main(['--master_addr=localhost:1']))"],
        cwd=ROOT, env=place.env(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert "no master answers at localhost:1" in done.stderr and "master.main" in done.stderr


def test_a_port_in_use_is_one_clear_message(place: Place) -> None:
    first = Master(place, *played())
    wait_for("the master", lambda: workers(first, "pending"))

    second = Master(place, *played(), name="second")

    assert second.wait(30) == 1
    assert f"--master_port={place.port}" in second.output()
    assert "cannot reserve TCP port" in second.output()


RUN = ["--job_name=t", f"--model_file={MODEL}", "--training_data_dir=x"]
WRONG = {
    "master: a wrong name": (MASTER, [*RUN, "--trainig_data_dir=x"],
                             "no flag --trainig_data_dir; did you mean --training_data_dir"),
    "master: no model": (MASTER, ["--job_name=t"], "--model_file is missing"),
    "master: no such model": (MASTER, ["--job_name=t", "--model_file=a/none.py"],
                              "--model_file=a/none.py: there is no such file"),
    "master: no records": (MASTER, [*RUN, "--records_per_task=0"], "--records_per_task=0: "),
    "master: no batch": (MASTER, [*RUN, "--records_per_task=9", "--minibatch_size=0"],
                         "--minibatch_size=0: "),
    "master: a codec": (MASTER, [*RUN, "--codec_type=json"], "invalid choice: 'json'"),
    "worker: a wrong name": (WORKER, ["--master_address=x:1"], "did you mean --master_addr"),
    "worker: no port": (WORKER, ["--master_addr=here"], "expected HOST:PORT"),
    "worker: no token": (WORKER, ["--token_file=/none"], "--token_file=/none: cannot read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_flag_is_one_clear_message(case: str) -> None:
    module, flags, message = WRONG[case]
    done = run_module(module, *flags)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_help_lists_the_flags_of_the_tutorial() -> None:
    for module, names in ((MASTER, ("model_file", "training_data_dir", "records_per_task")),
                          (WORKER, ("worker_id", "model_file", "master_addr"))):
        done = run_module(module, "--help")
        assert done.returncode == 0
        assert all(f"--{name}" in done.stdout for name in names), done.stdout


@pytest.mark.parametrize("size,batches", [(100, 10), (101, 11), (1, 1)])
def test_records_per_task_are_rounded_up_to_batches(size: int, batches: int) -> None:
    done = run_module(MASTER, *RUN, f"--records_per_task={size}", "--minibatch_size=10",
                      "--dry_run=true")
    assert done.returncode == 0, done.stderr
    assert re.search(rf'"num_minibatches_per_task".*?"value": {batches}\b', done.stdout,
                     re.DOTALL), done.stdout


def run_module(module: str, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", module, *flags], cwd=ROOT, text=True,
                          capture_output=True, timeout=60,
                          env=dict(os.environ, PYTHONPATH=str(ROOT), ELASTICDL_BIN=BINARY))
