"""Flags change the behaviour of real jobs."""

from pathlib import Path
from typing import Callable

from harness import wait_for
from test_manage import ender


def test_a_failed_shard_is_not_retried_without_task_fault_tolerance(start: Callable) -> None:
    job = start("once", ender("fails"), "--num_workers=1", "--task_fault_tolerance=false")
    view = job.assert_succeeded()
    assert view["datasets"][0]["shards_quarantined"] == 1
    assert view["datasets"][0]["shards_repeated"] == 0
    assert any("record 500 is broken" in r for r in view["remarks"]), view["remarks"]


def test_a_dataset_is_rejected_without_a_task_manager(start: Callable) -> None:
    job = start("unmanaged", ender("nan"), "--num_workers=1", "--need_task_manager=false",
                "--relaunch_on_worker_failure=0")
    assert job.wait() == 1
    assert "--need_task_manager=false" in job.output(), job.output()


def test_sizes_default_to_the_flags_of_the_job(start: Callable) -> None:
    job = start("defaults", ender("gives-no-sizes", "--size=100"), "--num_workers=1",
                "--minibatch_size=7", "--num_epochs=3", "--num_minibatches_per_task=2")
    view = job.assert_succeeded()
    dataset = view["datasets"][0]
    assert (dataset["epochs"], dataset["records_done"]) == (3, 300)
    assert dataset["shards_done"] == 3 * 8  # shards of 2 * 7 records
    assert view["version"] == 3 * 15


def test_a_ps_that_is_not_critical_may_be_lost(start: Callable, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    command = (f'if [ "$WORKER_TYPE" = ps ]; then exit 3; fi; '
               f'until [ -e {lost} ]; do sleep 0.05; done')
    job = start("noncritical", f"bash -c '{command}'", "--num_workers=1", "--num_ps_pods=1",
                "--ps_relaunch_max_num=0", "--ps_is_critical=false")

    def states_of_ps() -> list:
        view = job.try_status() or {"replicas": []}
        return [r["state"] for r in view["replicas"] if r["role"] == "ps"]

    wait_for("the ps to fail", lambda: states_of_ps() == ["failed"])
    lost.touch()
    job.assert_succeeded()
