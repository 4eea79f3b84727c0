"""The command line on one machine: ports, process ids, closed outputs, and frozen agents."""

import os
import re
import resource
import signal
import socket
import subprocess
from pathlib import Path
from typing import Callable, Optional

from harness import BINARY, Job, wait_for


def run(home: Path, *arguments: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], text=True, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL,
                          env=dict(os.environ, ELASTICDL_HOME=str(home)), **more)


def test_jobs_of_many_homes_that_start_together_never_share_a_port(tmp_path: Path) -> None:
    jobs = []
    try:
        for number in range(6):
            home = tmp_path / f"home{number}"
            home.mkdir(mode=0o700)
            jobs.append(Job(home, "ports", 'echo "$TF_CONFIG" >> $EDL_OUT', "--num_workers=2",
                            "--need_tf_config", env={"EDL_OUT": str(tmp_path / f"tf{number}")}))
        ports = []
        for number, job in enumerate(jobs):
            job.assert_succeeded()
            ports.append((job.folder / "master.addr").read_text().strip())
            ports += set(re.findall(r"127\.0\.0\.1:\d+", (tmp_path / f"tf{number}").read_text()))
        assert len(ports) == len(set(ports)) > 6 * 3
    finally:
        for job in jobs:
            job.close()


def listen(address: str) -> Optional[socket.socket]:
    """A listening socket at this address; None while another process listens there."""
    host, port = address.split(":")
    server = socket.socket()
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, int(port)))
        server.listen()
    except OSError:
        server.close()
        return None
    return server


def test_a_master_waits_for_its_port(start: Callable) -> None:
    job = start("port", "exec sleep 600", "--num_workers=1")
    wait_for("the worker", lambda: job.running("worker"))
    address = (job.folder / "master.addr").read_text().strip()
    agent, master = int((job.folder / "agent.lock").read_text()), job.master_pid()
    os.kill(agent, signal.SIGSTOP)  # so that it does not start the next master immediately
    os.kill(master, signal.SIGKILL)
    with wait_for("the port", lambda: listen(address)):
        os.kill(agent, signal.SIGCONT)
        wait_for("the agent to find the port taken", lambda: "another program listens" in (
            job.folder / "logs" / "agent.log").read_text())
        assert job.process.poll() is None
    wait_for("the next master", lambda: job.status()["master_starts"] == 2)
    assert job.running("worker")


def test_status_prints_process_ids_of_the_host(start: Callable) -> None:
    job = start("pids", "exec sleep 600", "--num_workers=1")
    wait_for("the worker", lambda: job.running("worker"))

    def printed(replica: str) -> int:
        found = re.search(rf"^{replica} .* running +(\d+)", job.cli("status", "pids"), re.M)
        return int(found[1]) if found else 0

    master = printed("master")
    assert master == job.master_pid() == job.status()["master_pid"]
    os.kill(master, signal.SIGKILL)
    wait_for("another master", lambda: printed("master") not in (0, master))
    os.kill(printed("worker-0"), signal.SIGKILL)
    wait_for("another worker", lambda: printed("worker-1"))


def test_a_job_continues_when_its_output_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    train = f"{BINARY} train --backend=local --num_workers=1 --job_command='sleep 1' --job_name"
    for name, tail in (("piped", "| head -1"), ("closed", ">&-"), ("full", ">/dev/full")):
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {train}={name} {tail}"], text=True,
                              capture_output=True, timeout=60,
                              env=dict(os.environ, ELASTICDL_HOME=str(home)))
        assert done.returncode == 0, (name, done.stderr)
        assert "succeeded" in run(home, "status", name).stdout
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, "status", "piped"], stdout=full, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, ELASTICDL_HOME=str(home)))
    assert done.returncode == 1 and "No space left" in done.stderr


def test_stop_says_that_the_agent_is_stopped(start: Callable) -> None:
    job = start("frozen", "exec sleep 600", "--num_workers=1")
    wait_for("the worker", lambda: job.running("worker"))
    agent = int((job.folder / "agent.lock").read_text())
    os.kill(agent, signal.SIGSTOP)
    try:
        done = run(job.home, "stop", "frozen")
        assert done.returncode == 1 and f"kill -CONT {agent}" in done.stderr, done.stderr
    finally:
        os.kill(agent, signal.SIGCONT)
    assert job.wait(60) == 3


def test_servers_raise_their_limit_of_open_files(start: Callable) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1, 256), hard))
    try:
        job = start("files", "exec sleep 600", "--num_workers=1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for("the worker", lambda: job.running("worker"))
    limits = Path(f"/proc/{job.master_pid()}/limits").read_text()
    found = re.search(r"Max open files +(\d+) +(\d+)", limits)
    assert int(found[1]) == int(found[2]) == hard, limits


def test_check_finds_a_command_that_does_not_exist(tmp_path: Path) -> None:
    check = ("check", "--backend=local")
    done = run(tmp_path, *check, "--job_command=pyton x.py")
    assert done.returncode == 1 and "missing      pyton" in done.stdout
    done = run(tmp_path, *check, "--worker_resource_request=memory=900000Gi")
    assert done.returncode == 1 and "this machine has" in done.stdout
    done = run(tmp_path, *check, "--job_command=cd / && true")
    assert done.returncode == 0, done.stdout


def test_help_about_the_servers_is_that_of_their_flag(tmp_path: Path) -> None:
    for name in ("ps", "operator"):
        by_flag, by_verb = run(tmp_path, name, "--help"), run(tmp_path, "help", name)
        assert by_verb.returncode == 0
        assert by_verb.stdout == by_flag.stdout != ""
