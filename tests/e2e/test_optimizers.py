"""The rules by which rows change, held against tf.keras 2.15 and against their definitions."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import ROOT

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
    """The variable after the steps; a gradient with ids comes as IndexedSlices."""
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
    # 100 steps of float32, whose roundings add up.
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize("case", CASES)
def test_dense_steps_are_those_of_keras(case):
    name, options = CASES[case]
    size = ROWS * DIM
    gradients = draw(1, STEPS, size)
    wanted = keras(name, options, (size,), [(None, step) for step in gradients])
    got = ours(name, options, size, [(ONE_ROW, step) for step in gradients], ONE_ROW)
    assert_alike(got[0], wanted)


@pytest.mark.parametrize("case", CASES)
def test_sparse_steps_are_those_of_keras_where_all_rows_occur(case):
    name, options = CASES[case]
    gradients = draw(2, STEPS, ROWS, DIM)
    steps = [(ALL_ROWS, step) for step in gradients]
    assert_alike(ours(name, options, DIM, steps, ALL_ROWS),
                 keras(name, options, (ROWS, DIM), steps))


@pytest.mark.parametrize("case", ["sgd", "adagrad"])
def test_sparse_steps_are_those_of_keras_on_any_stream(case):
    name, options = CASES[case]
    random = np.random.default_rng(3)
    steps = []
    for _ in range(STEPS):
        ids = random.choice(ROWS, size=random.integers(1, ROWS), replace=False)
        steps.append((ids, random.normal(size=(len(ids), DIM)).astype(np.float32)))
    assert_alike(ours(name, options, DIM, steps, ALL_ROWS),
                 keras(name, options, (ROWS, DIM), steps))


def test_lazy_adam_is_its_definition():
    """Only rows that a push names change, and their moments; the step's number is the push's."""
    random = np.random.default_rng(4)
    weights = np.ones((ROWS, DIM))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    steps = []
    for number in range(1, STEPS + 1):
        ids = random.choice(ROWS, size=random.integers(1, ROWS), replace=False)
        gradients = random.normal(size=(len(ids), DIM)).astype(np.float32)
        steps.append((ids, gradients))
        first[ids] += 0.1 * (gradients - first[ids])
        second[ids] += 0.01 * (gradients ** 2 - second[ids])
        rate = RATES[number - 1] * np.sqrt(1 - 0.99 ** number) / (1 - 0.9 ** number)
        weights[ids] -= rate * first[ids] / (np.sqrt(second[ids]) + 1e-7)
    assert_alike(ours("Adam", {"beta_2": 0.99}, DIM, steps, ALL_ROWS), weights)
