"""DataShardService and the counting behind it, without a master."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import elasticai_api
from elasticai_api.common.constants import DefaultDatasetName, TaskType
from elasticai_api.common.data_shard_service import DataShardService, build_data_shard_service
from elasticai_api.common.errors import MasterError
from elasticai_api.common.local_master import LocalMasterClient
from elasticai_api.common.master_client import GlobalMasterClient, build_master_client
from elasticai_api.common.remote_lock import RemoteLock
from elasticai_api.common.shard import Report
from elasticai_api.proto import elasticai_api_pb2


def state_of(name):
    return build_master_client().get_dataset(name)


def rows(size=10, batch_size=2, epochs=1, batches_per_shard=2, **more):
    return build_data_shard_service(
        batch_size=batch_size, num_epochs=epochs, dataset_size=size,
        num_minibatches_per_shard=batches_per_shard, dataset_name="rows", **more)


# --- every published way to make one ---


def test_takes_the_arguments_of_1_4_by_position():
    service = build_data_shard_service(
        4, 2, 10, False, False, elasticai_api_pb2.EVALUATION, 1, "rows", "fill")

    assert [(s.start, s.end) for s in service.shards()] == 2 * [(0, 4), (4, 8), (8, 10)]
    assert state_of("rows").spec.task_type == "evaluation"


def test_takes_the_master_client_first_as_older_programs_gave_it():
    client = LocalMasterClient(0)
    service = DataShardService(client, 4, 1, 10, False, False, elasticai_api_pb2.TRAINING)

    assert service.fetch_shard().end == 10
    assert client.get_dataset(DefaultDatasetName.TRAINING).spec.size == 10


def test_takes_the_master_client_as_a_keyword():
    client = LocalMasterClient()
    service = DataShardService(
        batch_size=4, master_client=client, num_epochs=1, dataset_size=10, dataset_name="rows")

    assert service.fetch_shard().name == "rows"


def test_names_the_parameter_that_it_does_not_have():
    with pytest.raises(TypeError, match="no parameter 'dataset_nam'"):
        DataShardService(batch_size=4, dataset_nam="rows")


@pytest.mark.parametrize("wrong", [{"batch_size": -1}, {"batch_size": 4, "task_type": "trainig"}])
def test_refuses_arguments_that_make_no_sense(wrong):
    with pytest.raises(ValueError):
        build_data_shard_service(num_epochs=1, dataset_size=10, **wrong)


def test_a_dataset_that_nobody_registered_is_an_error_without_a_master():
    with pytest.raises(MasterError, match="dataset 'rows' is not registered"):
        build_data_shard_service(batch_size=4, dataset_name="rows").fetch_shard()


# --- fetching ---


def test_zero_batches_per_shard_means_eight():
    assert [s.size for s in rows(size=20, batches_per_shard=0).shards()] == [16, 4]


def test_every_record_comes_once_an_epoch():
    seen = Counter()
    service = rows(size=11, epochs=3)
    for shard in service.shards():
        seen.update((shard.epoch, i) for i in shard.records())
        service.report_batch_done(shard.size)

    assert seen == Counter((e, i) for e in range(3) for i in range(11))
    assert state_of("rows").finished


def test_the_end_stays_the_end():
    service = rows()
    assert len(list(service.shards())) == 3
    assert [service.fetch_shard() for _ in range(3)] == [None, None, None]
    assert service.get_task().type == TaskType.NONE


@pytest.mark.parametrize("which", ["shuffle", "shuffle_shards"])
def test_shuffled_shards_stay_ranges_and_miss_none(which):
    shards = list(rows(size=400, epochs=2, **{which: True}).shards())

    for epoch in (0, 1):
        starts = [s.start for s in shards if s.epoch == epoch]
        assert starts != sorted(starts) and sorted(starts) == list(range(0, 400, 4))
    assert not any(s.indices for s in shards)


def test_epochs_below_zero_are_without_end():
    service = rows(epochs=-1)
    assert [service.fetch_shard().epoch for _ in range(30)][-1] == 9


@pytest.mark.parametrize("nothing", [None, 0])
def test_without_a_job_the_flags_defaults_count_where_a_program_gives_none(nothing):
    service = build_data_shard_service(
        batch_size=nothing, num_epochs=nothing, dataset_size=1000, dataset_name="rows")

    assert [s.size for s in service.shards()] == [512, 488]
    assert state_of("rows").spec.batch_size == 64
    assert service.get_minibatch_count_per_epoch() == 1000 // 64


def test_threads_share_the_shards():
    service = rows(size=4000)
    seen = []

    def train():
        for shard in service.shards():
            seen.append(shard.start)
            service.report_batch_done(shard.size, task_ids=[shard.lease])

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(seen) == list(range(0, 4000, 4))
    assert state_of("rows").records_done == 4000


# --- counting ---


def test_a_shard_is_reported_when_its_last_record_is_trained():
    service = rows()
    service.fetch_shard()

    assert not service.report_batch_done()
    assert state_of("rows").records_done == 0
    assert service.report_batch_done()
    assert state_of("rows").records_done == 4


def test_a_short_batch_said_to_be_whole_is_not_counted_twice():
    service = rows(size=10, batch_size=4, batches_per_shard=1)
    done = []
    for _ in service.shards():
        service.report_batch_done()  # the last one had 2 records
        done.append(state_of("rows").records_done)

    assert done == [4, 8, 10]


def test_what_is_said_beyond_the_fetched_does_not_count_for_later_shards():
    service = rows(size=8)
    service.fetch_shard()
    service.report_batch_done(100)
    service.fetch_shard()

    assert not service.report_batch_done(1)
    assert state_of("rows").records_done == 4


def test_a_batch_over_several_shards_completes_all_of_them():
    service = rows(size=8)
    service.fetch_shard()
    service.fetch_shard()

    assert service.report_batch_done(8)
    assert state_of("rows").finished


def test_an_empty_batch_counts_nothing():
    service = rows()
    service.fetch_shard()
    assert not service.report_batch_done(0)
    assert service.report_batch_done(4)


def in_thread(work):
    """The result of `work` in a thread that ends with it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def test_threads_that_fetch_count_for_their_own_shards_only():
    service = rows(size=8)  # two shards of four
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(service.fetch_shard).result()
        other.submit(service.fetch_shard).result()

        assert not other.submit(service.report_batch_done, 2).result()
        assert not one.submit(service.report_batch_done, 2).result()
        assert state_of("rows").records_done == 0
        assert other.submit(service.report_batch_done, 2).result()
        assert not other.submit(service.report_batch_done, 2).result()
        assert state_of("rows").records_done == 4
        assert one.submit(service.report_batch_done, 2).result()


def test_a_pipelines_shards_count_for_the_thread_that_trains_them():
    service = rows(size=8)
    in_thread(service.fetch_shard)
    in_thread(service.fetch_shard)

    assert service.report_batch_done(6)
    assert state_of("rows").records_done == 4
    assert in_thread(lambda: service.report_batch_done(2))
    assert state_of("rows").records_done == 8


def test_threads_that_train_what_others_fetched_must_name_the_shard():
    service = rows(size=12)
    fetched = [in_thread(service.fetch_shard) for _ in range(3)]
    service.report_batch_done(2)

    with pytest.raises(ValueError, match="task_ids"):
        in_thread(lambda: service.report_batch_done(2))
    assert in_thread(lambda: service.report_batch_done(4, task_ids=[fetched[1].lease]))


def test_the_task_ids_say_which_shard_was_trained():
    service = rows(size=8)
    first, second = service.fetch_shard(), service.fetch_shard()

    assert service.report_batch_done(4, task_ids=[second.lease])

    assert service.get_current_task().task_id == first.lease
    assert state_of("rows").records_done == 4


def test_all_that_was_fetched_counts_once_the_data_has_run_out():
    service = rows(size=6)
    list(service.shards())
    service.report_batch_done(1)

    assert service.report_data_end()
    assert state_of("rows").records_done == 6


def test_before_the_end_was_told_nothing_counts_as_run_out():
    service = rows(size=6)
    service.fetch_shard()

    assert not service.report_data_end()
    assert state_of("rows").records_done == 0


def test_a_dropped_remainder_is_not_counted():
    service = rows(size=6)
    list(service.shards())
    service.report_batch_done(4)

    assert not service.report_data_end(drop_remainder=True)
    assert state_of("rows").records_done == 4


def test_failed_records_come_again_and_are_quarantined_in_the_end(caplog):
    service = rows(size=8)
    for _ in range(3):
        shard = service.fetch_shard()
        assert shard.start == 0
        service.report_batch_done(2)
        service.report_batch_done(2, err_msg="not a number")

    assert service.fetch_shard().start == 4
    assert "quarantined: not a number" in caplog.text


def test_all_open_shards_can_be_failed():
    service = rows(size=8)
    service.fetch_shard()
    service.fetch_shard()
    service.report_all_task_error("the disk is full")

    assert sorted(s.start for s in service.shards()) == [0, 4]


def test_a_report_that_failed_goes_with_the_next():
    client = LocalMasterClient()
    service = rows(size=8, master_client=client)
    service.fetch_shard()
    report, client.report = client.report, lambda reports: (_ for _ in ()).throw(MasterError("no"))
    with pytest.raises(MasterError):
        service.report_batch_done(4)

    client.report = report
    service.fetch_shard()

    assert client.get_dataset("rows").records_done == 4


# --- starting over ---


def test_starting_over_gives_back_what_was_not_trained():
    service = rows(size=12)
    first, second = service.fetch_shard(), service.fetch_shard()
    service.report_batch_done(first.size)

    service.start_over()

    assert [s.start for s in service.shards()] == [second.start, 8]
    assert state_of("rows").records_done == 4


def test_an_old_generator_gets_nothing_after_starting_over():
    service = rows(size=12)
    old = service.shards()
    next(old)

    service.start_over()

    assert list(old) == []
    assert len(list(service.shards())) == 3


def test_a_fetch_under_way_when_starting_over_returns_none_and_gives_back():
    client = LocalMasterClient()
    service = rows(size=12, master_client=client)
    lease = client.lease

    def slow_lease(*args, **kwargs):
        shards = lease(*args, **kwargs)
        client.lease = lease
        service.start_over()
        return shards

    client.lease = slow_lease

    assert service.fetch_shard() is None
    assert [s.start for s in service.shards()] == [0, 4, 8]


def test_starting_over_after_the_end_is_not_the_end():
    service = rows(size=4)
    list(service.shards())
    service.start_over()

    assert not service.report_data_end()
    assert len(list(service.shards())) == 1


# --- the dataset as a whole ---


def test_a_checkpoint_brings_back_what_was_not_done():
    service = rows(size=12, epochs=2)
    done, lost = service.fetch_shard(), service.fetch_shard()
    service.report_batch_done(done.size)
    saved = service.get_shard_checkpoint()
    list(service.shards())

    assert service.restore_shard_from_checkpoint(saved)

    left = [(s.epoch, s.start) for s in service.shards()]
    assert left == [(0, lost.start), (0, 8), (1, 0), (1, 4), (1, 8)]


def test_a_checkpoint_of_a_shuffled_dataset_goes_on_in_its_order():
    service = rows(size=40, shuffle=True)
    for _ in range(3):
        service.report_batch_done(service.fetch_shard().size)
    saved = service.get_shard_checkpoint()
    order = [s.start for s in service.shards()]

    service.restore_shard_from_checkpoint(saved)

    assert [s.start for s in service.shards()] == order


def test_a_checkpoint_at_the_end_leaves_nothing():
    service = rows()
    for shard in service.shards():
        service.report_batch_done(shard.size)

    service.restore_shard_from_checkpoint(service.get_shard_checkpoint())

    assert service.fetch_shard() is None
    assert state_of("rows").records_done == 10


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"version": "v2.0"}',
    '{"version": "v1.0", "dataset_name": "rows", "dataset_size": 10, "records_per_task": 4, '
    '"num_epochs": 1, "current_epoch": 0, "todo": [[3, 9]], "doing": []}',
    '{"version": "v1.0", "dataset_name": "rows", "dataset_size": 10, "records_per_task": 4, '
    '"batch_size": 0, "num_epochs": 1, "current_epoch": 0, "todo": [], "doing": []}',
])
def test_what_is_no_checkpoint_changes_nothing(text):
    service = rows()
    assert service.restore_shard_from_checkpoint(text) is False
    assert len(list(service.shards())) == 3


def test_a_reset_starts_from_the_first_epoch():
    service = rows(epochs=2)
    list(service.shards())
    assert service.get_current_epoch() == 1

    service.reset_dataset()

    assert service.get_current_epoch() == 0
    assert len(list(service.shards())) == 6


def test_counts_the_batches_of_an_epoch():
    assert rows(size=11, batch_size=4).get_minibatch_count_per_epoch() == 2
    unregistered = build_data_shard_service(batch_size=4, dataset_name="rows")
    assert unregistered.get_minibatch_count_per_epoch() == 2


# --- peers, alone ---


def test_alone_barriers_are_reached_at_once():
    assert elasticai_api.worker_sync("start", timeout=1)
    elasticai_api.delete_worker_sync("start")


def test_alone_events_work_between_threads():
    assert not elasticai_api.wait_worker_sync("ready", timeout=0)
    assert elasticai_api.wait_worker_sync("ready", notify=True)
    assert elasticai_api.wait_worker_sync("ready", timeout=0)
    elasticai_api.delete_all_worker_sync()
    assert not elasticai_api.wait_worker_sync("ready", timeout=0)


def test_alone_locks_exclude_threads():
    with RemoteLock("files"):
        assert not RemoteLock("files").acquire(timeout=0)
    other = RemoteLock("files", timeout=0)
    assert other.acquire()
    with pytest.raises(TimeoutError, match="'files'"):
        with other:
            pass
    other.release()


# --- the published client's own methods ---


def test_the_published_calls_of_the_client_work():
    client = GlobalMasterClient.MASTER_CLIENT
    client.report_training_params(2, 1, 8, False, False, 2, "rows", TaskType.TRAINING)

    ok, task = client.get_dataset_task("rows")
    client.report_task_result(task.task_id, "", "rows")

    assert ok and (task.type, task.shard.end) == (TaskType.TRAINING, 4)
    assert client.get_dataset_epoch("rows").epoch == 0
    checkpoint = client.get_shard_checkpoint("rows").content
    assert client.get_dataset_task("rows")[1].shard.start == 4
    assert client.get_dataset_task("rows")[1].type == TaskType.NONE
    assert client.report_shard_checkpoint(checkpoint).success
    assert client.worker_sync("start").ready
    assert not client.wait_worker_sync("event", False).ready
    assert client.acquire_remote_lock("files", 1)
    assert client.report([Report(12345)]) == {12345}
