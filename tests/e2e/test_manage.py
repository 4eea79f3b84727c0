"""Every job can be shown, stopped, resumed and deleted, and its outcome is correct."""

import contextlib
import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Callable

import pytest
from harness import PROGRAMS, Job, wait_for
from test_kills import check_all_done, logger, seen


def ender(how: str, *more: str) -> str:
    return " ".join((f"exec python {PROGRAMS}/early_ender.py --how={how}", *more))


def test_a_loss_of_nan_is_stored_and_shown(start: Callable) -> None:
    job = start("diverges", ender("nan"), "--num_workers=1")
    view = job.assert_succeeded()
    assert view["metrics"]["loss"] == "nan" and view["metrics"]["norm"] == "inf"
    assert view["success_rule"] == "all 1000 records were reported"
    job.cli("delete", "diverges")


@pytest.mark.parametrize(("how", "words"), [
    ("never-reports", "1000 of 1000 records were never reported; does the program call"),
    ("leaves", "920 of 1000 records were left"),
])
def test_a_job_with_data_left_does_not_succeed(start: Callable, how: str, words: str) -> None:
    job = start("early", ender(how), "--num_workers=1")
    assert job.wait() == 1, job.tail()
    assert words in job.output(), job.output()


def test_a_program_may_declare_the_end_of_training(start: Callable) -> None:
    view = start("declares", ender("finishes"), "--num_workers=1").assert_succeeded()
    assert "finish()" in view["success_rule"]


def test_an_empty_dataset_is_an_error(start: Callable) -> None:
    job = start("empty", ender("empty"), "--num_workers=1", "--relaunch_on_worker_failure=0")
    assert job.wait() == 1
    assert "dataset_size=0" in job.output(), job.output()


def test_a_ps_that_runs_the_workers_program_gets_no_data(start: Callable) -> None:
    job = start("psnotf", ender("nan"), "--num_workers=1", "--num_ps_pods=1")
    view = job.assert_succeeded()
    assert "worker seen 1000" in job.cli("logs", "psnotf", "worker-0")
    assert any("a ps ran the workers' program" in r for r in view["remarks"]), view["remarks"]


def test_a_quarantined_shard_is_tried_again_by_resume(start: Callable, tmp_path: Path) -> None:
    fixed = tmp_path / "fixed"
    command = ender("fails", f"--fixed-file={fixed}")
    job = start("bad", command, "--num_workers=1")
    assert job.wait() == 1
    assert "records 500 to 509" in job.output() and "is broken" in job.output(), job.output()
    fixed.touch()
    view = start("bad", command, "--num_workers=1", "--resume").assert_succeeded()
    assert job.dataset(view)["records_done"] == 1000


def stop_half_way(start: Callable, log_dir: Path) -> Job:
    job = start("halves", logger(log_dir, 6000, 1, 500), "--num_workers=3")
    wait_for("progress", lambda: job.records_done() >= 1000)
    job.cli("stop", "halves")
    job.wait(30)
    return job


def test_resume_obeys_the_number_of_workers(start: Callable, tmp_path: Path) -> None:
    job = stop_half_way(start, tmp_path / "log")
    again = start("halves", logger(tmp_path / "log", 6000, 1, 0), "--num_workers=1", "--resume")
    check_all_done(again, 6000, 1)
    logs = [p.name for p in (job.folder / "logs").glob("*worker-*.log")]
    assert len(logs) == 4, logs  # three workers, then one


def test_a_master_waits_for_the_lock_of_its_ledger(start: Callable, tmp_path: Path) -> None:
    job = start("locked", logger(tmp_path / "log", 6000, 1, 500), "--num_workers=3")
    wait_for("progress", lambda: job.records_done() >= 500)
    agent = int((job.folder / "agent.lock").read_text())
    os.kill(agent, signal.SIGSTOP)  # so that no new master locks the ledger first
    try:
        os.kill(job.master_pid(), signal.SIGKILL)
        other = sqlite3.connect(job.folder / "ledger.sqlite", isolation_level=None)
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        wait_for("the lock", lambda: locks(other), 10)
    finally:
        os.kill(agent, signal.SIGCONT)
    log = job.folder / "logs" / "master.log"
    wait_for("the master to wait for the lock",
             lambda: "another process has locked it" in log.read_text(), 20)
    other.close()
    check_all_done(job, 6000, 1)
    assert job.status()["master_starts"] == 2  # it waited, and was not restarted repeatedly


def locks(connection: sqlite3.Connection) -> bool:
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("BEGIN EXCLUSIVE")
    return connection.in_transaction


@pytest.mark.parametrize("damage", ["empty", "missing", "wal"])
def test_a_damaged_ledger_is_not_resumed_silently(
    start: Callable, tmp_path: Path, damage: str
) -> None:
    if damage == "wal":
        # Ends without a checkpoint of the write-ahead log, like a power cut.
        job = start("halves", logger(tmp_path / "log", 6000, 1, 500), "--num_workers=3")
        wait_for("progress", lambda: job.records_done() >= 1000)
        job.cli("scale", "halves", "--num_workers=2")  # so that status.json is written
        wait_for("progress in status.json", lambda: json.loads(
            (job.folder / "status.json").read_text())["version"] > 0)
        os.kill(int((job.folder / "agent.lock").read_text()), signal.SIGKILL)
        job.wait(30)
        (job.folder / "ledger.sqlite-wal").write_bytes(b"")
    else:
        job = stop_half_way(start, tmp_path / "log")
        assert (job.folder / "ledger.sqlite-wal").stat().st_size == 0, "the log is empty"
        ledger = job.folder / "ledger.sqlite"
        ledger.write_bytes(b"") if damage == "empty" else ledger.unlink()
    again = start("halves", "true", "--resume")
    assert again.wait(30) == 1
    assert "cannot be resumed" in again.output() and "--resume_with_lost_progress" in \
        again.output(), again.output()
    job.cli("status", "halves")
    job.cli("delete", "halves")


def test_an_interrupted_job_shows_why_and_its_progress(start: Callable, tmp_path: Path) -> None:
    job = start("cut", logger(tmp_path / "log", 6000, 1, 500), "--num_workers=2")
    wait_for("progress", lambda: job.records_done() >= 1000)
    os.kill(int((job.folder / "agent.lock").read_text()), signal.SIGKILL)
    job.wait(30)
    view = job.status()
    assert view["state"] == "interrupted" and "agent was killed" in view["reason"], view
    assert all(r["state"] != "running" for r in view["replicas"])
    with contextlib.closing(sqlite3.connect(job.folder / "ledger.sqlite")) as ledger:
        (done,) = ledger.execute("SELECT records_done FROM datasets").fetchone()
    assert view["datasets"][0]["records_done"] == done >= 1000
    for text in ("", "{", '{"metrics": {"loss": null}}'):
        (job.folder / "status.json").write_text(text)
        assert job.status()["datasets"][0]["records_done"] == done
    (job.folder / "status.json").unlink()
    check_all_done(start("cut", logger(tmp_path / "log", 6000, 1, 0), "--resume"), 6000, 1)
    assert len(seen(tmp_path / "log")[0]) == 6000
