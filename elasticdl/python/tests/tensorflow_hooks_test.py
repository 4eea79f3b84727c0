"""The session hooks, with TensorFlow's own sessions. The one module that imports TensorFlow."""

import os
import random
from collections import Counter

import pytest

tf = pytest.importorskip("tensorflow.compat.v1")

from tensorflow.python.training.session_manager import SessionManager  # noqa: E402

from elasticai_api.common.data_shard_service import (  # noqa: E402
    RecordIndexService,
    build_data_shard_service,
)
from elasticai_api.common.errors import MasterError  # noqa: E402
from elasticai_api.common.local_master import LocalMasterClient  # noqa: E402
from elasticai_api.common.master_client import build_master_client  # noqa: E402
from elasticai_api.tensorflow.hooks import (  # noqa: E402
    ElasticDataShardReportHook,
    ElasticMetricsReportHook,
)
from elasticai_api.tensorflow.recovery import (  # noqa: E402
    keep_what_the_ps_has,
    look_for_the_chief_every,
)
from model_zoo.deepctr import gen_criteo_sample  # noqa: E402
from model_zoo.iris import dnn_estimator  # noqa: E402

SIZE, BATCH = 50, 8


class FakeService:
    """Notes what the hook says."""

    def __init__(self, error=None):
        self.said = []
        self._error = error

    def _say(self, what):
        self.said.append(what)
        if self._error:
            raise self._error

    def report_batch_done(self):
        self._say("batch")

    def start_over(self):
        self._say("start over")

    def report_data_end(self, drop_remainder):
        self._say(("end", drop_remainder))

    def finish(self):
        self._say("finish")


class AbortOnce(tf.train.SessionRunHook):
    """Breaks the session at its n-th step, as a lost ps does."""

    def __init__(self, step):
        self._left = step

    def before_run(self, run_context):
        self._left -= 1
        if self._left == 0:
            raise tf.errors.AbortedError(None, None, "the ps is gone")


@pytest.fixture
def graph():
    with tf.Graph().as_default():
        yield


def train(service, hooks, size=None, drop_remainder=False):
    """Trains until the input runs out. The records of the batches whose step returned."""

    def generate():
        for shard in service.shards():
            yield from shard.records()

    dataset = tf.data.Dataset.from_generator(generate, tf.int64, [])
    dataset = dataset.shuffle(20).batch(BATCH, drop_remainder=drop_remainder)
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    batch = iterator.get_next()
    step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    trained = []
    with tf.train.MonitoredSession(hooks=hooks) as session:
        while not session.should_stop():
            trained.extend(session.run([batch, step])[0])
            if size is not None and len(trained) >= size:
                break
    return trained


def rows(epochs=1):
    return build_data_shard_service(
        BATCH, epochs, SIZE, num_minibatches_per_shard=1, dataset_name="rows")


def records_done():
    return build_master_client().get_dataset("rows").records_done


def test_every_record_counts_though_the_last_batch_is_short(graph):
    service = rows(epochs=3)
    trained = train(service, [ElasticDataShardReportHook(service)])

    assert Counter(trained) == Counter({i: 3 for i in range(SIZE)})
    assert records_done() == 3 * SIZE


def test_the_rest_counts_at_the_end_whatever_the_batch_size(graph):
    service = rows()
    service._batch_size = 1  # the service believes in smaller batches than the pipeline makes
    train(service, [ElasticDataShardReportHook(service)])

    assert records_done() == SIZE


def test_a_dropped_remainder_does_not_count(graph):
    service = rows()
    trained = train(
        service, [ElasticDataShardReportHook(service, drop_remainder=True)], drop_remainder=True)

    assert len(trained) == 48
    assert records_done() == 48


def test_training_that_stops_early_counts_what_it_trained(graph):
    service = rows()
    trained = train(service, [ElasticDataShardReportHook(service)], size=16)

    assert len(trained) == 16
    assert records_done() == 16


def test_a_new_session_gives_back_what_was_not_trained_and_trains_all(graph):
    service = rows(epochs=2)
    trained = train(service, [ElasticDataShardReportHook(service), AbortOnce(5)])

    assert records_done() == 2 * SIZE
    counts = Counter(trained)
    assert sum(counts.values()) >= 2 * SIZE - 20  # what was in the shuffle buffer at the break
    state = build_master_client().get_dataset("rows")
    assert state.finished


def test_without_a_shuffle_buffer_a_new_session_loses_no_record(graph, monkeypatch):
    monkeypatch.setattr(tf.data.Dataset, "shuffle", lambda self, size: self)
    service = rows(epochs=2)
    trained = train(service, [ElasticDataShardReportHook(service), AbortOnce(5)])

    assert min(Counter(trained)[i] for i in range(SIZE)) >= 2
    assert records_done() == 2 * SIZE


def test_indices_make_a_dataset_that_ends(graph):
    service = RecordIndexService(BATCH, 1, SIZE, dataset_name="rows")
    batch = tf.data.make_one_shot_iterator(service.get_tf_dataset().batch(SIZE)).get_next()
    with tf.Session() as session:
        assert sorted(session.run(batch)) == list(range(SIZE))
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)


def test_the_hook_says_each_step_and_the_end():
    service = FakeService()
    hook = ElasticDataShardReportHook(service)
    hook.after_create_session(None, None)
    hook.before_run(None)
    hook.after_run(None, None)
    hook.before_run(None)  # ran out
    hook.end(None)

    assert service.said == ["batch", ("end", False)]


def test_an_end_after_a_step_that_returned_is_not_the_end_of_the_data():
    service = FakeService()
    hook = ElasticDataShardReportHook(service)
    hook.after_create_session(None, None)
    hook.before_run(None)
    hook.after_run(None, None)
    hook.end(None)

    assert service.said == ["batch", "finish"]


def test_each_session_but_the_first_starts_over():
    service = FakeService()
    hook = ElasticDataShardReportHook(service)
    for _ in range(3):
        hook.after_create_session(None, None)

    assert service.said == ["start over", "start over"]


def test_trouble_in_reporting_does_not_end_the_training(caplog):
    service = FakeService(MasterError("the ledger is damaged"))
    hook = ElasticDataShardReportHook(service)

    hook.after_run(None, None)

    assert service.said == ["batch"]
    assert "the ledger is damaged" in caplog.text


def test_the_service_may_come_later():
    services = [None]
    hook = ElasticDataShardReportHook(lambda: services[0])
    hook.after_run(None, None)
    services[0] = FakeService()
    hook.after_run(None, None)

    assert services[0].said == ["batch"]


def test_the_master_is_told_step_and_loss(graph):
    client = LocalMasterClient()
    advance = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    tf.add_to_collection(tf.GraphKeys.LOSSES, tf.constant(0.5))
    with tf.train.MonitoredSession(hooks=[ElasticMetricsReportHook(0, client)]) as session:
        for _ in range(4):
            session.run(advance)

    step, metrics = client._metrics
    assert step in (3, 4)  # TensorFlow reads it before or after the step adds to it
    assert metrics == {"loss": 0.5}


@pytest.fixture
def session_manager(monkeypatch):
    """TensorFlow's class, put back as it was afterwards."""
    for method in ("__init__", "_restore_checkpoint"):
        monkeypatch.setattr(SessionManager, method, getattr(SessionManager, method))


def test_workers_look_for_the_chief_as_often_as_told(graph, session_manager):
    look_for_the_chief_every(5.0)
    look_for_the_chief_every(0.5)

    assert SessionManager()._recovery_wait_secs == 0.5
    assert SessionManager(recovery_wait_secs=7)._recovery_wait_secs == 7


def chief_session(server, folder):
    """A session as a chief makes it: in a graph of its own, with a variable on the server."""
    with tf.Graph().as_default():
        weight = tf.get_variable("weight", initializer=0.0, use_resource=True)
        tf.identity(weight, name="value")
        weight.assign(tf.placeholder(tf.float32, [], name="given"), name="assign")
        saver = tf.train.Saver()
        missing = tf.report_uninitialized_variables()
        manager = SessionManager(
            local_init_op=tf.no_op(), ready_op=missing, ready_for_local_init_op=missing)
        init = tf.global_variables_initializer()
        return manager.prepare_session(server.target, init, saver, str(folder)), saver


def test_a_chief_that_comes_back_keeps_what_the_ps_has(tmp_path, session_manager):
    keep_what_the_ps_has()
    ps = tf.train.Server.create_local_server()
    session, saver = chief_session(ps, tmp_path)
    session.run("assign", {"given:0": 1.0})
    with session.graph.as_default():
        saver.save(session, str(tmp_path / "model.ckpt"))
    session.run("assign", {"given:0": 5.0})

    assert chief_session(ps, tmp_path)[0].run("value:0") == 5.0
    empty_ps = tf.train.Server.create_local_server()
    assert chief_session(empty_ps, tmp_path)[0].run("value:0") == 1.0


def test_the_iris_data_is_whole():
    beside = os.path.join(os.path.dirname(dnn_estimator.__file__), "iris.data")
    flowers = dnn_estimator.read_flowers(beside)

    assert Counter(f.category for f in flowers) == {0: 50, 1: 50, 2: 50}
    assert len(flowers) * dnn_estimator.NUM_EPOCHS % dnn_estimator.BATCH_SIZE != 0


def test_the_click_records_have_the_published_form(tmp_path):
    path = tmp_path / "criteo_sample.txt"
    gen_criteo_sample.write_sample(str(path), 300, seed=3)
    lines = path.read_text().splitlines()

    assert lines[0].split(",") == (
        ["label"] + [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)])
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == 300 and {len(row) for row in rows} == {40}
    assert {row[0] for row in rows} == {"0", "1"}
    assert all(len(name) == 8 and int(name, 16) >= 0 for row in rows for name in row[14:] if name)
    assert any(row[1] == "" for row in rows) and all(row[2] for row in rows)
    path2 = tmp_path / "again.txt"
    random.seed(99)
    gen_criteo_sample.write_sample(str(path2), 300, seed=3)
    assert path2.read_bytes() == path.read_bytes()
