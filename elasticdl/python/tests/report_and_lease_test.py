"""DataShardService reports a shard with the call that leases the next, and loses no report."""

import threading

import grpc
import pytest
from fake_master import TOKEN, FakeMaster

from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.common.errors import MasterError
from elasticai_api.common.master_client import MasterClient, build_master_client

SHARDS = 10
# Longer than a test may take: what arrives before was not sent by the linger.
NEVER_S = 1000.0


@pytest.fixture
def master():
    master = FakeMaster(shards=SHARDS)
    yield master
    master.stop()


@pytest.fixture
def client(master, monkeypatch, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    monkeypatch.setenv("ELASTICDL_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("MASTER_ADDR", master.address)
    client = build_master_client()
    yield client
    client.close()


@pytest.fixture
def no_linger(monkeypatch):
    """Reports wait for a fetch without a limit."""
    monkeypatch.setattr(MasterClient, "report_linger_s", NEVER_S)


def rows(**more):
    arguments = dict(batch_size=4, num_epochs=1, dataset_size=4 * SHARDS,
                     num_minibatches_per_shard=1, dataset_name="rows")
    return build_data_shard_service(**{**arguments, **more})


def calls_of(master):
    """(reports, shards asked for) of each ReportAndLease."""
    return [(len(r.reports), r.lease_at_most) for r in master.called("ReportAndLease")]


def test_a_shard_costs_one_call(client, master, no_linger):
    service = rows()
    for shard in service.shards():
        assert service.report_batch_done(shard.size)

    assert calls_of(master) == [(0, 1)] + SHARDS * [(1, 1)]
    assert master.done == list(range(SHARDS))


def test_a_report_does_not_wait_for_what_the_program_does_meanwhile(client, master):
    service = rows()
    shard = service.fetch_shard()
    service.report_batch_done(shard.size)

    # The program computes, and neither fetches nor ends.
    master.wait_for(lambda: master.done == [0])

    assert calls_of(master) == [(0, 1), (1, 0)]


def test_batches_that_complete_no_shard_send_nothing(client, master, no_linger):
    service = rows(num_minibatches_per_shard=1)
    first = service.fetch_shard()
    second = service.fetch_shard()
    assert service.report_batch_done(first.size)
    assert not service.report_batch_done(1)
    assert not service.report_batch_done(1)

    assert calls_of(master) == [(0, 1), (0, 1)]
    assert service.report_batch_done(second.size - 2)
    service.fetch_shard()
    assert calls_of(master)[2:] == [(2, 1)]


@pytest.mark.parametrize("call", ["flush", "finish", "start_over"])
def test_what_needs_the_reports_sends_them_first(client, master, no_linger, call):
    service = rows()
    service.report_batch_done(service.fetch_shard().size)
    assert master.done == []

    getattr(service, call)()

    assert master.done == [0]


def test_the_end_of_the_program_sends_them(client, master, no_linger):
    service = rows()
    service.report_batch_done(service.fetch_shard().size)

    client.close()

    assert master.done == [0]
    assert master.left == [1]


def test_the_end_of_the_program_waits_for_a_report_under_way(client, master, monkeypatch):
    monkeypatch.setattr(MasterClient, "report_linger_s", 0.001)
    service = rows()
    shard = service.fetch_shard()
    under_way, go_on = threading.Event(), threading.Event()

    def hold(request, context):
        under_way.set()
        assert go_on.wait(20), "the test did not let the report go on"

    master.before["ReportAndLease"] = hold
    try:
        service.report_batch_done(shard.size)
        assert under_way.wait(20), "the report did not arrive"
        closing = threading.Thread(target=client.close)
        closing.start()
        assert not master.called("Leave")
    finally:
        go_on.set()
    closing.join(20)

    assert not closing.is_alive()
    assert master.done == [0]


def test_after_the_end_was_told_a_report_is_sent_at_once(client, master, no_linger):
    service = rows()
    fetched = list(service.shards())
    for shard in fetched:
        service.report_batch_done(shard.size)

    assert master.done == list(range(SHARDS))


def test_a_failed_shard_is_sent_at_once(client, master, no_linger):
    service = rows()
    service.report_batch_done(service.fetch_shard().size, err_msg="not a number")

    assert master.failed == [(0, "not a number")]


def test_while_a_fetch_waits_at_the_master_a_report_is_sent_at_once(client, master, no_linger):
    service = rows()
    fetched = [service.fetch_shard() for _ in range(SHARDS)]
    master.hold_open = True
    waiting = threading.Thread(target=service.fetch_shard)
    waiting.start()
    master.wait_for(lambda: len(master.called("ReportAndLease")) == SHARDS + 1)

    assert service.report_batch_done(fetched[0].size, task_ids=[fetched[0].lease])

    assert master.done == [0], "the end of the data may depend on it"
    with master.lock:
        master.hold_open = False
        master.lock.notify_all()
    waiting.join(20)
    assert not waiting.is_alive()


def test_a_fetch_that_fails_keeps_the_report_for_the_next_call(client, master, no_linger):
    service = rows()
    service.report_batch_done(service.fetch_shard().size)
    refused = []

    def refuse(request, context):
        if not refused:
            refused.append(len(request.reports))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not this time")

    master.before["ReportAndLease"] = refuse
    with pytest.raises(MasterError):
        service.fetch_shard()
    assert refused == [1] and master.done == []

    assert service.fetch_shard().ordinal == 1

    assert master.done == [0]


def test_a_report_that_was_carried_and_is_lost_is_said(client, master, no_linger, caplog):
    service = rows()
    service.report_batch_done(service.fetch_shard().size)
    master.give_up(1)

    assert service.fetch_shard() is not None

    assert "not counted" in caplog.text
    assert master.done == []


def test_a_dataset_registered_without_a_batch_size_has_the_jobs(client, master):
    def default(request, context):
        assert (request.spec.batch_size, request.spec.epochs) == (0, 0)
        request.spec.batch_size, request.spec.epochs = 4, 3

    master.before["RegisterDataset"] = default
    service = rows(batch_size=None, num_epochs=None)

    assert service.fetch_shard().size == 4
    assert service.report_batch_done(), "a batch is one of the job's --minibatch_size"
