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
    """The last item in the queue: the end of the data, or an error."""

    def __init__(self, error: str = "", code: str = ""):
        self.error = error
        self.code = code


class RecordIndexService(DataShardService):
    """Distributes the indices of records, one at a time, to any number of threads and processes.

    RecordIndexService(batch_size, num_epochs=None, dataset_size=None, task_type=TRAINING,
    shuffle=False, num_minibatches_per_shard=0, dataset_name=None, master_client=None,
    num_workers=1). `shuffle` shuffles all records. `num_workers` is accepted without effect: every
    process that fetches gets the end of the data.

    A thread of this process fetches shards, at most two ahead of the consumers, and fills a queue
    that it shares with the processes of data loaders. These call `fetch_record_index`. Only this
    process may call `report_batch_done`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        bound = bind_parameters(type(self).__name__, _PARAMETERS, args, kwargs)
        bound.pop("num_workers", None)
        self._queue: Any = multiprocessing.SimpleQueue()
        self._put_lock = threading.Lock()
        super().__init__(**bound)
        self._start_prefetching()

    def fetch_record_index(self) -> int:
        """The index of the next record. Raises StopIteration at the end of the data, and again on
        each later call. Raises MasterError if the master rejects a call."""
        got = self._queue.get()
        if not isinstance(got, _End):
            return got
        self._queue.put(got)  # for the next caller, which may be in another process
        if got.error:
            raise MasterError(got.error, got.code)
        raise StopIteration

    def record_index_gen(self) -> Iterator[int]:
        """Yields the indices up to the end of the data."""
        while True:
            try:
                index = self.fetch_record_index()
            except StopIteration:
                return
            yield index

    def get_tf_dataset(self, record_files: Optional[Sequence[str]] = None) -> Any:
        """A tf.data.Dataset of the indices, or of the elements of `record_files` at them."""
        import tensorflow as tf

        def indices() -> Iterator[Any]:
            for index in self.record_index_gen():
                yield record_files[index] if record_files else index

        return tf.data.Dataset.from_generator(indices, tf.string if record_files else tf.int64)

    def clear_shard_queue(self) -> None:
        """Discards the indices in the queue and gives their shards back to the master."""
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
        # The generation has changed, so no old index is put after this thread has the lock. A
        # thread that holds the lock may wait for space in the queue, so drain it.
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
        # The consumers may be other processes, which cannot wake this thread.
        pause_s = 0.0005
        while not self._queue.empty():
            if generation != self._generation:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.005)
        return True

    def __getstate__(self) -> Dict[str, Any]:
        """For data loaders that spawn processes: a copy can only fetch indices."""
        return {"_queue": self._queue}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no {name!r} in this process: a copy in the process of a "
            "data loader only has fetch_record_index; report in the process that created the "
            "service"
        )
