"""Callbacks of models, and the paths at which published models import from elasticdl."""

import importlib

import pytest

tf = pytest.importorskip("tensorflow")

from elasticdl.callbacks import LearningRateScheduler, MaxStepsStopping  # noqa: E402


@pytest.fixture
def model():
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    made.compile("sgd", "mse")
    return made


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "legacy.SGD"])
def test_the_learning_rate_follows_the_version(model, optimizer):
    made = tf.keras.optimizers
    for part in optimizer.split("."):
        made = getattr(made, part)
    model.compile(made(0.5), "mse")
    callback = LearningRateScheduler(lambda version: 0.1 if version < 10 else tf.constant(0.25))
    callback.set_model(model)
    for version, rate in ((0, 0.1), (9, 0.1), (10, 0.25), (1000, 0.25)):
        callback.on_train_batch_begin(version)
        assert float(model.optimizer.learning_rate) == pytest.approx(rate)


def test_a_schedule_without_a_number_is_named(model):
    callback = LearningRateScheduler(lambda version: None)
    callback.set_model(model)
    with pytest.raises(ValueError, match="None for version 3"):
        callback.on_train_batch_begin(3)


def test_training_stops_at_the_version(model):
    callback = MaxStepsStopping(max_steps=3)
    seen = []
    record = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(batch))
    model.fit(tf.zeros((10, 1)), tf.zeros((10, 1)), batch_size=1, verbose=0,
              callbacks=[callback, record])
    assert seen == [0, 1, 2]
    with pytest.raises(ValueError, match="at least 1"):
        MaxStepsStopping(0)


@pytest.mark.parametrize("module, name", [
    ("elasticdl.python.common.constants", "Mode"),
    ("elasticdl.python.common.log_utils", "default_logger"),
    ("elasticdl.python.elasticdl.callbacks", "LearningRateScheduler"),
    ("elasticdl.python.elasticdl.callbacks", "MaxStepsStopping"),
    ("elasticdl.python.worker.prediction_outputs_processor", "BasePredictionOutputsProcessor")])
def test_published_models_find_their_imports(module, name):
    assert hasattr(importlib.import_module(module), name)


def test_the_modes_have_the_published_values():
    from elasticdl.python.common.constants import Mode

    assert (Mode.TRAINING, Mode.EVALUATION, Mode.PREDICTION) == (
        "training", "evaluation", "prediction")
