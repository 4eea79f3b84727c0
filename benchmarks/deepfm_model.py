"""DeepFM as a function of its parameters: the step that both variants of the benchmark compile.

A row contains the weight of an id in the linear part and its 16 factors. The step gets each row
once, with the positions at which it is used, and returns the gradients of the rows in the same
order.
"""

from typing import Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import tensorflow as tf
from planted import COLUMNS, NUMBERS

DIM = 16
ROW = 1 + DIM
WIDTHS = (COLUMNS * DIM + NUMBERS, 256, 128, 1)
# The accumulator starts small because gradients are those of a mean over the batch.
ADAGRAD = {"name": "Adagrad", "initial_accumulator_value": 1e-7, "epsilon": 0.0}
ADAM = {"name": "Adam", "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
ROW_RATE, DENSE_RATE = 0.03, 0.001
WARM_UP = 100  # steps


def rates(step: int) -> Tuple[float, float]:
    """The learning rates of rows and of dense parameters. They start small, because Adagrad
    accumulates all gradients, and the first ones are the largest."""
    share = min((step + 1) / WARM_UP, 1)
    return share * ROW_RATE, share * DENSE_RATE


Dense = Dict[str, tf.Tensor]


class Gradients(NamedTuple):
    loss: tf.Tensor
    rows: tf.Tensor
    dense: Dense


def dense_parameters(seed: int = 0) -> Dict[str, np.ndarray]:
    """The initial values of the dense parameters."""
    random = np.random.default_rng(seed)
    values = {"bias": np.zeros(1), "numbers": np.zeros((NUMBERS, 1))}
    for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        limit = np.sqrt(6 / (inputs + outputs))  # Glorot's
        values[f"kernel{layer}"] = random.uniform(-limit, limit, (inputs, outputs))
        values[f"bias{layer}"] = np.zeros(outputs)
    return {name: value.astype(np.float32) for name, value in values.items()}


def used_rows(rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    return tf.reshape(tf.gather(rows, tf.reshape(places, [-1])), [-1, COLUMNS, ROW])


def logits(dense: Dense, used: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    weights, factors = used[:, :, 0], used[:, :, 1:]
    linear = tf.reduce_sum(weights, 1) + tf.squeeze(numbers @ dense["numbers"], 1)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(factors, 1))
                                - tf.reduce_sum(tf.square(factors), 1), 1)
    hidden = tf.concat([tf.reshape(factors, [-1, COLUMNS * DIM]), numbers], 1)
    last = len(WIDTHS) - 2
    for layer in range(last + 1):
        hidden = hidden @ dense[f"kernel{layer}"] + dense[f"bias{layer}"]
        if layer < last:
            hidden = tf.nn.relu(hidden)
    return dense["bias"] + linear + pairs + tf.squeeze(hidden, 1)


def gradients(dense: Dense, used: tf.Tensor, numbers: tf.Tensor,
              labels: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor, Dense]:
    with tf.GradientTape() as tape:
        tape.watch([used, dense])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=logits(dense, used, numbers)))
    return (loss, *tape.gradient(loss, [used, dense]))


def make_step(xla: bool) -> Callable[..., Gradients]:
    """The step, as part of a tf.function. Except for the lookup, all its shapes are constant, so
    XLA can compile it once."""
    inner = tf.function(gradients, jit_compile=True) if xla else gradients

    def step(dense: Dense, rows: tf.Tensor, places: tf.Tensor, numbers: tf.Tensor,
             labels: tf.Tensor) -> Gradients:
        loss, of_used, of_dense = inner(dense, used_rows(rows, places), numbers, labels)
        of_rows = tf.math.unsorted_segment_sum(
            tf.reshape(of_used, [-1, ROW]), tf.reshape(places, [-1]), tf.shape(rows)[0])
        return Gradients(loss, of_rows, of_dense)

    return step


def signature() -> List[tf.TensorSpec]:
    """The types of the arguments of a step after the dense parameters."""
    return [tf.TensorSpec([None, ROW], tf.float32), tf.TensorSpec([None, COLUMNS], tf.int32),
            tf.TensorSpec([None, NUMBERS], tf.float32), tf.TensorSpec([None], tf.float32)]


def dense_signature() -> Dict[str, tf.TensorSpec]:
    return {name: tf.TensorSpec(value.shape, tf.float32)
            for name, value in dense_parameters().items()}
