"""The Keras models of the zoo learn: each trains a few hundred batches of its generated dataset
with plain Keras, through its own feed, loss, optimizer and callbacks."""

import os
from pathlib import Path

import numpy as np
import pytest
from zoo_models import MODELS

from elasticdl.data_gen.mnist import SIZE

# model -> (batches, metric, the least value to reach on the test part)
LEARNS = {
    "mnist (tutorial 5)": (200, "accuracy", 0.9),
    "mnist functional": (200, "accuracy", 0.9),
    "mnist subclass": (200, "accuracy", 0.9),
    "mnist (tutorial 4)": (600, "accuracy", 0.88),
    "cifar10": (200, "accuracy", 0.9),
    "deepfm": (500, "probs/auc", 0.79),
    "wdl": (300, "auc", 0.7),
    "census": (200, "probs/auc", 0.8),
    "heart": (200, "auc", 0.85),
    "iris": (200, "accuracy", 0.86),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def no_keras_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))


# The rows of "deepfm edl" are on parameter servers: test_keras.py trains it in a job.
@pytest.mark.parametrize("name", [name for name in MODELS if name != "deepfm edl"])
def test_a_model_learns(name: str, data: Path) -> None:
    model, (batches, metric, least) = MODELS[name], LEARNS[name]
    trained = model.train(model.records(data, "train"), batches)
    metrics = model.evaluate(trained, model.records(data, "test"))
    print(f"{name}: {batches} batches, {metrics}")
    assert metrics[metric] > least


@pytest.mark.parametrize("name", MODELS)
def test_a_feed_for_predictions_has_no_labels(name: str, data: Path) -> None:
    if name in ("wdl", "deepfm edl"):
        pytest.skip("its feed is that of census and deepfm; building it takes seconds")
    model = MODELS[name]
    predictions = model.predict(model.make(), model.records(data, "test")[:8])
    outputs = predictions.values() if isinstance(predictions, dict) else [predictions]
    assert all(len(output) == 8 for output in outputs)


def test_predictions_of_cifar10_are_written_to_files(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PREDICTIONS_DIR", str(tmp_path / "out"))
    processor = MODELS["cifar10"].module.PredictionOutputsProcessor()
    processor.process(np.eye(10)[[3, 7]], worker_id=4)
    processor.process(np.eye(10)[[1]], worker_id=4)
    processor.process(np.eye(10)[[9]], worker_id=5)
    assert sorted(os.listdir(tmp_path / "out")) == ["predictions-4.txt", "predictions-5.txt"]
    assert (tmp_path / "out" / "predictions-4.txt").read_text() == "3\n7\n1\n"


def test_the_embedding_of_deepfm_is_below_the_size_of_a_table_on_servers() -> None:
    sizes = [variable.shape.num_elements() * 4
             for variable in MODELS["deepfm"].make().trainable_variables
             if "embedding" in variable.name]
    assert max(sizes) == 5383 * 64 * 4 < 2 * 2**20


def test_the_subclass_accepts_the_channel_first() -> None:
    # Convolutions with the channel first need a GPU, so only its layers are checked.
    model = MODELS["mnist subclass"].module.CustomModel(channel_last=False)
    assert model._reshape.target_shape == (1, SIZE, SIZE)
