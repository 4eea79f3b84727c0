"""Barriers and events between the workers of a job."""

from typing import Optional

from elasticai_api.common.master_client import build_master_client


def worker_sync(sync_name: str, timeout: Optional[float] = None) -> bool:
    """Waits until every running worker has called this with the same name.

    Returns False when `timeout` seconds pass first. Workers that die, or come later, do not hold
    the others up: the master counts those that run. Without a master it returns at once.
    """
    return build_master_client().arrive(sync_name, timeout)


def wait_worker_sync(
    sync_name: str, notify: bool = False, timeout: Optional[float] = None
) -> bool:
    """Waits until somebody calls this with notify=True and the same name.

    Returns False when `timeout` seconds pass first. An event stays: who comes after it does not
    wait. With notify=True it returns True at once.
    """
    client = build_master_client()
    if notify:
        client.notify(sync_name)
        return True
    return client.await_event(sync_name, timeout)


def delete_worker_sync(sync_name: str) -> None:
    """Forgets the barrier or event of that name, so that it can be used again."""
    build_master_client().delete_sync(sync_name)


def delete_all_worker_sync() -> None:
    """Forgets all barriers and events of the job."""
    build_master_client().delete_sync(everything=True)
