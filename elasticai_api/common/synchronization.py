"""Barriers and events between the workers of a job."""

from typing import Optional

from elasticai_api.common.master_client import build_master_client


def worker_sync(sync_name: str, timeout: Optional[float] = None) -> bool:
    """Waits until every running worker has called this with the same name.

    Returns False after `timeout` seconds. Workers that are lost, or start later, do not delay the
    others: the master counts running workers. Without a master it returns immediately.
    """
    return build_master_client().arrive(sync_name, timeout)


def wait_worker_sync(
    sync_name: str, notify: bool = False, timeout: Optional[float] = None
) -> bool:
    """Waits until a process calls this with notify=True and the same name.

    Returns False after `timeout` seconds. The event persists: a process that calls this later does
    not wait. With notify=True it returns True immediately.
    """
    client = build_master_client()
    if notify:
        client.notify(sync_name)
        return True
    return client.await_event(sync_name, timeout)


def delete_worker_sync(sync_name: str) -> None:
    """Deletes the barrier or event of that name, so that the name can be used again."""
    build_master_client().delete_sync(sync_name)


def delete_all_worker_sync() -> None:
    """Deletes all barriers and events of the job."""
    build_master_client().delete_sync(everything=True)
