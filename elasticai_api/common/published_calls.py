"""The methods of the published MasterClient, implemented with ours.

Programs that use `GlobalMasterClient.MASTER_CLIENT` call these; the services of this package do
not. Methods that only Horovod, DDP or the resource optimiser of the original used are not included.
"""

import time
from types import SimpleNamespace
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from elasticai_api.common.constants import DefaultDatasetName, TaskType
from elasticai_api.common.shard import (
    DatasetSpec,
    DatasetState,
    Outcome,
    Report,
    Shard,
    Task,
    as_task_type,
)


class PublishedCalls:
    """A mix-in of MasterClient and LocalMasterClient, which implement the abstract methods."""

    def register_dataset(self, spec: DatasetSpec) -> DatasetSpec:
        raise NotImplementedError

    def lease(self, dataset: str, at_most: int = 1) -> List[Shard]:
        raise NotImplementedError

    def report(self, reports: Iterable[Report]) -> Set[int]:
        raise NotImplementedError

    def get_dataset(self, dataset: str) -> DatasetState:
        raise NotImplementedError

    def save_shards(self, dataset: str) -> str:
        raise NotImplementedError

    def restore_shards(self, content: str) -> bool:
        raise NotImplementedError

    def arrive(self, name: str, timeout_s: Optional[float] = None) -> bool:
        raise NotImplementedError

    def await_event(self, name: str, timeout_s: Optional[float] = None) -> bool:
        raise NotImplementedError

    def notify(self, name: str) -> None:
        raise NotImplementedError

    def delete_sync(self, name: str = "", everything: bool = False) -> None:
        raise NotImplementedError

    def acquire_lock(self, name: str, timeout_s: Optional[float] = None) -> bool:
        raise NotImplementedError

    def release_lock(self, name: str) -> bool:
        raise NotImplementedError

    def report_metrics(self, step: int, metrics: Optional[Dict[str, float]] = None) -> None:
        raise NotImplementedError

    # --- data ---

    def report_training_params(
        self,
        batch_size: Optional[int] = None,
        num_epochs: Optional[int] = None,
        dataset_size: Optional[int] = None,
        shuffle: bool = False,
        shuffle_shards: bool = False,
        num_minibatches_per_shard: int = 0,
        dataset_name: Optional[str] = None,
        task_type: Any = TaskType.TRAINING,
        remainder: Optional[str] = None,
    ) -> None:
        self.register_dataset(
            DatasetSpec(
                name=dataset_name or DefaultDatasetName.TRAINING,
                size=dataset_size or 0,
                batch_size=batch_size or 0,
                batches_per_shard=num_minibatches_per_shard,
                epochs=num_epochs or 0,
                shuffle_records=shuffle,
                shuffle_shards=shuffle_shards,
                task_type=as_task_type(task_type).name.lower(),
            )
        )

    def get_dataset_task(self, dataset_name: str) -> Tuple[bool, Task]:
        """(True, the next task). The type of the task is NONE at the end of the data."""
        shards = self.lease(dataset_name)
        if not shards:
            return True, Task()
        task_type = as_task_type(self.get_dataset(dataset_name).spec.task_type or "training")
        return True, Task(task_id=shards[0].lease, shard=shards[0], type=task_type)

    def get_task(self, task_type: Any = None) -> Tuple[bool, Task]:
        evaluates = task_type is not None and as_task_type(task_type) == TaskType.EVALUATION
        name = DefaultDatasetName.EVALUATION if evaluates else DefaultDatasetName.TRAINING
        return self.get_dataset_task(name)

    def report_task_result(
        self,
        task_id: int,
        err_msg: str = "",
        dataset_name: Optional[str] = None,
        exec_counters: Optional[Dict[str, int]] = None,
    ) -> None:
        outcome = Outcome.FAILED if err_msg else Outcome.DONE
        self.report([Report(task_id, outcome, err_msg)])

    def get_dataset_epoch(self, dataset_name: str) -> SimpleNamespace:
        return SimpleNamespace(epoch=self.get_dataset(dataset_name).epoch)

    def get_shard_checkpoint(self, dataset_name: str) -> SimpleNamespace:
        return SimpleNamespace(content=self.save_shards(dataset_name))

    def report_shard_checkpoint(self, shard_checkpoint: str) -> SimpleNamespace:
        return SimpleNamespace(success=self.restore_shards(shard_checkpoint))

    # --- peers ---

    def worker_sync(self, sync_name: str) -> SimpleNamespace:
        return SimpleNamespace(ready=self.arrive(sync_name, 0))

    def wait_worker_sync(self, sync_name: str, notify: bool) -> SimpleNamespace:
        if notify:
            self.notify(sync_name)
            return SimpleNamespace(ready=True)
        return SimpleNamespace(ready=self.await_event(sync_name, 0))

    def delete_worker_sync(self, sync_name: str) -> None:
        self.delete_sync(sync_name)

    def delete_all_worker_sync(self) -> None:
        self.delete_sync(everything=True)

    def init_remote_lock(self, name: str, timeout: float = -1, retry: int = 3) -> None:
        """Does nothing: a lock is created when it is first acquired."""

    def acquire_remote_lock(self, name: str, timeout: float = -1) -> bool:
        return self.acquire_lock(name, None if timeout < 0 else timeout)

    def release_remote_lock(self, name: str) -> None:
        self.release_lock(name)

    # --- metrics ---

    def report_global_step(self, global_step: int, timestamp: Optional[float] = None) -> None:
        self.report_metrics(global_step, {"timestamp": timestamp or time.time()})

    def report_used_resource(self, memory: float, cpu: float) -> None:
        """Does nothing: the backend measures its replicas."""

    def report_model_metric(self, *args: Any) -> None:
        """Does nothing: the master does not use it."""
