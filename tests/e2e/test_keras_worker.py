"""The worker of a model with scripted answers of a master, and parameters in memory."""

import json
import os
from types import SimpleNamespace
from typing import Dict, List, Optional

import numpy as np
import pytest

from elasticai_api.common.errors import MasterError
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import Outcome as ShardOutcome
from elasticai_api.common.shard import Shard
from elasticdl import OpenedShard, Outcome, PushResult
from elasticdl.model.errors import ModelError
from elasticdl.model.model_file import ModelFile
from elasticdl.model.model_spec import ModelSpec, SymbolNames
from elasticdl.records import RecordWriter
from elasticdl.worker.arguments import Arguments, parse_arguments
from elasticdl.worker.job import WorkerJob

MODEL = """
import tensorflow as tf

def custom_model():
    return tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), use_bias=False,
                                                      kernel_initializer="zeros", name="d")])

def feed(dataset, mode, metadata):
    def parse(record):
        x = tf.reshape(tf.strings.to_number(record), [1])
        return x if mode == "prediction" else (x, 2 * x)
    return dataset.map(parse)

def loss(labels, predictions):
    return tf.reduce_mean(tf.square(labels - predictions))

def optimizer(lr=0.01):
    return tf.keras.optimizers.SGD(lr)

def eval_metrics_fn():
    return {"mse": tf.keras.metrics.MeanSquaredError()}
"""


class Client:
    """Parameters in memory, trained by plain SGD."""

    def __init__(self) -> None:
        self.tensors: Dict[str, np.ndarray] = {}
        self.pushed: List[tuple] = []  # (lease, batch)
        self.outcomes: List[Outcome] = []  # of the next pushes, then APPLIED
        self.opened: List[int] = []  # batches that the servers have at the next opens, then 0
        self.opens: List[tuple] = []

    def declare(self, tables, tensors, seed) -> None:
        self.tensors = {tensor["name"]: tensor["value"].copy() for tensor in tensors}

    def open_shard(self, lease, key, at_least=0) -> OpenedShard:
        self.opens.append((lease, at_least))
        return OpenedShard(self.opened.pop(0) if self.opened else 0, 1)

    def prefetch(self, ids, create=True, tensors=()):
        values = {name: self.tensors[name].copy() for name in tensors}
        return SimpleNamespace(result=dict, ids=dict, tensors=lambda: values)

    def pull_tensors(self, names):
        return {name: self.tensors[name].copy() for name in names}

    def push_async(self, tables, tensors, *, learning_rate, at, clipnorm, global_clipnorm):
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome.APPLIED
        if outcome is Outcome.APPLIED:
            self.pushed.append((at[0], at[2]))
            for name, gradient in tensors.items():
                self.tensors[name] -= learning_rate * gradient
        return SimpleNamespace(result=lambda: PushResult(outcome, 0))


class Master:
    """Leases the given shards one by one: a dataset is next when the one before is empty."""

    def __init__(self, *shards: Shard) -> None:
        self.shards = list(shards)
        self.reports: List = []
        self.registered: List = []
        self.reopen: List[int] = []  # leases whose first report is answered with Reopen
        self.results: Dict[str, Dict[int, bytes]] = {}
        self.waits: List[float] = []
        self.metrics: List[tuple] = []
        self.evaluated = True

    def register_dataset(self, spec):
        self.registered.append(spec)
        return spec

    def holds(self, lease: int) -> bool:
        return True

    def _next(self) -> str:
        return self.shards[0].name if self.shards else ""

    def report_and_lease(self, reports, dataset, at_most=1, wait_s=20.0):
        self.waits.append(wait_s)
        reopen = set()
        for report in reports:
            if report.lease in self.reopen:
                self.reopen.remove(report.lease)
                reopen.add(report.lease)
            else:
                self.reports.append(report)
        given = []
        if at_most and not reopen and self.shards and self.shards[0].name == dataset:
            given = [self.shards.pop(0)]
        answer = Answer.SHARDS if given else Answer.WAIT if self.shards else Answer.FINISHED
        return SimpleNamespace(answer=answer, shards=given, reopen=reopen, ps_epoch=3,
                               next_dataset=self._next() or dataset)

    def report(self, reports):
        self.reports.extend(reports)
        return set()

    def get_dataset(self, name):
        return SimpleNamespace(generation=1, finished=self.evaluated)

    def get_results(self, name, generation):
        return [(n, report.result) for n, report in enumerate(self.reports) if report.result]

    def report_metrics(self, step, metrics):
        self.metrics.append((step, metrics))


def shard(name: str, start: int, end: int, lease: int, **more) -> Shard:
    return Shard(name, start, end, lease=lease, ordinal=lease, **more)


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "m.py").write_text(MODEL)
    with RecordWriter(str(tmp_path / "numbers")) as writer:
        for number in range(40):
            writer.write(str(number / 10).encode())
    monkeypatch.delenv("ELASTICDL_JOB_DIR", raising=False)

    def make(master: Master, client: Optional[Client] = None, model: str = MODEL,
             **more) -> WorkerJob:
        (tmp_path / "m.py").write_text(model)
        arguments = Arguments(**{
            "model_def": "m.custom_model", "training_data": str(tmp_path / "numbers"),
            "validation_data": str(tmp_path / "numbers"), "minibatch_size": 4, "log_loss_steps": 1,
            **more})
        spec = ModelSpec(ModelFile(str(tmp_path), arguments.model_def), SymbolNames(),
                         arguments.job_type)
        return WorkerJob(arguments, spec, master, client or Client())

    return make


def outcomes(master: Master) -> List[tuple]:
    return [(report.lease, report.outcome) for report in master.reports]


@pytest.mark.parametrize("use_async", [False, True])
def test_trains_evaluates_and_merges_as_the_master_leads(job, use_async):
    master = Master(*(shard("training", 10 * n, 10 * n + 10, 1 + n) for n in range(4)),
                    shard("evaluation", 0, 20, 5), shard("evaluation", 20, 40, 6),
                    shard("evaluation_merge", 0, 1, 7, version=12))
    client = Client()
    job(master, client, use_async=use_async).run()

    assert outcomes(master) == [(lease, ShardOutcome.DONE) for lease in range(1, 8)]
    assert client.pushed == [(lease, batch) for lease in range(1, 5) for batch in range(3)]
    assert {spec.name: (spec.size, spec.epochs) for spec in master.registered} == {
        "training": (40, 0), "evaluation": (40, 1)}
    merged = json.loads(master.reports[-1].result)
    weight = client.tensors["d/kernel:0"][0, 0]
    expected = np.mean([((2 - weight) * n / 10) ** 2 for n in range(40)])
    assert merged["metrics"]["mse"] == pytest.approx(expected, rel=1e-4)
    assert 0.5 < weight <= 2.1  # it learns 2
    # Shards of the epoch that the master named; the next shard is leased without waiting.
    assert all(epoch == 3 for _, epoch in client.opens)
    assert master.waits[1] == 0


def test_gives_the_merge_of_an_incomplete_evaluation_back(job):
    master = Master(shard("evaluation_merge", 0, 1, 7))
    master.evaluated = False
    job(master, job_type="evaluation").run()
    assert outcomes(master) == [(7, ShardOutcome.GIVEN_BACK)]


def test_continues_a_shard_at_the_first_batch_that_servers_lack(job):
    client = Client()
    client.opened = [2]
    job(Master(shard("training", 0, 16, 1)), client).run()
    assert client.pushed == [(1, 2), (1, 3)]


def test_computes_a_stale_batch_again(job):
    client = Client()
    client.outcomes = [Outcome.APPLIED, Outcome.STALE]
    client.opened = [0, 1]
    job(Master(shard("training", 0, 12, 1)), client).run()
    assert client.pushed == [(1, 0), (1, 1), (1, 2)]


def test_gives_a_fenced_shard_back(job):
    client = Client()
    client.outcomes = [Outcome.FENCED]
    master = Master(shard("training", 0, 8, 1))
    job(master, client).run()
    assert outcomes(master) == [(1, ShardOutcome.GIVEN_BACK)]


def test_trains_a_reopened_shard_again(job):
    master = Master(shard("training", 0, 8, 1), shard("training", 8, 16, 2))
    master.reopen = [1]
    client = Client()
    job(master, client).run()
    assert sorted(outcomes(master)) == [(1, ShardOutcome.DONE), (2, ShardOutcome.DONE)]
    assert client.pushed.count((1, 0)) == 2


def test_records_that_cannot_be_parsed_fail_their_shard_only(job):
    model = MODEL.replace("tf.strings.to_number(record)", "tf.strings.to_number("
                          "tf.where(record == b'0.5', b'bad', record))")
    master = Master(shard("training", 8, 16, 1), shard("training", 0, 8, 2))
    job(master, model=model).run()
    assert outcomes(master) == [(1, ShardOutcome.DONE), (2, ShardOutcome.FAILED)]
    assert "cannot parse a record" in master.reports[-1].error


def test_a_loss_that_stays_nan_is_an_error_of_the_model(job):
    client = Client()
    client.outcomes = [Outcome.REFUSED] * 20
    with pytest.raises(ModelError, match="8 batches in a row were NaN or infinite"):
        job(Master(shard("training", 0, 40, 1)), client).run()


def test_a_leaving_worker_gives_its_shards_back(job):
    master = Master(shard("training", 0, 8, 1), shard("training", 8, 16, 2))
    client = Client()
    worker = job(master, client)
    applied = client.push_async

    def leave_after_this_batch(*arguments, **more):
        worker.leave()
        return applied(*arguments, **more)

    client.push_async = leave_after_this_batch
    worker.run()
    assert outcomes(master) == [(1, ShardOutcome.GIVEN_BACK), (2, ShardOutcome.GIVEN_BACK)]
    assert client.pushed == [(1, 0)]


def test_writes_one_prediction_for_each_record(job, tmp_path):
    master = Master(shard("prediction", 20, 40, 1), shard("prediction", 0, 20, 0))
    job(master, job_type="prediction", prediction_data=str(tmp_path / "numbers"),
        output=str(tmp_path / "out")).run()
    lines = [(tmp_path / "out" / f"part-0000{part}.csv").read_text().split() for part in (0, 1)]
    assert [len(part) for part in lines] == [21, 21]
    assert lines[0][0] == "output"


def test_predictions_go_to_the_users_processor(job, tmp_path):
    model = MODEL + f"""
class PredictionOutputsProcessor:
    def process(self, predictions, worker_id):
        with open({str(tmp_path / 'seen')!r}, "a") as file:
            file.write(f"{{len(predictions)}}\\n")
"""
    job(Master(shard("prediction", 0, 10, 1)), model=model, job_type="prediction",
        prediction_data=str(tmp_path / "numbers")).run()
    assert (tmp_path / "seen").read_text().split() == ["4", "4", "2"]


def test_exports_the_parameters_of_the_servers(job, tmp_path):
    import tensorflow as tf

    master = Master(shard("training", 0, 40, 1), shard("export", 0, 1, 2))
    client = Client()
    job(master, client, output=str(tmp_path / "model")).run()
    assert outcomes(master)[-1] == (2, ShardOutcome.DONE)
    model = tf.keras.models.load_model(str(tmp_path / "model"), compile=False)
    weight = client.tensors["d/kernel:0"][0, 0]
    np.testing.assert_allclose(model(np.array([[3.0]])), [[3 * weight]], rtol=1e-6)
    assert sorted(os.listdir(tmp_path / "model")) != []


def test_steps_are_those_of_the_job(job):
    master = Master(shard("training", 0, 8, 1, version=10), shard("training", 8, 16, 2, version=10))
    job(master).run()
    assert [step for step, _ in master.metrics] == [10, 11, 12, 13]


def test_an_unknown_dataset_of_the_master_is_an_error(job):
    with pytest.raises(MasterError, match="dataset 'training', which|'other', which"):
        worker = job(Master(shard("other", 0, 1, 1)))
        worker.run()


def test_parses_the_arguments_of_the_master():
    parsed = parse_arguments(["--job_type=evaluation", "--model_def=a.b", "--use_async=true",
                              "--minibatch_size=7", "--feed=other_feed", "--seed=3"])
    assert (parsed.job_type, parsed.use_async, parsed.minibatch_size) == ("evaluation", True, 7)
    assert parsed.names.feed == "other_feed" and parsed.seed == 3
