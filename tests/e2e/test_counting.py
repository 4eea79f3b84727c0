"""The counting model: every batch is applied once, whichever processes are killed.

Every record adds 1 to the row of its index, so after E epochs every row is E.
"""

import contextlib
import os
import random
import re
import signal
import sys
from pathlib import Path
from typing import Callable, Optional

import numpy as np
import pytest
from harness import BINARY, PROGRAMS, Job, draw_seed
from waiting import wait_for

from elasticdl import ParameterClient

sys.path.insert(0, str(PROGRAMS))
from counter import TABLE, counter  # noqa: E402

nightly = pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="make nightly")
SIZE, EPOCHS, BATCH, SHARD_BATCHES = 12_000, 3, 50, 4


def counting(size: int = SIZE, epochs: int = EPOCHS, batch_ms: float = 30, **more) -> str:
    flags = {"size": size, "epochs": epochs, "batch": BATCH, "shard_batches": SHARD_BATCHES,
             "batch_ms": batch_ms, **more}
    return (f"exec python {PROGRAMS}/counter.py "
            + " ".join(f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
                       for name, value in flags.items()))


def start_counting(start: Callable, *flags: str, name: str = "count", workers: int = 3,
                   servers: int = 2, secs: int = 1, binary: str = BINARY, **more) -> Job:
    return start(name, counting(**more), f"--num_workers={workers}", "--ps_program=elasticdl",
                 f"--num_ps_pods={servers}", "--ps_lanes=2", f"--recovery_checkpoint_secs={secs}",
                 "--relaunch_on_worker_failure=100", *flags, binary=binary)


def newest_checkpoint(job: Job, folder: Optional[Path] = None) -> Path:
    return (folder or job.folder / "checkpoints") / job.status()["checkpoint"]


def check_rows(client: ParameterClient, size: int = SIZE, epochs: int = EPOCHS) -> None:
    rows = client.pull("rows", np.arange(size, dtype=np.int64), create=False)[:, 0]
    wrong = np.flatnonzero(rows != epochs)
    assert wrong.size == 0, f"{wrong.size} rows are wrong: {wrong[:10]} are {rows[wrong[:10]]}"


def check_counts(start_ps: Callable, folder: Path, servers: int = 3, size: int = SIZE,
                 epochs: int = EPOCHS) -> None:
    """Restores a checkpoint into other servers. Every row must be the number of epochs."""
    addresses = [server.address for server in start_ps(servers)]
    with ParameterClient(addresses) as client:
        assert client.restore(folder) == size
        client.declare(tables=[TABLE], tensors=[counter()])
        check_rows(client, size, epochs)
        assert client.pull_tensors()["batches"][0] == -(-size // BATCH) * epochs


def check_rounds(start_ps: Callable, folder: Path, size: int = SIZE, epochs: int = EPOCHS) -> None:
    """The same after synchronous rounds of two. The number of batches in a round varies, and so
    does the dense counter, but every bucket must have applied each batch once."""
    consistency = {"gradients": 2, "tolerance": 2}
    (server,) = start_ps(1, flags=["--http_port=0"])
    with ParameterClient(server.address) as client:
        assert client.restore(folder) == size
        client.declare(tables=[TABLE], tensors=[counter()], consistency=consistency)
        check_rows(client, size, epochs)
    metrics = server.metrics()
    lanes = 2
    assert metrics["least_gradients_total"] == -(-size // BATCH) * epochs * lanes
    assert metrics["most_gradients_total"] == metrics["least_gradients_total"]


def worker_logs(job: Job) -> str:
    return "".join(path.read_text() for path in job.folder.glob("logs/*worker*.log"))


class Killing:
    """Kills random replicas and the master of a job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.random = random.Random(draw_seed())
        self.counts = {"worker": 0, "ps": 0, "master": 0}

    def kill(self, role: str) -> bool:
        if role == "master":
            pid = self.job.master_pid()
        else:
            running = self.job.running(role)
            pid = self.random.choice(running)["pid"] if running else None
        if pid is None or pid not in self.job.leftovers():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.counts[role] += 1
        return True

    def kill_now(self, role: str) -> None:
        wait_for(f"a {role} to kill", lambda: self.kill(role), 30)

    def report(self) -> None:
        print(f"kills {self.counts}")


def await_share(job: Job, share: float, size: int = SIZE, epochs: int = EPOCHS) -> None:
    wait_for(f"{share:.0%} of the records",
             lambda: job.process.poll() is not None or job.records_done() >= share * size * epochs,
             240)


def test_counts_are_correct_without_kills(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, size=4000, batch_ms=5)
    view = job.assert_succeeded()
    assert view["datasets"][0]["shards_repeated"] == 0
    assert [server["rows"] > 0 for server in view["servers"]] == [True, True]
    check_counts(start_ps, newest_checkpoint(job), servers=1, size=4000)


@pytest.mark.parametrize("in_flight", [pytest.param(1, marks=nightly), 4])
def test_counts_are_correct_whichever_process_is_killed(start: Callable, start_ps: Callable,
                                                        in_flight: int) -> None:
    job = start_counting(start, in_flight=in_flight)
    killing = Killing(job)
    roles = ["ps", "worker", "master", "ps", "worker", "ps", "master"]
    for number, role in enumerate(roles):
        await_share(job, (number + 1) / (len(roles) + 2))
        killing.kill_now(role)
    view = job.assert_succeeded(180)
    killing.report()
    assert killing.counts["ps"] == 3
    assert view["datasets"][0]["shards_repeated"] > 0, (
        "no shard was repeated: the kills were too early or too late")
    check_counts(start_ps, newest_checkpoint(job))


def kill_a_server(start: Callable, binary: str = BINARY) -> Path:
    """A run in which a server is killed between two checkpoints. Returns the last checkpoint."""
    job = start_counting(start, secs=3, binary=binary)
    await_share(job, 0.5)
    Killing(job).kill_now("ps")
    job.assert_succeeded(120)
    return newest_checkpoint(job)


def test_a_server_lost_between_two_checkpoints_loses_no_batch(start: Callable,
                                                             start_ps: Callable) -> None:
    check_counts(start_ps, kill_a_server(start), servers=1)


def test_rounds_apply_every_gradient_once(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, "--grads_to_wait=2", "--sync_version_tolerance=2", in_flight=1)
    killing = Killing(job)
    for share, role in ((0.2, "ps"), (0.4, "worker"), (0.6, "ps"), (0.8, "master")):
        await_share(job, share)
        killing.kill_now(role)
    job.assert_succeeded(180)
    check_rounds(start_ps, newest_checkpoint(job))


def test_lost_answers_and_connections_lose_no_batch(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, in_flight=4, lose=0.02)
    job.assert_succeeded(180)
    lost = [int(number) for number in re.findall(r"lost (\d+) answers", worker_logs(job))]
    assert sum(lost) > 50, lost
    check_counts(start_ps, newest_checkpoint(job), servers=1)


def test_a_server_lost_after_reports_and_before_a_checkpoint_gets_the_shards_again(
        start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, secs=600)  # the first checkpoint is before the first push
    await_share(job, 0.1)
    first = job.status()["checkpoint"]
    await_share(job, 0.5)
    done = job.records_done()
    assert job.status()["checkpoint"] == first
    Killing(job).kill_now("ps")
    view = job.assert_succeeded(180)
    repeated = view["datasets"][0]["shards_repeated"]
    assert repeated >= done // (BATCH * SHARD_BATCHES), "reported shards must be repeated"
    check_counts(start_ps, newest_checkpoint(job))


def test_a_server_that_gets_sigterm_is_saved_first(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, secs=600)
    for share in (0.3, 0.6):
        await_share(job, share)
        victim = wait_for("a server", lambda: job.running("ps")[:1], 30)[0]
        os.kill(victim["pid"], signal.SIGTERM)
        wait_for("its successor", lambda: any(server["id"] > victim["id"]
                                              for server in job.running("ps")), 30)
    view = job.assert_succeeded(180)
    assert view["datasets"][0]["shards_repeated"] == 0
    check_counts(start_ps, newest_checkpoint(job))


def test_a_report_in_flight_while_a_server_is_lost_does_not_count(start: Callable,
                                                                  start_ps: Callable) -> None:
    job = start_counting(start, log_reports=True)
    for share in (0.3, 0.6):
        await_share(job, share)
        master = job.master_pid()
        victim = wait_for("a server", lambda: job.running("ps")[:1], 30)[0]
        os.kill(master, signal.SIGSTOP)
        # Workers train their shards and report them to the stopped master.
        wait_for("all workers to report", lambda: all(
            log.read_text().rstrip().splitlines()[-1] == "reports 1 shards"
            for log in job.folder.glob("logs/*worker*.log")), 30)
        os.kill(victim["pid"], signal.SIGKILL)
        os.kill(master, signal.SIGCONT)
    job.assert_succeeded(180)
    check_counts(start_ps, newest_checkpoint(job))


def unfinished_saves(job: Job) -> list:
    return [path for path in (job.folder / "checkpoints").iterdir()
            if any(path.glob("part-*")) and not (path / "manifest.json").exists()]


def test_a_save_in_progress_while_a_server_is_lost_is_not_used(start: Callable,
                                                               start_ps: Callable) -> None:
    job = start_counting(start, secs=1, ballast=512)
    await_share(job, 0.3)
    victims = wait_for("both servers", lambda: len(job.running("ps")) == 2 and job.running("ps"))
    begun = wait_for("a save", lambda: unfinished_saves(job), 30)
    os.kill(victims[0]["pid"], signal.SIGKILL)
    assert not (begun[-1] / "manifest.json").exists(), "the save was complete before the kill"
    job.assert_succeeded(180)
    assert newest_checkpoint(job) not in begun
    assert not any((path / "manifest.json").exists() for path in begun)
    (server,) = start_ps(1)
    with ParameterClient(server.address) as client:
        client.restore(newest_checkpoint(job))
        client.declare(tables=[TABLE, {"name": "ballast", "dim": 512}], tensors=[counter()])
        check_rows(client)


def test_a_worker_waits_for_the_slowest(start: Callable, start_ps: Callable) -> None:
    ahead = 3
    job = start_counting(start, f"--max_staleness={ahead}", size=6000, epochs=1, batch_ms=0,
                         slow_ms=100, workers=2, servers=1)
    job.assert_succeeded(120)
    trained = sorted(int(number) for number in re.findall(r"trained (\d+) batches",
                                                          worker_logs(job)))
    assert len(trained) == 2 and sum(trained) >= 6000 // BATCH
    # The fast worker trains the rest of its last shard alone.
    assert trained[1] - trained[0] <= ahead + 1 + SHARD_BATCHES, trained
    check_counts(start_ps, newest_checkpoint(job), servers=1, size=6000, epochs=1)


def test_all_servers_can_be_lost_at_once(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start)
    for share in (0.3, 0.6):
        await_share(job, share)
        for server in wait_for("both servers", lambda: len(job.running("ps")) == 2
                               and job.running("ps"), 30):
            with contextlib.suppress(ProcessLookupError):
                os.kill(server["pid"], signal.SIGKILL)
    job.assert_succeeded(180)
    check_counts(start_ps, newest_checkpoint(job), servers=1)


def damage(folder: Path) -> None:
    """Flips a byte in the middle of every part: a server reads only those with its buckets."""
    for part in folder.glob("part-*"):
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 0xFF
        part.write_bytes(content)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(start: Callable,
                                                            start_ps: Callable) -> None:
    job = start_counting(start, secs=2)
    await_share(job, 0.2)
    known = job.status()["checkpoint"]
    wait_for("one more checkpoint", lambda: job.status()["checkpoint"] != known, 60)
    damage(newest_checkpoint(job))
    Killing(job).kill_now("ps")
    job.assert_succeeded(120)
    assert "using the one before it" in job.cli("logs", job.name, "master")
    check_counts(start_ps, newest_checkpoint(job))


def test_a_job_without_a_good_checkpoint_fails_and_names_the_file(start: Callable) -> None:
    job = start_counting(start, secs=600)
    await_share(job, 0.2)
    damage(newest_checkpoint(job))
    Killing(job).kill_now("ps")
    assert job.wait(60) == 1
    assert "part-" in job.status()["reason"]


def test_a_checkpoint_of_another_job_gives_parameters_but_no_watermarks(
        start: Callable, start_ps: Callable) -> None:
    first = start_counting(start, name="first", size=4000, epochs=1, batch_ms=2)
    first.assert_succeeded()
    second = start_counting(start, f"--checkpoint_dir_for_init={newest_checkpoint(first)}",
                            name="second", servers=3, size=4000, epochs=2, batch_ms=2)
    second.assert_succeeded()
    check_counts(start_ps, newest_checkpoint(second), size=4000, epochs=3)


@pytest.mark.parametrize("servers", [pytest.param(1, marks=nightly), 3])
def test_a_job_resumes_with_another_number_of_servers(servers: int, start: Callable,
                                                      start_ps: Callable) -> None:
    job = start_counting(start)
    await_share(job, 0.4)
    job.process.send_signal(signal.SIGINT)
    assert job.wait(30) == 130
    again = start_counting(start, "--resume", servers=servers)
    again.assert_succeeded(120)
    check_counts(start_ps, newest_checkpoint(again))


def test_a_frozen_worker_that_continues_after_its_lease_has_ended_changes_nothing(
        start: Callable, start_ps: Callable) -> None:
    # The data must last longer than the 30 s after which a silent worker loses its leases.
    job = start_counting(start, batch_ms=160, secs=1)
    (frozen,) = wait_for("a worker with a lease", lambda: [
        r for r in job.running("worker") if r["leases"] > 0][:1], 60)
    os.kill(frozen["pid"], signal.SIGSTOP)
    wait_for("its lease to be reclaimed", lambda: not any(
        r["leases"] for r in job.status()["replicas"] if r["name"] == frozen["name"]), 60)
    known = job.status()["checkpoint"]
    await_share(job, job.records_done() / (SIZE * EPOCHS) + 0.05)
    wait_for("a checkpoint", lambda: job.status()["checkpoint"] != known, 60)
    os.kill(frozen["pid"], signal.SIGCONT)
    job.assert_succeeded(180)
    check_counts(start_ps, newest_checkpoint(job))


def test_a_dataset_that_is_reset_is_trained_again(start: Callable, start_ps: Callable) -> None:
    size = 4000
    job = start_counting(start, size=size, epochs=2, reset_at=20)
    job.assert_succeeded()
    (server,) = start_ps(1)
    with ParameterClient(server.address) as client:
        client.restore(newest_checkpoint(job))
        client.declare(tables=[TABLE], tensors=[counter()])
        rows = client.pull("rows", np.arange(size, dtype=np.int64), create=False)[:, 0]
        batches = client.pull_tensors()["batches"][0]
    assert rows.min() >= 2, "the new generation must be trained completely"
    assert rows.max() <= 4, "at most once per epoch in each generation"
    assert batches > size // BATCH * 2, "some batches must be trained before the reset"
    assert rows.sum() == batches * BATCH


@nightly
def test_counts_are_correct_after_ten_minutes_of_kills(start: Callable, start_ps: Callable) -> None:
    size = 200_000
    job = start_counting(start, size=size, batch_ms=120, secs=5, in_flight=4)
    killing = Killing(job)
    done = 0
    while done < size * EPOCHS and job.process.poll() is None:
        done += killing.random.randint(2000, 8000)
        await_share(job, done / (size * EPOCHS), size)
        killing.kill(killing.random.choice(["worker", "worker", "ps", "master"]))
    job.assert_succeeded(900)
    killing.report()
    check_counts(start_ps, newest_checkpoint(job), size=size)
