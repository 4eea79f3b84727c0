"""Flags change what a real job does."""

from typing import Callable

from test_manage import ender


def test_a_failed_shard_is_not_retried_without_task_fault_tolerance(start: Callable) -> None:
    job = start("once", ender("fails"), "--num_workers=1", "--task_fault_tolerance=false")
    view = job.assert_succeeded()
    assert view["datasets"][0]["shards_quarantined"] == 1
    assert view["datasets"][0]["shards_repeated"] == 0
    assert any("record 500 is broken" in r for r in view["remarks"]), view["remarks"]


def test_a_dataset_is_refused_without_a_task_manager(start: Callable) -> None:
    job = start("unmanaged", ender("nan"), "--num_workers=1", "--need_task_manager=false",
                "--relaunch_on_worker_failure=0")
    assert job.wait() == 1
    assert "--need_task_manager=false" in job.output(), job.output()


def test_sizes_that_a_program_does_not_give_are_the_jobs(start: Callable) -> None:
    job = start("defaults", ender("gives-no-sizes", "--size=100"), "--num_workers=1",
                "--minibatch_size=7", "--num_epochs=3", "--num_minibatches_per_task=2")
    view = job.assert_succeeded()
    dataset = view["datasets"][0]
    assert (dataset["epochs"], dataset["records_done"]) == (3, 300)
    assert dataset["shards_done"] == 3 * 8  # shards of 2 * 7 records
    assert view["version"] == 3 * 15


def test_a_ps_that_is_not_critical_may_be_lost(start: Callable) -> None:
    command = 'if [ "$WORKER_TYPE" = ps ]; then exit 3; fi; sleep 1'
    view = start("noncritical", f"bash -c '{command}'", "--num_workers=1", "--num_ps_pods=1",
                 "--ps_relaunch_max_num=0", "--ps_is_critical=false").assert_succeeded()
    assert [r["state"] for r in view["replicas"] if r["role"] == "ps"] == ["failed"]
