"""The calls of a job with a model: results of shards, next_dataset, and the failure of the job."""

import pytest
from fake_master import TOKEN, FakeMaster

from elasticai_api.common.errors import MasterError
from elasticai_api.common.master_client import LocalMasterClient, build_master_client
from elasticai_api.common.shard import DatasetSpec, Report

ROWS = DatasetSpec("evaluation", size=20, batch_size=4, batches_per_shard=1)


@pytest.fixture
def master():
    master = FakeMaster(shards=5)
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


def test_an_answer_names_the_next_dataset_and_a_shard_its_version(client, master):
    client.register_dataset(ROWS)
    master.next_dataset = "evaluation_merge"
    master.version = 120

    answered = client.report_and_lease([], "evaluation")

    assert answered.next_dataset == "evaluation_merge"
    assert [shard.version for shard in answered.shards] == [120]


def test_results_are_returned_in_order_over_several_pages(client, master):
    client.register_dataset(ROWS)
    for shard in client.lease("evaluation", at_most=5):
        assert client.report([Report(shard.lease, result=b"r%d" % shard.ordinal)]) == set()

    assert client.get_results("evaluation", 1) == [(o, b"r%d" % o) for o in range(5)]
    assert len(master.called("GetResults")) == 3


def test_results_of_another_generation_are_not_found(client):
    with pytest.raises(MasterError) as raised:
        client.get_results("evaluation", 2)
    assert raised.value.code == "NOT_FOUND"


def test_fail_is_sent_again_when_its_reply_is_lost(client, master):
    master.lose["Fail"] = 1

    client.fail("cannot import mnist.py")

    assert set(master.failures) == {"cannot import mnist.py"}
    assert len(master.failures) == 2


def test_without_a_master_fail_raises(client):
    with pytest.raises(MasterError, match="cannot import"):
        LocalMasterClient().fail("cannot import mnist.py")
