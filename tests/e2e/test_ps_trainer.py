"""ShardTrainer with scripted answers of the master and of servers."""

import math
from types import SimpleNamespace

import pytest

from elasticai_api.common.local_master import LocalMasterClient
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import Outcome as ShardOutcome
from elasticai_api.common.shard import Shard
from elasticdl import (
    OpenedShard,
    Outcome,
    ParameterError,
    PushResult,
    ShardTrainer,
    _native,
    shard_trainer,
)

SHARD = Shard("data", 0, 4, lease=7, ledger=1)


def failure(code):
    error = ParameterError(code)
    error.code = code
    return error


class Master:
    """Returns the given answers, then Finished."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.reports = []

    def register_dataset(self, spec):
        return spec

    def holds(self, lease):
        return True

    def report_and_lease(self, reports, dataset, at_most=1, wait_s=0.0):
        self.reports.extend(reports)
        answer = self.answers.pop(0) if self.answers else {}
        given = {"answer": Answer.WAIT, "shards": [], "reopen": set(), "ps_epoch": 0, **answer}
        if not self.answers and not answer:
            given["answer"] = Answer.FINISHED
        return SimpleNamespace(**given)


class Client:
    def __init__(self, *opened):
        self.opened = list(opened)
        self.opens = []

    def open_shard(self, lease, shard, at_least=0):
        self.opens.append((lease, at_least))
        answer = self.opened.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def push_async(self, **given):
        return SimpleNamespace(result=lambda: PushResult(Outcome.APPLIED, 1))


def run(client, master):
    ShardTrainer(client, "data", size=4, batch_size=2, master=master).run(
        lambda records: {"learning_rate": 1.0})


def test_shards_are_opened_at_the_epoch_of_the_master(monkeypatch):
    pauses = []
    monkeypatch.setattr(shard_trainer.time, "sleep", pauses.append)
    master = Master({"shards": [SHARD], "ps_epoch": 1}, {"reopen": {7}, "ps_epoch": 2},
                    {"reopen": {7}, "ps_epoch": 2})
    client = Client(OpenedShard(0, 1), OpenedShard(2, 2), OpenedShard(2, 2))

    run(client, master)

    assert client.opens == [(7, 1), (7, 2), (7, 2)]
    assert [report.ps_epoch for report in master.reports] == [1, 2, 2]
    assert len(pauses) == 2 and pauses[0] < pauses[1], "each pause must be longer"


def test_a_shard_whose_lease_has_ended_at_the_servers_is_given_back():
    master = Master({"shards": [SHARD]})
    run(Client(failure("ABORTED")), master)
    assert [(report.lease, report.outcome) for report in master.reports] == [
        (7, ShardOutcome.GIVEN_BACK)]


@pytest.mark.parametrize("code", ["FAILED_PRECONDITION", "UNAUTHENTICATED", "INVALID_ARGUMENT"])
def test_another_failure_is_raised(code):
    master = Master({"shards": [SHARD]})
    with pytest.raises(ParameterError, match=code):
        run(Client(failure(code)), master)
    assert master.reports == []


def test_a_tensor_without_a_value_gets_one_by_the_error_code():
    class Pushes(Client):
        def __init__(self):
            super().__init__(OpenedShard(0, 0), OpenedShard(0, 0))
            self.put = 0

        def push_async(self, **given):
            if not self.put:
                raise failure("NOT_FOUND")
            return super().push_async(**given)

        def put_first_values(self):
            self.put += 1

    client, master = Pushes(), Master({"shards": [SHARD]})
    run(client, master)
    assert client.put == 1
    assert [report.outcome for report in master.reports] == [ShardOutcome.DONE]


def test_without_a_job_all_the_data_is_trained():
    trained = []

    def train(records):
        trained.extend(records)
        return {"learning_rate": 1.0}

    client = Client(*3 * [OpenedShard(0, 0)])
    master = LocalMasterClient()
    ShardTrainer(client, "data", size=10, batch_size=2, batches_per_shard=2,
                 master=master).run(train)
    assert sorted(trained) == list(range(10))
    assert master.get_dataset("data").finished


def test_outcomes_equal_those_of_the_servers():
    native = _native.OUTCOMES
    assert {o.name: o.value for o in Outcome} == {
        name: number for name, number in native.items() if name != "ALREADY"}


def test_the_client_of_a_job_has_no_timeout(monkeypatch):
    monkeypatch.setenv("ELASTICDL_PS_ADDRS", "127.0.0.1:1")
    monkeypatch.delenv("ELASTICDL_TOKEN_FILE", raising=False)
    monkeypatch.setattr(shard_trainer, "ParameterClient",
                        lambda servers, **options: SimpleNamespace(**options))
    assert shard_trainer.job_client().timeout == math.inf
    assert shard_trainer.job_client().managed
    assert shard_trainer.job_client(timeout=5).timeout == 5
