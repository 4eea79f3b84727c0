"""Invalid input gives one clear line, a nonzero exit code, and no partly started job."""

import concurrent.futures
import contextlib
import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Callable, Optional

import grpc
import pytest
from harness import BINARY, Job, processes_with, wait_for
from test_kills import check_all_done, logger

TRAIN = ("train", "--backend=local", "--job_name=bad")


def run(home: Path, *arguments: str, env: Optional[dict] = None) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], text=True, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL,
                          env=dict(os.environ, ELASTICDL_HOME=str(home), **(env or {})))


def one_line(done: subprocess.CompletedProcess) -> str:
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(("arguments", "words"), [
    (("--job_command=true", "--num_wokers=3"), ("--num_wokers", "--num_workers")),
    (("--job_command=true", "--image=x"), ("--image", "--image_name", "--image_pull_policy")),
    (("--job_command=true", "--volume=host_path=/a,host_path=/b,mount_path=/c"), ("host_path",)),
    (("--job_command=true", "--num_workers=-1"), ("--num_workers", "-1")),
    (("--job_command=true", "--distribution_strategy=Magic"), ("Magic", "CustomStrategy")),
    (("--job_command=true", "--distribution_strategy=AllreduceStrategy"), ("no all-reduce",)),
    ((), ("--job_command",)),
    (("--job_command=true", "--worker_resource_request=cpu=1,cpu=2"), ("cpu",)),
    (("--job_command=true", "--need_tf_config=maybe"), ("--need_tf_config", "maybe")),
])
def test_a_wrong_flag_is_reported_with_a_fix(tmp_path: Path, arguments, words) -> None:
    done = run(tmp_path / "home", *TRAIN, *arguments)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert not (tmp_path / "home" / "jobs" / "bad").exists()


@pytest.mark.parametrize("name", ["Bad", "1bad", "bad-", "b" * 64, "b_d", ""])
def test_a_name_that_is_not_valid_for_a_pod_is_rejected(tmp_path: Path, name: str) -> None:
    done = run(tmp_path / "home", "train", "--backend=local", f"--job_name={name}",
               "--job_command=true")
    assert done.returncode == 2
    assert "name" in one_line(done)


def test_a_home_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("in the way")
    done = run(home, *TRAIN, "--job_command=true")
    assert done.returncode != 0
    assert str(home) in one_line(done)


@pytest.mark.parametrize("disk", ["64k"], indirect=True)
def test_a_full_disk_stops_the_job_before_it_starts(disk: Path) -> None:
    (disk / "filler").write_bytes(b"x" * 56 * 1024)
    done = run(disk / "home", *TRAIN, "--job_command=true")
    assert done.returncode != 0
    assert "space" in done.stderr or "full" in done.stderr, done.stderr
    wait_for("no process", lambda: not processes_with(str(disk / "home")), 10)


@pytest.mark.parametrize("disk", ["16m"], indirect=True)
def test_a_disk_that_fills_up_under_the_ledger_pauses_the_job(disk: Path, tmp_path: Path) -> None:
    home, log_dir = disk / "home", tmp_path / "log"
    home.mkdir(mode=0o700)
    command = logger(log_dir, size=6000, epochs=1, record_us=500)
    job = Job(home, "full", command, "--num_workers=2")
    try:
        wait_for("progress", lambda: job.records_done() >= 1000)
        with (disk / "filler").open("wb", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):  # to the last byte
                with contextlib.suppress(OSError):
                    while filler.write(b"x" * size) == size:
                        pass
        wait_for("the pause", lambda: "full" in (job.try_status() or {}).get("paused", ""), 60)
        assert "paused: " in job.cli("status", "full")
        done = job.records_done()
        (disk / "filler").unlink()
        wait_for("progress after it", lambda: job.records_done() > done, 60)
        check_all_done(job, 6000, 1)
    finally:
        job.close()


def test_a_ledger_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run(home, *TRAIN, "--job_command=sleep 600", "--detach").returncode == 0
    assert run(home, "stop", "bad").returncode == 0
    wait_for("the job to end", lambda: not processes_with(str(home)), 30)
    path = home / "jobs" / "bad" / "ledger.sqlite"
    with sqlite3.connect(path) as ledger:
        ledger.execute("PRAGMA user_version = 99")
    ledger.close()
    done = run(home, *TRAIN, "--job_command=true", "--resume")
    assert done.returncode == 2
    assert "99" in done.stdout and "newer" in done.stdout
    wait_for("no process", lambda: not processes_with(str(home)), 10)


def test_a_name_cannot_be_reused_while_the_job_runs_or_exists(start: Callable) -> None:
    job = start("twice", "exec sleep 600", "--num_workers=1")
    wait_for("the worker", lambda: job.running("worker"))
    again = run(job.home, "train", "--backend=local", "--job_name=twice", "--job_command=true")
    assert again.returncode != 0 and "running" in one_line(again)
    assert run(job.home, "delete", "twice").returncode != 0
    assert run(job.home, "stop", "twice").returncode == 0
    assert job.wait(30) == 3
    again = run(job.home, "train", "--backend=local", "--job_name=twice", "--job_command=true")
    assert again.returncode != 0
    assert "elasticdl delete twice" in again.stderr or "--resume" in again.stderr
    assert run(job.home, "delete", "twice").returncode == 0
    assert not job.folder.exists()


def test_dry_run_prints_the_source_of_each_value_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("job_name: from-file\nnum_workers: 5\nenvs: {PASSWORD: hunter2}\n")
    done = run(tmp_path / "home", "train", "-f", str(file), "--num_ps=3", "--job_command=true",
               "--dry_run")
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    flags = json.loads(done.stdout)
    flags = flags.get("flags", flags)
    assert flags["num_workers"]["value"] in (5, "5") and "file" in flags["num_workers"]["source"]
    assert flags["num_ps_pods"]["value"] in (3, "3")
    assert flags["num_epochs"]["source"] == "default"
    assert not (tmp_path / "home" / "jobs").exists()


def test_a_job_can_be_scaled_while_it_runs(start: Callable) -> None:
    job = start("scaled", "exec sleep 600", "--num_workers=1")
    wait_for("one worker", lambda: len(job.running("worker")) == 1)
    job.cli("scale", "scaled", "--num_workers=3")
    wait_for("three workers", lambda: len(job.running("worker")) == 3)
    job.cli("scale", "scaled", "--num_workers=1")
    wait_for("one worker again", lambda: len(job.running("worker")) == 1)
    assert job.running("worker")[0]["index"] == 0


def test_a_missing_mount_or_claim_is_reported(tmp_path: Path) -> None:
    for volume, word in (("host_path=/nowhere/at/all,mount_path=/data", "/nowhere/at/all"),
                         ("claim_name=c,mount_path=/data", "host_path")):
        done = run(tmp_path / "home", *TRAIN, "--job_command=true", f"--volume={volume}")
        assert done.returncode != 0 and word in done.stderr
        assert not processes_with(str(tmp_path / "home"))


def resident_most_mb(pid: int) -> int:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def test_callers_without_the_token_take_no_memory(start: Callable) -> None:
    job = start("flooded", "exec sleep 600", "--num_workers=1")
    wait_for("a worker", lambda: job.running("worker"))  # then the master accepts calls
    pid = job.master_pid()
    address = (job.folder / "master.addr").read_text().strip()
    before = resident_most_mb(pid)
    # An unknown field of 15 MB, which is within the limit of a request.
    size = 15_000_000
    request = b"\xa2\x06" + bytes([size & 127 | 128, size >> 7 & 127 | 128,
                                   size >> 14 & 127 | 128, size >> 21]) + bytes(size)

    def call(_) -> grpc.StatusCode:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(address, options) as channel:
            report_and_lease = channel.unary_unary("/elasticdl.v1.Master/ReportAndLease")
            try:
                report_and_lease(request, metadata=[("authorization", "Bearer wrong")], timeout=60)
            except grpc.RpcError as error:
                return error.code()
        return grpc.StatusCode.OK

    with concurrent.futures.ThreadPoolExecutor(40) as callers:
        codes = set(callers.map(call, range(80)))

    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert resident_most_mb(pid) - before < 60
