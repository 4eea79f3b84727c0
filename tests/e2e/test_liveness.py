"""Parameter servers and workers that are lost without an exit: stopped or cut off from the network.
The job continues, and every batch is counted once."""

import os
import signal
import time
from pathlib import Path
from typing import Callable

import pytest
from harness import Job
from namespace import Namespace, namespace  # noqa: F401 - a fixture
from test_counting import (
    await_share,
    check_counts,
    newest_checkpoint,
    nightly,
    start_counting,
    worker_logs,
)
from waiting import wait_for


def a_server(job: Job) -> dict:
    return wait_for("a server", lambda: job.running("ps")[:1], 30)[0]


def reason_of(job: Job, index: int) -> str:
    view = job.try_status()
    return view["servers"][index]["reason"] if view else ""


def await_successor(job: Job, of: dict) -> None:
    wait_for("its successor", lambda: any(
        server["index"] == of["index"] and server["id"] > of["id"]
        for server in job.running("ps")), 60)


def test_a_stopped_server_is_shown_and_replaced(start: Callable, start_ps: Callable) -> None:
    job = start_counting(start, "--ps_silence_secs=4")
    await_share(job, 0.3)
    victim = a_server(job)
    os.kill(victim["pid"], signal.SIGSTOP)
    wait_for("its reason in status", lambda: "no answer for" in reason_of(job, victim["index"]), 30)
    await_successor(job, victim)
    view = job.assert_succeeded(180)
    gone = next(r for r in view["replicas"] if r["name"] == victim["name"])
    assert "no answer for" in gone["reason"]
    check_counts(start_ps, newest_checkpoint(job))


@nightly
def test_a_server_may_stop_for_a_minute(start: Callable, start_ps: Callable) -> None:
    """The server is not replaced; workers wait until it continues."""
    job = start_counting(start, "--ps_silence_secs=0")
    await_share(job, 0.3)
    victim = a_server(job)
    os.kill(victim["pid"], signal.SIGSTOP)
    time.sleep(60)  # this test is about the length of the pause
    os.kill(victim["pid"], signal.SIGCONT)
    view = job.assert_succeeded(180)
    assert [r["id"] for r in view["replicas"] if r["role"] == "ps"] == [0, 1]
    check_counts(start_ps, newest_checkpoint(job))


@nightly
def test_a_server_that_stops_for_a_minute_is_replaced_by_default(start: Callable,
                                                                 start_ps: Callable) -> None:
    job = start_counting(start)
    await_share(job, 0.3)
    victim = a_server(job)
    os.kill(victim["pid"], signal.SIGSTOP)
    await_successor(job, victim)
    job.assert_succeeded(180)
    check_counts(start_ps, newest_checkpoint(job))


def test_a_server_whose_network_is_cut_is_replaced(start: Callable, start_ps: Callable,
                                                   namespace: Namespace) -> None:  # noqa: F811
    """Its connections get neither FIN nor RST, not even when its process is killed. Workers detect
    the loss themselves."""
    job = start_counting(start, "--ps_silence_secs=4", transport="tcp",
                         binary=str(namespace.binary))
    await_share(job, 0.3)
    victim = a_server(job)
    connections = namespace.connections_of(victim["pid"])
    port = next(iter(connections))[0]
    assert len(connections) > 3, "workers must be connected over TCP"
    for local, remote in connections:
        namespace.cut_connection(local, remote)
    namespace.cut("--dport", str(port))
    wait_for("the process to be killed", lambda: not Path(f"/proc/{victim['pid']}").exists(), 60)
    namespace.heal("--dport", str(port))  # its successor has the same port
    await_successor(job, victim)
    job.assert_succeeded(240)
    check_counts(start_ps, newest_checkpoint(job))


def test_a_worker_whose_network_is_cut_loses_no_batch(start: Callable, start_ps: Callable,
                                                      namespace: Namespace) -> None:  # noqa: F811
    """Master and servers receive nothing from it, not even FIN. Its shards run elsewhere."""
    job = start_counting(start, transport="tcp", binary=str(namespace.binary))
    await_share(job, 0.3)
    (victim,) = wait_for("a worker with a lease", lambda: [
        r for r in job.running("worker") if r["leases"] > 0][:1], 60)
    os.kill(victim["pid"], signal.SIGSTOP)  # so that it opens no new connections meanwhile
    for local, remote in namespace.connections_of(victim["pid"]):
        namespace.cut_connection(local, remote)
    os.kill(victim["pid"], signal.SIGCONT)
    job.assert_succeeded(240)
    assert "Traceback" not in worker_logs(job)
    check_counts(start_ps, newest_checkpoint(job))


@pytest.mark.parametrize("part", ["part-0000", "part-0001"])
def test_a_manifest_without_one_of_its_parts_restores_nothing(start_ps: Callable, tmp_path: Path,
                                                              part: str) -> None:
    import json

    import numpy as np

    from elasticdl import ParameterClient

    table = {"name": "rows", "dim": 1}
    (server,) = start_ps(1)
    with ParameterClient(server.address) as client:
        client.declare(tables=[table])
        client.pull("rows", np.arange(1000, dtype=np.int64))
        client.save(tmp_path / "saved")
    path = tmp_path / "saved" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["parts"] = [p for p in manifest["parts"] if not p["file"].startswith(part)]
    path.write_text(json.dumps(manifest))
    (empty,) = start_ps(1)
    with ParameterClient(empty.address) as client, pytest.raises(Exception, match="buckets?"):
        client.restore(tmp_path / "saved")


def test_the_number_of_lanes_is_decided_once(start: Callable, start_ps: Callable) -> None:
    """A job keeps its number of lanes, even if it resumes on a machine with other cores."""
    job = start_counting(start, "--ps_lanes=3", size=4000, batch_ms=20)
    await_share(job, 0.3, size=4000)
    job.process.send_signal(signal.SIGINT)
    assert job.wait(30) == 130
    again = start_counting(start, "--resume", "--ps_lanes=0", size=4000, batch_ms=5)
    again.assert_succeeded(120)
    assert "-of-0006-" in str(next(newest_checkpoint(again).glob("part-*")))
    check_counts(start_ps, newest_checkpoint(again), servers=1, size=4000)


