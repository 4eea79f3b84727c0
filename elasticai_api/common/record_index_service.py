"""A dataset record by record, for data loaders with several processes."""

import multiprocessing
import threading
import time
from typing import Any, Dict, Iterator, Optional, Sequence

from elasticai_api.common.errors import MasterError
from elasticai_api.common.shard import Shard
from elasticai_api.common.shard_service import DataShardService, bind_parameters
from elasticai_api.util.log_utils import default_logger as logger

_PARAMETERS = (
    "batch_size",
    "num_epochs",
    "dataset_size",
    "task_type",
    "shuffle",
    "num_minibatches_per_shard",
    "dataset_name",
    "master_client",
    "num_workers",
)


class _End:
    """What the queue holds after the last index: the end, or why there is no more."""

    def __init__(self, error: str = "", code: str = ""):
        self.error = error
        self.code = code


class RecordIndexService(DataShardService):
    """Gives out the indices of records, one at a time, to any number of threads and processes.

    RecordIndexService(batch_size, num_epochs=None, dataset_size=None, task_type=TRAINING,
    shuffle=False, num_minibatches_per_shard=0, dataset_name=None, master_client=None,
    num_workers=1); `shuffle` is a shuffle of all records. `num_workers` is accepted: however many
    processes fetch, each is told the end.

    A thread of this process fetches shards, at most two ahead of what was taken, and fills a queue
    that data loaders' processes share. They call `fetch_record_index`; only this process calls
    `report_batch_done`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        bound = bind_parameters(type(self).__name__, _PARAMETERS, args, kwargs)
        bound.pop("num_workers", None)
        self._queue: Any = multiprocessing.SimpleQueue()
        self._put_lock = threading.Lock()
        super().__init__(**bound)
        self._start_prefetching()

    def fetch_record_index(self) -> int:
        """The index of the next record. StopIteration: the data has ended, now and whenever it
        is called again. MasterError: the master refused to give more."""
        got = self._queue.get()
        if not isinstance(got, _End):
            return got
        self._queue.put(got)  # for the next caller, in whatever process
        if got.error:
            raise MasterError(got.error, got.code)
        raise StopIteration

    def record_index_gen(self) -> Iterator[int]:
        """The indices to the end of the data."""
        while True:
            try:
                index = self.fetch_record_index()
            except StopIteration:
                return
            yield index

    def get_tf_dataset(self, record_files: Optional[Sequence[str]] = None) -> Any:
        """A tf.data.Dataset of the indices, or of `record_files` by them."""
        import tensorflow as tf

        def indices() -> Iterator[Any]:
            for index in self.record_index_gen():
                yield record_files[index] if record_files else index

        return tf.data.Dataset.from_generator(indices, tf.string if record_files else tf.int64)

    def clear_shard_queue(self) -> None:
        """Throws away what was fetched and not taken. Its shards go back to the master."""
        self.start_over()

    def start_over(self) -> None:
        super().start_over()
        self._restart_prefetching()

    def _forget(self) -> None:
        super()._forget()
        self._restart_prefetching()

    def _order(self, shuffle: bool, shuffle_shards: bool) -> dict:
        return {"shuffle_records": shuffle, "shuffle_shards": shuffle_shards}

    def _start_prefetching(self) -> None:
        threading.Thread(
            target=self._prefetch, args=(self._generation,), name="fetch_shard_indices", daemon=True
        ).start()

    def _restart_prefetching(self) -> None:
        # The generation has changed, so once the lock is had nothing old is put any more; to let
        # go of it, a thread that waits for room in the queue has to get some.
        while not self._put_lock.acquire(timeout=0.01):
            self._drain()
        try:
            self._drain()
        finally:
            self._put_lock.release()
        self._start_prefetching()

    def _drain(self) -> None:
        while not self._queue.empty():
            self._queue.get()

    def _prefetch(self, generation: int) -> None:
        end = _End()
        try:
            for shard in self._shards_of(generation):
                if not self._wait_until_taken(generation) or not self._put(generation, shard):
                    return
        except MasterError as error:
            logger.error("%s", error)
            end = _End(str(error), error.code)
        with self._put_lock:
            if generation == self._generation:
                self._queue.put(end)

    def _put(self, generation: int, shard: Shard) -> bool:
        for index in shard.records():
            with self._put_lock:
                if generation != self._generation:
                    return False
                self._queue.put(index)
        return True

    def _wait_until_taken(self, generation: int) -> bool:
        # The takers may be other processes, which have no way to wake this thread.
        pause_s = 0.0005
        while not self._queue.empty():
            if generation != self._generation:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.005)
        return True

    def __getstate__(self) -> Dict[str, Any]:
        """For data loaders that start their processes anew: a copy takes indices, and no more."""
        return {"_queue": self._queue}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no {name!r} in this process: a copy in a data loader's "
            "process only has fetch_record_index; report in the process that made the service"
        )
