"""MasterClient against a master that loses replies, restarts, forgets and stalls."""

import os
import subprocess
import sys
import threading

import grpc
import pytest
from fake_master import TOKEN, FakeMaster

from elasticai_api.common import connection
from elasticai_api.common.connection import Backoff
from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.common.errors import MasterError
from elasticai_api.common.identity import Identity, identity_from_env, master_address
from elasticai_api.common.master_client import (
    GlobalMasterClient,
    LocalMasterClient,
    MasterClient,
    build_master_client,
)
from elasticai_api.common.remote_lock import RemoteLock
from elasticai_api.common.shard import DatasetSpec, Report

ROWS = DatasetSpec("rows", size=40, batch_size=4, batches_per_shard=1)


@pytest.fixture
def master():
    master = FakeMaster(shards=10)
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


def lease_and_report_all(client):
    seen = []
    while True:
        shards = client.lease("rows")
        if not shards:
            return seen
        seen.append(shards[0].ordinal)
        assert client.report([Report(shards[0].lease)]) == set()


def test_importing_and_building_talks_to_nobody_yet(client, master):
    assert isinstance(client, MasterClient)
    assert GlobalMasterClient.MASTER_CLIENT is client
    assert master.calls == []


def test_a_process_joins_once_and_leaves_at_its_end(client, master):
    client.register_dataset(ROWS)
    assert lease_and_report_all(client) == list(range(10))

    client.close()

    assert len(master.called("Join")) == 1
    assert master.left == [1]


def test_what_was_counted_before_the_process_was_given_up_is_not_called_lost(client, master):
    client.register_dataset(ROWS)
    shard = client.lease("rows")[0]
    master.give_up_next = True

    answered = client._session.report_and_lease([Report(shard.lease)], "rows", 1, 1.0)

    assert master.done == [shard.ordinal]
    assert answered.lost == set()
    assert len(answered.shards) == 1


def test_the_job_is_told_who_joins(master, client, monkeypatch):
    monkeypatch.setenv("WORKER_TYPE", "chief")
    monkeypatch.setenv("ELASTICDL_REPLICA_ID", "7")
    monkeypatch.setenv("WORKER_ID", "1000007")
    chief = build_master_client()
    chief.register_dataset(ROWS)

    joined = master.called("Join")[0]
    chief.close()

    assert (joined.role, joined.replica_id, joined.incarnation) == ("chief", 7, 0)
    assert joined.process.endswith(f":{os.getpid()}")


@pytest.mark.parametrize("lost", ["Join", "RegisterDataset", "ReportAndLease"])
def test_lost_replies_cost_nothing(client, master, lost):
    master.lose[lost] = 3
    client.register_dataset(ROWS)

    assert lease_and_report_all(client) == list(range(10))

    assert sorted(master.done) == list(range(10))
    assert len(master.leases) == 0


def test_a_repeated_call_carries_the_same_number(client, master):
    client.register_dataset(ROWS)
    master.lose["ReportAndLease"] = 2

    client.lease("rows")

    numbers = [call.number for call in master.called("ReportAndLease")]
    assert numbers == [1, 1, 1]


def test_received_says_which_answers_arrived(client, master):
    client.register_dataset(ROWS)
    lease_and_report_all(client)

    calls = master.called("ReportAndLease")
    assert all(call.received == call.number - 1 for call in calls)


def test_received_waits_for_the_oldest_call_under_way(client, master):
    client.register_dataset(ROWS)
    held = client.lease("rows", at_most=10)
    master.hold_open = True
    waits = threading.Thread(target=client.lease, args=("rows",))
    waits.start()
    master.wait_for(lambda: len([c for c in master.calls if c[0] == "ReportAndLease"]) == 2)

    for shard in held:
        client.report([Report(shard.lease)])

    assert {call.received for call in master.called("ReportAndLease")[2:]} == {1}
    with master.lock:
        master.hold_open = False
        master.lock.notify_all()
    waits.join()


def test_a_restarted_master_is_a_pause_and_no_more(client, master):
    client.register_dataset(ROWS)
    held = client.lease("rows")[0]

    master.restart()

    assert client.report([Report(held.lease)]) == set()
    assert held.ordinal in master.done
    assert sorted([held.ordinal] + lease_and_report_all(client)) == list(range(10))


def test_a_call_held_by_a_master_that_dies_is_asked_again(client, master):
    client.register_dataset(ROWS)
    client.report([Report(s.lease) for s in client.lease("rows", at_most=10)])
    master.hold_open = True
    got = []
    waits = threading.Thread(target=lambda: got.extend(client.lease("rows")))
    waits.start()
    master.wait_for(lambda: master.calls[-1][0] == "ReportAndLease" and master.calls[-1][1].wait_ms)

    master.restart()
    with master.lock:
        master.waiting.append(77)
        master.lock.notify_all()
    waits.join(20)

    assert [shard.ordinal for shard in got] == [77]


def test_after_a_break_it_watches_again_and_keeps_its_leases(client, master):
    client.register_dataset(ROWS)
    held = client.lease("rows", at_most=2)
    master.wait_for(lambda: master.watches == 1)

    master.restart()
    master.wait_for(lambda: master.watches == 2)

    assert len(master.called("Join")) == 1
    assert client.report([Report(s.lease) for s in held]) == set()


def test_joining_again_lists_the_leases_held(client, master):
    client.register_dataset(ROWS)
    held = client.lease("rows", at_most=2)
    master.wait_for(lambda: master.watches == 1)
    master.incarnations.clear()  # and yet the leases are there: as after a forgetful restart

    client.register_dataset(ROWS)
    client.lease("rows")

    again = master.called("Join")[-1]
    assert again.incarnation == 1
    assert list(again.held) == [s.lease for s in held]


def test_a_process_taken_for_dead_joins_as_a_new_one(client, master):
    client.register_dataset(ROWS)
    lost = client.lease("rows")[0]

    master.give_up(1)

    assert client.report([Report(lost.lease)]) == {lost.lease}
    assert lost.ordinal not in master.done
    assert sorted(lease_and_report_all(client)) == list(range(10))
    assert sorted(master.done) == list(range(10))


def test_reports_of_leases_known_to_be_lost_are_not_sent(client, master):
    client.register_dataset(ROWS)
    lost = client.lease("rows")[0]
    master.give_up(1)
    client.lease("rows")
    sent = len(master.called("ReportAndLease"))

    assert client.report([Report(lost.lease)]) == {lost.lease}

    assert len(master.called("ReportAndLease")) == sent


def test_shards_that_cross_a_join_are_confirmed_before_use(client, master):
    """The answer of a ReportAndLease call crosses a Join whose list lacks its leases: the master
    has taken them back, so none of their records may be read."""
    client.register_dataset(ROWS)

    def join_between(request, context):
        del master.before["ReportAndLease"]
        answer = master._reportandlease(request, context)
        client._session._rejoin(client._session._joins_sent)
        assert answer.shards[0].ordinal == 0 and not master.leases

    master.before["ReportAndLease"] = join_between

    assert client.lease("rows")[0].ordinal == 1
    assert list(master.leases.values()) == [(1, 1)]


def test_heartbeats_only_when_nothing_else_was_said(client, master):
    master.heartbeat_ms = 30
    client.register_dataset(ROWS)

    master.wait_for(lambda: sum(name == "Heartbeat" for name, _ in master.calls) >= 3)

    assert {heartbeat.incarnation for heartbeat in master.called("Heartbeat")} == {1}


def test_a_heartbeat_that_is_not_known_joins_again(client, master):
    master.heartbeat_ms = 30
    client.register_dataset(ROWS)
    master.give_up(1)

    master.wait_for(lambda: 2 in master.incarnations)
    master.wait_for(lambda: any(n == "Watch" and r.incarnation == 2 for n, r in master.calls))


def test_a_real_error_is_raised_and_not_repeated(client, master):
    with pytest.raises(MasterError, match="INVALID_ARGUMENT: size=.* is too much") as raised:
        client.register_dataset(DatasetSpec("rows", size=10**13, batch_size=1))

    assert raised.value.code == "INVALID_ARGUMENT"
    assert len(master.called("RegisterDataset")) == 1


def test_an_error_is_never_the_end_of_the_data(client, master):
    client.register_dataset(ROWS)
    master.before["ReportAndLease"] = lambda request, context: context.abort(
        grpc.StatusCode.DATA_LOSS, "the ledger is damaged")

    with pytest.raises(MasterError, match="the ledger is damaged"):
        client.lease("rows")


def test_a_wrong_token_says_where_it_came_from(master, monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", master.address)
    monkeypatch.setenv("ELASTICDL_TOKEN", "wrong")
    client = build_master_client()

    with pytest.raises(MasterError, match="token is wrong or missing .*ELASTICDL_TOKEN"):
        client.register_dataset(ROWS)
    client.close()


def test_a_dataset_that_nobody_registered_is_waited_for(client, master, caplog):
    got = []
    waits = threading.Thread(target=lambda: got.extend(client.lease("rows")))
    waits.start()
    master.wait_for(lambda: master.called("ReportAndLease"))

    client.register_dataset(ROWS)
    waits.join(20)

    assert len(got) == 1


def test_a_closed_client_stops_waiting(client, master):
    client.register_dataset(ROWS)
    master.stop()
    raised = []

    def lease():
        try:
            client.lease("rows")
        except MasterError as error:
            raised.append(error)

    waits = threading.Thread(target=lease)
    waits.start()
    client.close()
    waits.join(20)
    master.start()

    assert "closed" in str(raised[0])


def test_waiting_is_said_at_most_every_ten_seconds(caplog, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("elasticai_api.common.connection.time.monotonic", lambda: now[0])

    class Unclosed:
        def wait(self, seconds):
            now[0] += seconds

    backoff = Backoff("ReportAndLease", Unclosed())
    while now[0] < 25:
        backoff.pause("UNAVAILABLE")

    assert len(caplog.records) == 3


def test_metrics_do_not_wait_for_a_master_that_is_away(client, master):
    client.register_dataset(ROWS)
    master.stop()
    client.report_metrics(3, {"loss": 0.5})
    master.start()
    master.wait_for(lambda: master.watches >= 2)

    client.report_metrics(4, {"loss": 0.25})

    master.wait_for(lambda: (4, {"loss": 0.25}) in master.metrics)


def test_a_barrier_is_asked_until_it_is_ready(client, master):
    assert client.arrive("start", timeout_s=30)
    assert len(master.called("Arrive")) == 2


def test_a_barrier_that_nobody_else_reaches_times_out(client, master):
    assert not client.arrive("start", timeout_s=0)


def test_an_event_wakes_who_waits_for_it(client, master):
    woken = []
    waits = threading.Thread(target=lambda: woken.append(client.await_event("go")))
    waits.start()
    master.wait_for(lambda: master.called("AwaitEvent"))

    client.notify("go")
    waits.join(20)

    assert woken == [True]


def test_a_lock_keeps_out_other_processes(client, master):
    with RemoteLock("files", master_client=client):
        assert master.locks == {"files": 1}
    assert master.locks == {}

    master.locks["files"] = 99
    assert not RemoteLock("files", master_client=client).acquire(timeout=0)


# The master of this test is a gRPC server, which a program that forks does not have.
FORKS = """
import os, sys
from elasticai_api.common.master_client import MasterClient
from elasticai_api.common.shard import DatasetSpec, Report

client = MasterClient(sys.argv[1], 0, "worker")
client.register_dataset(DatasetSpec("rows", size=400, batch_size=4, batches_per_shard=1))
parents = client.lease("rows")[0]
child = os.fork()
if child == 0:
    try:
        shard = client.lease("rows")[0]
        client.report([Report(shard.lease)])
        client.close()
        os._exit(shard.ordinal)
    except BaseException:
        os._exit(99)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), client.report([Report(parents.lease)]))
"""


@pytest.mark.skipif(connection._grpc_version() < connection._FORKS_WELL, reason="gRPC is too old")
def test_a_forked_child_is_a_process_of_its_own(client, master):
    program = subprocess.run([sys.executable, "-c", FORKS, master.address], text=True,
                             capture_output=True, timeout=60, check=False)

    assert program.stdout == "1 set()\n", program.stderr
    assert [join.incarnation for join in master.called("Join")] == [0, 0]
    assert master.left == [2, 1]
    assert sorted(master.done) == [0, 1]


def test_a_forked_child_with_an_old_grpc_is_told_so_and_does_not_hang(client, master, monkeypatch):
    client.register_dataset(ROWS)
    monkeypatch.setattr(connection, "_FORKS_WELL", (99, 0))

    child = os.fork()
    if child == 0:
        try:
            client.lease("rows")
        except MasterError as error:
            os._exit(7 if "spawn method" in str(error) else 8)
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7


def test_the_service_trains_on_through_a_restart(client, master):
    service = build_data_shard_service(4, 1, 40, num_minibatches_per_shard=1, dataset_name="rows")
    trained = []
    for shard in service.shards():
        trained.extend(shard.records())
        if shard.ordinal in (2, 5):
            master.restart()
        assert service.report_batch_done()

    assert trained == list(range(40))
    assert sorted(master.done) == list(range(10))
    assert service.fetch_shard() is None


def test_a_late_report_is_not_counted_and_not_an_error(client, master):
    service = build_data_shard_service(4, 1, 40, num_minibatches_per_shard=1, dataset_name="rows")
    service.fetch_shard()
    master.give_up(1)

    service.report_batch_done()
    service.flush()

    assert master.done == []
    assert not client.holds(101)


@pytest.mark.parametrize(
    "env, identity",
    [
        ({}, Identity("worker", 0)),
        ({"WORKER_ID": "3"}, Identity("worker", 3)),
        ({"WORKER_ID": "1000000"}, Identity("chief", 0)),
        ({"WORKER_ID": "2000004"}, Identity("evaluator", 4)),
        ({"WORKER_ID": "3000001"}, Identity("ps", 1)),
        ({"WORKER_TYPE": "chief", "WORKER_ID": "1000002"}, Identity("chief", 2)),
        ({"WORKER_TYPE": "ps", "ELASTICDL_REPLICA_ID": "5"}, Identity("ps", 5)),
    ],
)
def test_the_environment_says_who_this_is(env, identity):
    assert identity_from_env(env) == identity


@pytest.mark.parametrize(
    "env, address",
    [
        ({}, ""),
        ({"MASTER_ADDR": "m:1"}, "m:1"),
        ({"DLROVER_MASTER_ADDR": "m:2"}, "m:2"),
        ({"MASTER_ADDR": "torchs-host", "DLROVER_MASTER_ADDR": "m:2"}, "m:2"),
        ({"MASTER_ADDR": "torchs-host"}, ""),
    ],
)
def test_the_environment_says_where_the_master_is(env, address):
    assert master_address(env) == address


def test_without_an_address_there_is_a_stand_in():
    assert isinstance(build_master_client(), LocalMasterClient)


def test_a_process_of_another_ledger_begins_as_a_new_one(client, master):
    client.register_dataset(ROWS)
    first = client.lease("rows")[0]
    master.begin_another_ledger()
    with master.lock:
        master.waiting = [0, 1]
    other = MasterClient(master.address, 1, "worker")  # gets the number that `client` had
    try:
        shard = other.lease("rows")[0]
        # The old lease's number may be the new one's: it must not complete it.
        assert client.report([Report(first.lease)]) == {first.lease}
        assert other.report([Report(shard.lease)]) == set()
    finally:
        other.close()


def test_calls_that_must_not_be_carried_out_twice_keep_their_number(client, master):
    for name, call in (("ResetDataset", lambda: client.reset_dataset("rows")),
                       ("DeleteSync", lambda: client.delete_sync("rows"))):
        master.lose[name] = 1
        call()
        call()
        first, again, next_one = (r.request_id for r in master.called(name))
        assert first == again != next_one and first and next_one


def test_a_program_can_declare_its_end(client, master):
    client.finish()
    (request,) = master.called("Finish")
    assert request.incarnation and request.ledger == master.ledger
