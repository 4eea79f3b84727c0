"""A Keras model with its parameters outside: the same numbers as Keras computes."""

import numpy as np
import pytest
import tensorflow as tf

from elasticdl.feature_column import embedding_column
from elasticdl.layers import Embedding
from elasticdl.model.errors import ModelError
from elasticdl.model.large_embeddings import MovedEmbedding, move_large_embeddings, put_back
from elasticdl.model.optimizer_settings import OptimizerSettings
from elasticdl.model.ps_model import PsModel

RATE = 0.1


def loss(labels, predictions):
    return tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(
        labels, predictions, from_logits=True))


def batches_of(features, labels, size=8):
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(size)


def made(model, dataset, optimizer=None):
    ps_model = PsModel(model, loss, optimizer or tf.keras.optimizers.SGD(RATE), "m.py")
    ps_model.build(next(iter(dataset))[0])
    ps_model.compile("training", *dataset.element_spec)
    ps_model.compile("evaluation", *dataset.element_spec)
    return ps_model


class Server:
    """Parameters in memory, with plain SGD."""

    def __init__(self, model, table_values=None):
        declared = model.declaration(0)
        self.tensors = {t["name"]: t["value"].copy() for t in declared["tensors"]}
        self.frozen = {t["name"] for t in declared["tensors"] if not t.get("trainable", True)}
        self.tables = table_values or {}

    def rows(self, model, features, mode="training"):
        rows = {}
        for table, ids in model.ids_of(features, mode).items():
            distinct, inverse = np.unique(ids, return_inverse=True)
            rows[table] = distinct, self.tables[table][distinct], inverse.astype(np.int32)
        return rows

    def apply(self, result):
        for name, gradient in result.tensors.items():
            self.tensors[name] += gradient if name in self.frozen else -RATE * gradient
        for table, (ids, gradients) in result.tables.items():
            np.add.at(self.tables[table], ids, -RATE * gradients)


def train(model, server, dataset):
    losses = []
    for features, labels in dataset:
        model.assign(server.tensors)
        result = model.step(features, labels, server.rows(model, features))
        server.apply(result)
        losses.append(result.loss)
    return losses


def dense_model():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(6, activation="relu", input_shape=(4,)),
        tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)])


def test_trains_like_keras_with_moving_averages():
    # With some initial weights, a sum is so close to zero that rounding decides whether a unit is
    # active, and the two models part.
    tf.keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(100, 4)).astype("f"), random.integers(0, 3, 100)
    dataset = batches_of(features, labels).repeat(3)
    plain = dense_model()
    ours = tf.keras.models.clone_model(plain)
    ours.set_weights(plain.get_weights())

    model = made(ours, dataset)
    server = Server(model)
    losses = train(model, server, dataset)

    optimizer, expected = tf.keras.optimizers.SGD(RATE), []
    for x, y in dataset:
        with tf.GradientTape() as tape:
            value = loss(y, plain(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, plain.trainable_variables),
                                      plain.trainable_variables))
        expected.append(float(value))
    assert losses == pytest.approx(expected, rel=1e-4)
    model.assign(server.tensors)
    for variable, value in zip(plain.variables, ours.variables):
        np.testing.assert_allclose(value.numpy(), variable.numpy(), rtol=1e-4, atol=1e-5)


def ids_model(embedding):
    inputs = tf.keras.Input((3,), dtype=tf.int64)
    hidden = tf.reshape(embedding(inputs), [-1, 15])
    return tf.keras.Model(inputs, tf.keras.layers.Dense(3, name="out")(hidden))


def test_trains_rows_like_keras():
    random = np.random.default_rng(1)
    ids, labels = random.integers(0, 20, (64, 3)), random.integers(0, 3, 64)
    dataset = batches_of(ids, labels)
    plain = ids_model(tf.keras.layers.Embedding(20, 5, name="words"))
    ours = ids_model(Embedding(5, name="words"))
    ours.get_layer("out").set_weights(plain.get_layer("out").get_weights())
    table = plain.get_layer("words").get_weights()[0].copy()

    model = made(ours, dataset)
    losses = train(model, Server(model, {"words/embeddings:0": table}), dataset)

    optimizer, expected = tf.keras.optimizers.SGD(RATE), []
    for x, y in dataset:
        with tf.GradientTape() as tape:
            value = loss(y, plain(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, plain.trainable_variables),
                                      plain.trainable_variables))
        expected.append(float(value))
    assert losses == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(table, plain.get_layer("words").get_weights()[0], atol=1e-6)


def test_a_layer_that_is_called_twice_shares_its_table():
    inputs = {name: tf.keras.Input((2,), dtype=tf.int64, name=name) for name in "ab"}
    shared = Embedding(2, name="shared")
    both = tf.concat([shared(inputs["a"]), shared(inputs["b"])], 1)
    keras_model = tf.keras.Model(inputs, tf.reduce_sum(both, 1))
    features = {"a": np.array([[1, 2], [3, 1]]), "b": np.array([[5, 5], [2, 9]])}
    dataset = batches_of(features, np.array([0, 1]))
    model = made(keras_model, dataset)
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    server = Server(model, {"shared/embeddings:0": table})
    batch = next(iter(dataset))[0]
    outputs = model.forward(batch, server.rows(model, batch, "evaluation"), "evaluation")
    expected = table[features["a"]].sum(1) + table[features["b"]].sum(1)
    np.testing.assert_allclose(outputs, expected)


@pytest.mark.parametrize("combiner, expected", [
    ("sum", [[2 + 4, 3 + 5], [0, 0], [6, 7]]),
    ("mean", [[3, 4], [0, 0], [6, 7]]),
    ("sqrtn", [[6 / 2 ** 0.5, 8 / 2 ** 0.5], [0, 0], [6, 7]])])
def test_combines_sparse_ids_and_ignores_negative_ones(combiner, expected):
    inputs = tf.keras.Input((None,), dtype=tf.int64, sparse=True)
    keras_model = tf.keras.Model(inputs, Embedding(2, combiner=combiner, name="e")(inputs))
    sparse = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [2, 0]], np.array([1, 2, -1, 3]), [3, 3])
    model = PsModel(keras_model, None, None, "m.py")
    model.build(sparse)
    model.compile("evaluation", tf.SparseTensorSpec([None, None], tf.int64), None)
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    server = Server(model, {"e/embeddings:0": table})
    outputs = model.forward(sparse, server.rows(model, sparse, "evaluation"), "evaluation")
    np.testing.assert_allclose(outputs, expected, rtol=1e-6)


def test_a_subclassed_model_is_built_by_its_first_batch():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.words = Embedding(4, name="words")
            self.out = tf.keras.layers.Dense(3)

        def call(self, inputs, training=False):
            return self.out(tf.reduce_sum(self.words(inputs), 1))

    dataset = batches_of(np.arange(12).reshape(4, 3), np.array([0, 1, 2, 0]))
    model = made(Net(), dataset)
    assert model.tables == ["words/embeddings:0"] and len(model.tensors) == 2
    server = Server(model, {"words/embeddings:0": np.ones((12, 4), np.float32)})
    assert len(train(model, server, dataset)) == 1


def test_large_embeddings_move_and_come_back():
    def net():
        inputs = tf.keras.Input((2,), dtype=tf.int64)
        return tf.keras.Model(inputs, [tf.keras.layers.Embedding(70_000, 8, name="large")(inputs),
                                       tf.keras.layers.Embedding(70, 8, name="small")(inputs)])

    original = net()
    moved = move_large_embeddings(original)
    assert isinstance(moved.get_layer("large"), MovedEmbedding)
    assert type(moved.get_layer("small")) is tf.keras.layers.Embedding
    assert [v.name for v in moved.variables] == ["small/embeddings:0"]
    rows = np.ones((70_000, 8), np.float32)
    put_back(original, moved.get_layer("large"), rows)
    np.testing.assert_array_equal(original(np.array([[1, 2]]))[0], np.ones((1, 2, 8)))


def test_ids_that_depend_on_parameters_are_an_error():
    inputs = tf.keras.Input((1,), dtype=tf.int64)
    inner = Embedding(1, name="inner")(inputs)
    outer = Embedding(2, name="outer")(tf.cast(tf.reduce_sum(inner, -1), tf.int64))
    keras_model = tf.keras.Model(inputs, tf.reduce_sum(outer, 1))
    dataset = batches_of(np.array([[1], [2]]), np.array([0, 1]))
    model = made(keras_model, dataset)
    tables = {"inner/embeddings:0": np.full((5, 1), 3, np.float32),
              "outer/embeddings:0": np.ones((5, 2), np.float32)}
    features, labels = next(iter(dataset))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a function of the features"):
        model.step(features, labels, Server(model, tables).rows(model, features))


@pytest.mark.parametrize("optimizer, message", [
    (tf.keras.optimizers.Nadam(), "Nadam, which the parameter servers do not have; use one of SGD"),
    (tf.keras.optimizers.SGD(use_ema=True), "use_ema=True is not supported"),
    ("adam", "returned a str; expected an optimizer")])
def test_optimizers_that_servers_do_not_have_are_named(optimizer, message):
    with pytest.raises(ModelError, match=message):
        OptimizerSettings(optimizer, "m.py: optimizer()")


def test_the_learning_rate_follows_schedules_and_callbacks():
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10], [0.1, 0.01])
    assert OptimizerSettings(tf.keras.optimizers.SGD(schedule), "w").learning_rate(5) == (
        pytest.approx(0.1))
    assert OptimizerSettings(tf.keras.optimizers.SGD(schedule), "w").learning_rate(50) == (
        pytest.approx(0.01))
    optimizer = tf.keras.optimizers.Adam(0.5)
    settings = OptimizerSettings(optimizer, "w")
    optimizer.learning_rate = 0.25
    assert settings.learning_rate(0) == pytest.approx(0.25)


def test_an_embedding_column_has_its_rows_on_servers():
    column = embedding_column(tf.feature_column.categorical_column_with_identity("kind", 10), 2)
    inputs = {"kind": tf.keras.Input((1,), dtype=tf.int64, name="kind")}
    dense = tf.keras.layers.DenseFeatures([column])(inputs)
    keras_model = tf.keras.Model(inputs, tf.keras.layers.Dense(3)(dense))
    dataset = batches_of({"kind": np.array([[1], [4], [1]])}, np.array([0, 1, 2]))
    model = made(keras_model, dataset)
    assert model.tables == ["kind_embedding/embeddings:0"]
    server = Server(model, {model.tables[0]: np.ones((10, 2), np.float32)})
    train(model, server, dataset)
    changed = np.flatnonzero((server.tables[model.tables[0]] != 1).any(1))
    assert changed.tolist() == [1, 4]
