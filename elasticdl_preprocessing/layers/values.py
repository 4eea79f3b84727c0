"""Functions on the values of dense, sparse and ragged tensors."""

from typing import Any, Callable

import tensorflow as tf


def map_values(function: Callable[[tf.Tensor], tf.Tensor], inputs: Any) -> Any:
    """Applies `function` to the values of a tensor and keeps its kind and its shape."""
    if isinstance(inputs, tf.SparseTensor):
        return tf.SparseTensor(inputs.indices, function(inputs.values), inputs.dense_shape)
    if isinstance(inputs, tf.RaggedTensor):
        return tf.ragged.map_flat_values(function, inputs)
    return function(tf.convert_to_tensor(inputs))


def as_text(values: tf.Tensor) -> tf.Tensor:
    """Integers as decimal numbers; texts unchanged."""
    if values.dtype == tf.string:
        return values
    if not values.dtype.is_integer:
        raise ValueError(f"texts or integers are expected, but the input is {values.dtype.name}")
    return tf.strings.as_string(values)


def keep_in_range(numbers: tf.Tensor, end: int, default: int) -> tf.Tensor:
    """Rounds floats to int64, halves to the even number. `default` replaces what is not in
    [0, end), infinities and NaN included."""
    rounded = tf.round(numbers)
    inside = tf.logical_and(rounded >= 0, rounded < end)
    # Casting an infinity or a NaN is undefined, so the default is chosen before.
    return tf.cast(tf.where(inside, rounded, tf.cast(default, rounded.dtype)), tf.int64)


def default_ignored(dtype: tf.DType) -> Any:
    """The value that stands for a missing one: "" or -1. None: the type has no such value."""
    if dtype == tf.string:
        return ""
    return -1 if dtype.is_integer else None
