"""RecordIndexService: records one by one, to threads and to data loaders' processes."""

import multiprocessing

import pytest

from elasticai_api.common import record_index_service
from elasticai_api.common.data_shard_service import RecordIndexService
from elasticai_api.common.errors import MasterError
from elasticai_api.common.local_master import LocalMasterClient
from elasticai_api.common.master_client import build_master_client


def rows(size=10, epochs=1, **more):
    return RecordIndexService(
        batch_size=2, num_epochs=epochs, dataset_size=size, num_minibatches_per_shard=2,
        dataset_name="rows", **more)


def take_all(service, results):
    taken = []
    while True:
        try:
            taken.append(service.fetch_record_index())
        except StopIteration:
            results.put(taken)
            return


def test_every_index_comes_once_an_epoch_and_the_generator_ends():
    service = rows(epochs=2)
    assert sorted(service.record_index_gen()) == sorted(2 * list(range(10)))
    assert list(service.record_index_gen()) == []


def test_past_the_end_every_fetch_says_so():
    service = rows(size=2)
    assert [service.fetch_record_index(), service.fetch_record_index()] == [0, 1]
    for _ in range(3):
        with pytest.raises(StopIteration):
            service.fetch_record_index()


def test_shuffle_mixes_the_records_of_all_shards():
    indices = list(rows(size=400, shuffle=True).record_index_gen())
    assert sorted(indices) == list(range(400))
    assert any(abs(a - b) > 40 for a, b in zip(indices, indices[1:]))


def test_counting_closes_the_shards():
    service = rows(size=11)
    indices = list(service.record_index_gen())
    for _ in range(6):
        service.report_batch_done()  # the last of the six had one record

    assert len(indices) == 11
    assert build_master_client().get_dataset("rows").finished


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_process_of_a_data_loader_is_told_the_end(method, monkeypatch):
    """num_workers is left at its default: the end must reach all three all the same."""
    context = multiprocessing.get_context(method)
    monkeypatch.setattr(record_index_service, "multiprocessing", context)  # the program's default
    service = rows(size=300)
    results = context.SimpleQueue()
    loaders = [context.Process(target=take_all, args=(service, results)) for _ in range(3)]
    for loader in loaders:
        loader.start()
    taken = sorted(index for _ in loaders for index in results.get())
    for loader in loaders:
        loader.join()

    assert taken == list(range(300))


def test_an_error_of_the_master_reaches_who_fetches_and_is_not_the_end():
    client = LocalMasterClient()

    def refuse(*args, **kwargs):
        raise MasterError("the ledger is damaged", "DATA_LOSS")

    client.lease = refuse
    service = rows(master_client=client)

    for _ in range(2):
        with pytest.raises(MasterError, match="the ledger is damaged"):
            next(service.record_index_gen())


def test_a_restored_checkpoint_starts_from_there_again_even_after_the_end():
    service = rows(size=12)
    saved = service.get_shard_checkpoint()
    assert len(list(service.record_index_gen())) == 12

    assert service.restore_shard_from_checkpoint(saved) is True

    assert sorted(service.record_index_gen()) == list(range(12))


def test_a_cleared_queue_gives_its_shards_back():
    service = rows(size=12)
    service.fetch_record_index()

    service.clear_shard_queue()

    assert sorted(service.record_index_gen()) == list(range(12))


def test_takes_the_arguments_of_every_published_order():
    newer = RecordIndexService(2, 1, 6, 1, False, 2, "a", None, 3)
    older = RecordIndexService(LocalMasterClient(), 2, 1, 6, 1, False)

    assert list(newer.record_index_gen()) == list(older.record_index_gen()) == list(range(6))
