"""Unmodified published packages, in their own environments, with our master."""

import asyncio
import collections
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict

import grpc
import pytest
from harness import PROGRAMS, ROOT, Killer, relay_to_master, wait_for

PARTS = ("shards", "index", "generator")


def environment(name: str) -> str:
    done = subprocess.run([ROOT / "tools" / "env-path", name], text=True, capture_output=True,
                          check=True)
    return done.stdout.strip()


def worker(env: str, log_dir: Path, parts: str, size: int, prefix: str = "") -> str:
    # Without PYTHONPATH, which would import our package.
    return (f"{prefix}exec env -u PYTHONPATH {environment(env)}/bin/python "
            f"{PROGRAMS}/published_worker.py --parts={parts} --size={size} --epochs=2 "
            f"--record-us=2000 --log-dir={log_dir}")


def served(log_dir: Path) -> Dict[tuple, int]:
    counts: Dict[tuple, int] = collections.Counter()
    for path in log_dir.glob("*.log"):
        for line in path.read_text().splitlines():
            part, record = line.split()
            counts[part, int(record)] += 1
    return counts


def done_by_part(job) -> Dict[str, int]:
    view = job.try_status()
    return {d["name"]: d["records_done"] for d in view["datasets"]} if view else {}


def check_all_served(job, log_dir: Path, parts, size: int) -> None:
    view = job.assert_succeeded()
    assert {d["name"]: d["records_done"] for d in view["datasets"]} == {p: 2 * size for p in parts}
    assert all(d["records_not_trained"] == 0 for d in view["datasets"])
    counts = served(log_dir)
    missing = [(p, r) for p in parts for r in range(size) if counts[p, r] < 2]
    assert not missing, missing[:10]


def test_elasticai_api_1_4_2_trains_despite_a_kill_a_restart_and_a_lost_answer(
        start: Callable, tmp_path: Path) -> None:
    log_dir, size = tmp_path / "log", 1001
    proxy = relay_to_master(tmp_path / "home" / "jobs" / "published")
    prefix = f"export DLROVER_MASTER_ADDR={proxy.address}; "
    job = start("published", worker("published", log_dir, ",".join(PARTS), size, prefix),
                "--num_workers=2")
    try:
        wait_for("the first part", lambda: done_by_part(job).get("shards", 0) > size // 2, 90)
        killer = Killer(job)
        wait_for("a worker to kill", lambda: killer.kill_one("worker"))
        wait_for("the second part", lambda: done_by_part(job).get("index", 0) > size // 2, 90)
        pid = wait_for("the master", job.master_pid)
        os.kill(pid, signal.SIGKILL)
        wait_for("the third part", lambda: done_by_part(job).get("generator", 0) > size // 2, 90)
        proxy.lose = 1.0
        wait_for("a reply to be lost", lambda: proxy.lost > 0)
        proxy.lose = 0.0
        check_all_served(job, log_dir, PARTS, size)
    finally:
        proxy.close()


def test_workers_of_elasticdl_api_1_0_0_reconnect_after_a_master_restart(
        start: Callable, tmp_path: Path) -> None:
    log_dir, size = tmp_path / "log", 2001
    job = start("published10", worker("published10", log_dir, "shards", size), "--num_workers=2")
    wait_for("half of it", lambda: done_by_part(job).get("shards", 0) > size, 90)
    pid = wait_for("the master", job.master_pid)
    os.kill(pid, signal.SIGKILL)
    check_all_served(job, log_dir, ["shards"], size)


def master_address(job) -> str:
    return wait_for("the master", lambda: job.master_pid() and (
        job.folder / "master.addr").read_text().strip())


def call(channel: grpc.Channel, method: str, request: bytes = b"", timeout: float = 10) -> bytes:
    return channel.unary_unary(f"/proto.{method}")(request, timeout=timeout, wait_for_ready=True)


# Every call except those that are held until there is data.
CALLS = """report_task_result get_comm_rank report_training_loop_status report_dataset_task_result
reset_dataset get_dataset_epoch get_shard_checkpoint report_shard_checkpoint worker_sync
wait_worker_sync delete_worker_sync report_used_resource reset_sync barrier_sync
query_relaunch_ps_pod ready_for_ps_relaunch update_critical_worker report_model_metric
report_global_step query_running_nodes query_ps_nodes query_training_status get_cluster_version
update_cluster_version init_remote_lock release_remote_lock acquire_remote_lock
report_autotune_status report_prestop report_version report_evaluation_metrics""".split()


@pytest.fixture
def idle(start: Callable):
    job = start("idle", "exec sleep 600", "--num_workers=1")
    wait_for("the worker", lambda: job.running("worker"))
    return job


def text(number: int, value: str) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def test_every_call_of_the_published_api_is_answered(idle) -> None:
    with grpc.insecure_channel(master_address(idle)) as channel:
        for name in CALLS:
            call(channel, f"Master/{name}")
        for name in ("report_version", "report_evaluation_metrics"):
            call(channel, f"TrainLoopMaster/{name}")
        # 10 records, batches of 2, shards of 1 batch, 1 epoch, for both ways to name a dataset.
        params = bytes([1 << 3, 2, 2 << 3, 1, 3 << 3, 10, 6 << 3, 1])
        call(channel, "Master/report_training_params", params)
        call(channel, "Master/report_dataset_shard_params", params + text(7, "named"))
        assert call(channel, "Master/get_task", bytes([1 << 3, 1])) != b""
        request = bytes([1 << 3, 1]) + text(2, "named")
        assert call(channel, "Master/get_dataset_task", request) != b""
        # The first caller gets the lock; the second one waits for a second and does not.
        lock = text(1, "lock") + bytes([2 << 3, 1])
        assert call(channel, "Master/acquire_remote_lock", lock + bytes([3 << 3, 1])) == b"\x08\x01"
        assert call(channel, "Master/acquire_remote_lock", lock + bytes([3 << 3, 2])) == b""
        # A barrier of the only running worker (id 0), and an event.
        assert call(channel, "Master/worker_sync", text(1, "b")) == b"\x08\x01"
        assert call(channel, "Master/wait_worker_sync", text(1, "e")) == b""
        call(channel, "Master/wait_worker_sync", text(1, "e") + bytes([2 << 3, 1]))
        assert call(channel, "Master/wait_worker_sync", text(1, "e")) == b"\x08\x01"


def test_master_api_needs_the_token(idle) -> None:
    with grpc.insecure_channel(master_address(idle)) as channel:
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary("/elasticdl.v1.Master/GetJob")(
                    b"", timeout=10, metadata=metadata)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_five_thousand_held_calls_do_not_block_others(idle) -> None:
    address, count = master_address(idle), 5000

    async def hold() -> float:
        channels = [grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
                    for _ in range(25)]  # the master accepts 256 calls of one connection at a time
        fetches = []
        for number in range(count):
            fetch = channels[number % len(channels)].unary_unary("/proto.Master/get_dataset_task")
            # Worker ids of three bytes, and a dataset that is never registered. The master admits
            # 1,024 workers that it did not launch; each of these makes five calls.
            worker_id = 100_000 + number % 1000
            request = bytes([1 << 3, worker_id & 127 | 128, worker_id >> 7 & 127 | 128,
                             worker_id >> 14]) + text(2, "nobody")
            fetches.append(asyncio.ensure_future(_await(fetch(request, timeout=300))))
        await asyncio.sleep(0)
        with_others = channels[0].unary_unary("/proto.Master/query_running_nodes")
        slowest = 0.0
        held = 0
        for _ in range(200):
            begin = time.monotonic()
            await with_others(b"", timeout=30)
            slowest = max(slowest, time.monotonic() - begin)
            held = sum(not f.done() for f in fetches)
        assert held == count, f"only {held} of {count} calls are held"
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        for channel in channels:
            await channel.close()
        return slowest

    async def _await(call):
        return await call

    slowest = asyncio.run(hold())
    print(f"slowest of 200 calls beside {count} held ones: {slowest * 1000:.1f} ms")
    assert idle.status()["state"] == "running"
