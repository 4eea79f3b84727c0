"""Kill schedules with a program that logs each record that it processes."""

import collections
import os
import signal
import time
from pathlib import Path
from typing import Callable, Dict, Set, Tuple

import pytest
from harness import PROGRAMS, Job, Killer, logged_records, relay_to_master, wait_for

SIZE, EPOCHS, BATCH = 20_000, 3, 50
TOTAL = SIZE * EPOCHS
WORKERS = 3


def logger(log_dir: Path, size: int = SIZE, epochs: int = EPOCHS, record_us: int = 60,
           prefix: str = "") -> str:
    return (f"{prefix}exec python {PROGRAMS}/record_logger.py --size={size} --batch={BATCH} "
            f"--epochs={epochs} --shard-batches=2 --shuffle --record-us={record_us} "
            f"--log-dir={log_dir}")


def check_all_done(job: Job, size: int = SIZE, epochs: int = EPOCHS,
                   seconds: float = 120) -> dict:
    """Every record of every epoch is done in the ledger, once."""
    view = job.assert_succeeded(seconds)
    dataset = job.dataset(view)
    assert dataset["records_done"] == size * epochs
    assert dataset["finished"] and dataset["records_not_trained"] == 0
    (entry,) = job.ledger()["datasets"]
    assert entry["epochs_done"] == [[0, epochs - 1]]
    assert entry["leases"] == [] and entry["returned"] == [] and entry["quarantined"] == []
    shards = -(-size // entry["records_per_shard"]) * epochs
    assert entry["shards_done"] == shards
    return view


def seen(log_dir: Path) -> Tuple[Dict[tuple, list], Dict[str, int]]:
    """The (replica, lease) pairs that processed each (epoch, record), and each replica's last
    lease."""
    who: Dict[tuple, list] = collections.defaultdict(list)
    last: Dict[str, int] = {}
    for replica, epoch, lease, record in logged_records(log_dir):
        who[epoch, record].append((replica, lease))
        last[replica] = max(last.get(replica, 0), lease)
    return who, last


def check_seen(log_dir: Path, killed: Set[str], size: int = SIZE, epochs: int = EPOCHS) -> int:
    """Each record was processed, and more than once only under a lease that a kill interrupted."""
    who, last = seen(log_dir)
    assert len(who) == size * epochs
    in_flight = {last[name] for name in killed if name in last}
    twice = 0
    for key, visits in who.items():
        if len(visits) > 1:
            twice += 1
            leases = {lease for _, lease in visits}
            assert len(leases - in_flight) <= 1, f"{key} seen by {visits}"
    return twice


def short(names) -> Set[str]:
    """Names such as worker-3 from test-edljob-worker-3."""
    return {name.split("-edljob-")[1] for name in names}


def kill_workers(start: Callable, tmp_path: Path, kills: int, size: int = SIZE,
                 epochs: int = EPOCHS, record_us: int = 60, seconds: float = 120,
                 **more) -> Killer:
    """Runs and checks a job whose workers are killed at random times."""
    log_dir = tmp_path / "log"
    job = start("kills", logger(log_dir, size, epochs, record_us), f"--num_workers={WORKERS}",
                **more)
    killer = Killer(job)
    for number in range(kills):
        # The kills are spread over the run: each waits for a number of records.
        share = size * epochs * (number + 1) // (kills + 2)
        wait_for("progress",
                 lambda s=share: job.records_done() >= s or job.process.poll() is not None)
        wait_for("a worker to kill", lambda: killer.kill_one("worker"))
    killer.report()
    view = check_all_done(job, size, epochs, seconds)
    twice = check_seen(log_dir, short(killer.killed), size, epochs)
    print(f"{twice} records seen twice")
    assert view["relaunches"] >= kills
    return killer


def test_workers_killed_at_random_times_lose_no_record(start: Callable, tmp_path: Path) -> None:
    kills = 60 if os.environ.get("ELASTICDL_NIGHTLY") else 8
    assert kill_workers(start, tmp_path, kills).hits >= 5


def test_killing_the_master_five_times_only_pauses_the_job(start: Callable, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    job = start("master-kills", logger(log_dir), f"--num_workers={WORKERS}")
    for number in range(5):
        wait_for("progress", lambda n=number: job.records_done() >= TOTAL * (n + 1) // 7)
        pid = wait_for("the master", job.master_pid)
        os.kill(pid, signal.SIGKILL)
        wait_for("another master", lambda p=pid: job.master_pid() not in (None, p))
    view = check_all_done(job)
    assert view["master_starts"] == 6
    # No worker left and no lease was granted twice, so no record was processed again.
    assert [r["id"] for r in view["replicas"]] == list(range(WORKERS))
    assert all(r["state"] == "succeeded" for r in view["replicas"])
    assert view["relaunches"] == 0
    assert check_seen(log_dir, set()) == 0


def test_a_frozen_worker_that_wakes_late_changes_nothing(start: Callable, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    job = start("freeze", logger(log_dir, 6000, 1, 1000), f"--num_workers={WORKERS}")
    wait_for("progress", lambda: job.records_done() >= 600)
    victim = wait_for("a worker in a shard",
                      lambda: [r for r in job.running("worker") if r["leases"] > 0])[0]
    os.kill(victim["pid"], signal.SIGSTOP)
    try:
        # The other workers finish all records, including the frozen worker's shard.
        wait_for("the frozen worker's leases to go",
                 lambda: not any(r["leases"] for r in job.status()["replicas"]
                                 if r["name"] == victim["name"]), 40)
        wait_for("the others to finish", lambda: job.records_done() == 6000, 60)
    finally:
        os.kill(victim["pid"], signal.SIGCONT)
    view = check_all_done(job, 6000, 1)
    assert job.dataset(view)["shards_repeated"] >= 1
    # Its late report did not count: the count is exact, and the worker succeeded.
    assert all(r["state"] == "succeeded" for r in view["replicas"])
    check_seen(log_dir, short([victim["name"]]), 6000, 1)


def test_a_master_stopped_for_15_s_loses_no_lease(start: Callable, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    job = start("stopped", logger(log_dir, 6000, 1, 200), f"--num_workers={WORKERS}")
    wait_for("progress", lambda: job.records_done() >= 1000)
    pid = wait_for("the master", job.master_pid)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(15)  # this test is about the length of the pause
    os.kill(pid, signal.SIGCONT)
    view = check_all_done(job, 6000, 1)
    assert view["master_starts"] == 1 and view["relaunches"] == 0
    assert job.dataset(view)["shards_repeated"] == 0
    assert check_seen(log_dir, set(), 6000, 1) == 0


def lose_replies(start: Callable, tmp_path: Path, **more) -> None:
    """Runs and checks a job in which the network loses answers of the master."""
    log_dir = tmp_path / "log"
    proxy = relay_to_master(tmp_path / "home" / "jobs" / "lossy", seed=11, lose=0.08)
    try:
        prefix = f"export MASTER_ADDR={proxy.address} DLROVER_MASTER_ADDR={proxy.address}; "
        job = start("lossy", logger(log_dir, 6000, 2, 100, prefix), f"--num_workers={WORKERS}",
                    **more)
        view = check_all_done(job, 6000, 2)
    finally:
        proxy.close()
    print(f"{proxy.lost} replies lost")
    assert proxy.lost >= 10
    assert view["relaunches"] == 0, "a worker was relaunched although none was killed"
    assert check_seen(log_dir, set(), 6000, 2) == 0, "records were processed under two leases"
    assert job.dataset(view)["shards_repeated"] == 0, "a shard was leased and never trained"


def test_lost_answers_of_the_master_lose_no_record(start: Callable, tmp_path: Path) -> None:
    lose_replies(start, tmp_path)


@pytest.mark.parametrize("command", ["echo the end is near; exit 7"])
def test_the_third_failure_in_a_slot_fails_the_job(start: Callable, command: str) -> None:
    job = start("failing", command, "--num_workers=1", "--relaunch_on_worker_failure=2")
    assert job.wait() == 1
    job.assert_nothing_left()
    view = job.status()
    assert view["state"] == "failed"
    assert [r["index"] for r in view["replicas"]] == [0, 0, 0]
    assert "worker-2" in view["reason"] and "exit code 7" in view["reason"]
    assert "the end is near" in view["last_lines"]
    for word in ("worker-2", "exit code 7", "the end is near"):
        assert word in job.output()


def test_nothing_is_left_when_the_client_is_killed(start: Callable) -> None:
    # A grandchild in its own session is the hardest to find.
    job = start("orphans", "setsid sleep 600 & setsid setsid sleep 601 & sleep 602",
                "--num_workers=2")
    wait_for("the replicas", lambda: len(job.running("worker")) == 2)
    wait_for("their children", lambda: len(
        [c for c in job.leftovers().values() if c.startswith("sleep 60")]) == 6)
    os.kill(job.process.pid, signal.SIGKILL)
    job.process.wait()
    job.assert_nothing_left()
    assert job.status()["state"] not in ("succeeded", "failed")


def test_an_interrupted_job_continues_with_resume(start: Callable, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    command = logger(log_dir, 6000, 1, 300)
    job = start("resume", command, "--num_workers=2")
    wait_for("progress", lambda: job.records_done() >= 1000)
    job.process.send_signal(signal.SIGINT)
    assert job.wait(30) == 130
    job.assert_nothing_left()
    again = start("resume", command, "--num_workers=2", "--resume")
    check_all_done(again, 6000, 1)
    who, _ = seen(log_dir)
    assert len(who) == 6000
    assert sum(len(v) > 1 for v in who.values()) <= 400  # only shards that were in flight
