"""Optimizers compared with tf.keras 2.15 and with their definitions."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import ROOT

from elasticdl import ParameterClient

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PROGRAM = Path(os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl")
               ).parents[2] / "src/ps/table_steps"
STEPS, ROWS, DIM = 100, 12, 5
RATES = [0.05 / (1 + step / 50) for step in range(STEPS)]  # another one with every push

CASES = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.8, "nesterov": True}),
    "adagrad": ("Adagrad", {"initial_accumulator_value": 0.1, "epsilon": 1e-7}),
    "adam": ("Adam", {"beta_1": 0.9, "beta_2": 0.99}),
    "amsgrad": ("Adam", {"beta_2": 0.9, "amsgrad": True}),
    "adamw": ("AdamW", {"weight_decay": 0.04}),
    "rmsprop": ("RMSprop", {"rho": 0.8}),
    "rmsprop centered": ("RMSprop", {"centered": True, "momentum": 0.5}),
    "ftrl": ("Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02,
                      "beta": 0.1, "l2_shrinkage_regularization_strength": 0.03}),
    "ftrl by another power": ("Ftrl", {"learning_rate_power": -0.3}),
    "sgd with decay": ("SGD", {"weight_decay": 0.1}),
}
ONE_ROW = [0]
ALL_ROWS = list(range(ROWS))


def ours(name, options, dim, steps, ids):
    given = {"optimizer": {"name": name, **options}, "dim": dim, "initial": 1.0, "ids": ids,
             "steps": [{"learning_rate": rate, "ids": [int(id) for id in step_ids],
                        "gradients": [float(value) for value in np.ravel(gradients)]}
                       for rate, (step_ids, gradients) in zip(RATES, steps)]}
    done = subprocess.run([str(PROGRAM)], input=json.dumps(given), text=True, check=True,
                          capture_output=True)
    return np.array(json.loads(done.stdout), np.float32).reshape(len(ids), dim)


def keras(name, options, shape, steps):
    """The variable after the steps. A gradient with ids is passed as IndexedSlices."""
    import tensorflow as tf

    optimizer = getattr(tf.keras.optimizers, name)(jit_compile=False, **options)
    variable = tf.Variable(tf.ones(shape))
    optimizer.build([variable])
    for rate, (ids, gradients) in zip(RATES, steps):
        optimizer.learning_rate = rate
        gradient = tf.constant(gradients)
        if ids is not None:
            gradient = tf.IndexedSlices(gradient, tf.constant(ids, tf.int64), shape)
        optimizer.apply_gradients([(gradient, variable)])
    return variable.numpy()


def draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def assert_alike(got, wanted):
    # The rounding errors of 100 steps in float32 add up.
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize("case", CASES)
def test_dense_steps_equal_those_of_keras(case):
    name, options = CASES[case]
    size = ROWS * DIM
    gradients = draw(1, STEPS, size)
    wanted = keras(name, options, (size,), [(None, step) for step in gradients])
    got = ours(name, options, size, [(ONE_ROW, step) for step in gradients], ONE_ROW)
    assert_alike(got[0], wanted)


@pytest.mark.parametrize("case", CASES)
def test_sparse_steps_with_all_rows_equal_those_of_keras(case):
    name, options = CASES[case]
    gradients = draw(2, STEPS, ROWS, DIM)
    steps = [(ALL_ROWS, step) for step in gradients]
    assert_alike(ours(name, options, DIM, steps, ALL_ROWS),
                 keras(name, options, (ROWS, DIM), steps))


@pytest.mark.parametrize("case", ["sgd", "adagrad"])
def test_sparse_steps_with_any_rows_equal_those_of_keras(case):
    name, options = CASES[case]
    random = np.random.default_rng(3)
    steps = []
    for _ in range(STEPS):
        ids = random.choice(ROWS, size=random.integers(1, ROWS), replace=False)
        steps.append((ids, random.normal(size=(len(ids), DIM)).astype(np.float32)))
    assert_alike(ours(name, options, DIM, steps, ALL_ROWS),
                 keras(name, options, (ROWS, DIM), steps))


def lazily(name, options, steps):
    """The lazy rule in NumPy: a push changes only its rows and their slots. Only the step number,
    which Adam uses, counts all pushes."""
    weights = np.ones((ROWS, DIM))
    slots = {slot: np.zeros_like(weights) for slot in ("first", "second", "most", "momentum")}
    total = np.full_like(weights, options.get("initial_accumulator_value", 0.1))
    for number, (rate, (ids, gradients)) in enumerate(zip(RATES, steps), 1):
        row, grad = weights[ids], gradients.astype(np.float64)
        slot = {key: value[ids] for key, value in slots.items()}
        row = row - row * rate * options.get("weight_decay", 0)
        if name == "SGD":
            moved = slot["momentum"] = options.get("momentum", 0) * slot["momentum"] - rate * grad
            if options.get("nesterov"):
                moved = options["momentum"] * moved - rate * grad
            row = row + moved
        elif name == "Adagrad":
            total[ids] += grad ** 2
            row = row - rate * grad / np.sqrt(total[ids] + options["epsilon"])
        elif name in ("Adam", "AdamW"):
            first, second = options.get("beta_1", 0.9), options.get("beta_2", 0.999)
            slot["first"] += (1 - first) * (grad - slot["first"])
            slot["second"] += (1 - second) * (grad ** 2 - slot["second"])
            slot["most"] = np.maximum(slot["most"], slot["second"])
            scale = slot["most"] if options.get("amsgrad") else slot["second"]
            corrected = rate * np.sqrt(1 - second ** number) / (1 - first ** number)
            row = row - corrected * slot["first"] / (np.sqrt(scale) + 1e-7)
        elif name == "RMSprop":
            rho = options.get("rho", 0.9)
            slot["second"] = rho * slot["second"] + (1 - rho) * grad ** 2
            slot["first"] = rho * slot["first"] + (1 - rho) * grad
            centre = slot["first"] ** 2 if options.get("centered") else 0
            step = rate * grad / np.sqrt(slot["second"] - centre + 1e-7)
            slot["momentum"] = options.get("momentum", 0) * slot["momentum"] + step
            row = row - slot["momentum"]
        elif name == "Ftrl":
            power = -options.get("learning_rate_power", -0.5)
            grown = total[ids] + grad ** 2
            shrunk = grad + 2 * options.get("l2_shrinkage_regularization_strength", 0) * row
            slot["first"] += shrunk - (grown ** power - total[ids] ** power) / rate * row
            total[ids] = grown
            l1 = options.get("l1_regularization_strength", 0)
            l2 = options.get("l2_regularization_strength", 0) + options.get("beta", 0) / (2 * rate)
            row = ((np.clip(slot["first"], -l1, l1) - slot["first"])
                   / (grown ** power / rate + 2 * l2))
        weights[ids] = row
        for key, value in slots.items():
            value[ids] = slot[key]
    return weights


@pytest.mark.parametrize("case", CASES)
def test_lazy_steps_equal_their_definition(case):
    name, options = CASES[case]
    random = np.random.default_rng(4)
    steps = []
    for _ in range(STEPS):
        ids = random.choice(ROWS, size=random.integers(1, ROWS), replace=False)
        steps.append((ids, random.normal(size=(len(ids), DIM)).astype(np.float32)))
    assert_alike(ours(name, options, DIM, steps, ALL_ROWS), lazily(name, options, steps))


@pytest.mark.parametrize("clipped", ["clipnorm", "global_clipnorm"])
def test_gradients_are_clipped_as_keras_does(clipped, start_ps):
    import tensorflow as tf

    ids = np.array([1, 4, 1, 7], np.int64)  # 1 occurs twice
    rows, dense = draw(6, len(ids), DIM), draw(7, 3) * 0.01
    table, tensor = tf.Variable(tf.zeros((ROWS, DIM))), tf.Variable(tf.zeros(3))
    optimizer = tf.keras.optimizers.SGD(1.0, **{clipped: 0.5})
    optimizer.build([table, tensor])
    # As one array, because Keras computes the norm of slices before it adds those of equal ids.
    slices = tf.IndexedSlices(tf.constant(rows), tf.constant(ids), (ROWS, DIM))
    optimizer.apply_gradients([(tf.convert_to_tensor(slices), table),
                               (tf.constant(dense), tensor)])

    with ParameterClient([server.address for server in start_ps(2)]) as client:
        client.declare([{"name": "t", "dim": DIM, "initializer": {"name": "zeros"}}],
                       [{"name": "d", "value": np.zeros(3, np.float32)}])
        client.push({"t": (ids, rows)}, {"d": dense}, learning_rate=1.0, **{clipped: 0.5})
        assert_alike(client.pull("t", np.arange(ROWS)), table.numpy())
        assert_alike(client.pull_tensors()["d"], tensor.numpy())


def test_steps_continue_after_a_restore_into_other_servers(start_ps, tmp_path):
    """Half of the steps run on 2 servers, the other half after a save and a restore on 3."""
    tables = [{"name": case, "dim": DIM, "initializer": {"name": "constant", "value": 1},
               "optimizer": {"name": name, **options}} for case, (name, options) in CASES.items()]
    tensors = [{"name": case, "value": np.ones(ROWS * DIM, np.float32),
                "optimizer": {"name": name, **options}} for case, (name, options) in CASES.items()]
    gradients = draw(5, STEPS, ROWS, DIM)
    ids = np.array(ALL_ROWS, np.int64)

    def push(client, steps):
        for step in steps:
            client.push({case: (ids, gradients[step]) for case in CASES},
                        {case: gradients[step].ravel() for case in CASES},
                        learning_rate=RATES[step])

    with ParameterClient([server.address for server in start_ps(2)]) as client:
        client.declare(tables, tensors)
        push(client, range(STEPS // 2))
        client.save(tmp_path / "half")
    with ParameterClient([server.address for server in start_ps(3)]) as client:
        client.restore(tmp_path / "half")
        client.declare(tables, tensors)
        push(client, range(STEPS // 2, STEPS))
        rows = client.pull_many({case: ids for case in CASES})
        values = client.pull_tensors()
    for case, (name, options) in CASES.items():
        wanted = keras(name, options, (ROWS * DIM,), [(None, step.ravel()) for step in gradients])
        assert_alike(values[case], wanted)
        assert_alike(rows[case], wanted.reshape(ROWS, DIM))
