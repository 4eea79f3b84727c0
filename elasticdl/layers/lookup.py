"""How an embedding layer gets its rows: during a step they are inputs of the compiled function.

A worker knows the ids of a batch before its step. It runs the model once with `CollectIds`, which
returns the ids and no rows; TensorFlow prunes everything from that graph that the ids do not need.
It pulls the rows of these ids, and runs the step with `PulledRows`. So the step waits for no
server, and its gradients with respect to the rows are pushed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf

# Maps a table and its ids to rows; used where no lookup is active (model.predict() by hand).
PullFunction = Callable[[str, np.ndarray], np.ndarray]

_active = threading.local()
_pull_function: Optional[PullFunction] = None


class CollectIds:
    """Collects the ids that the model looks up, by table, in the order of the lookups."""

    def __init__(self) -> None:
        self.ids: dict[str, list[tf.Tensor]] = {}

    def rows(self, table: str, dim: int, ids: tf.Tensor) -> tf.Tensor:
        self.ids.setdefault(table, []).append(ids)
        return tf.zeros(tf.stack([tf.size(ids), dim]))


class PulledRows:
    """Looks ids up in rows that were pulled: {table: (ids, rows, inverse)}, where rows[inverse] are
    the rows of all lookups of the table, one after the other."""

    def __init__(self, pulled: Mapping[str, tuple[tf.Tensor, tf.Tensor, tf.Tensor]]) -> None:
        self._pulled = pulled
        self._begin: dict[str, tf.Tensor] = {}

    def rows(self, table: str, dim: int, ids: tf.Tensor) -> tf.Tensor:
        pulled_ids, rows, inverse = self._pulled[table]
        begin = self._begin.get(table, tf.constant(0))
        self._begin[table] = begin + tf.size(ids)
        places = inverse[begin:begin + tf.size(ids)]
        same = tf.debugging.assert_equal(
            tf.gather(pulled_ids, places), ids,
            f"the ids of table {table!r} depend on parameters of the model or on random numbers; "
            "they must be a function of the features")
        with tf.control_dependencies([same] if same is not None else []):
            return tf.gather(rows, places)


@contextlib.contextmanager
def active_lookup(lookup: Any) -> Iterator[None]:
    """Embedding layers that are called in this thread use `lookup`."""
    before = getattr(_active, "lookup", None)
    _active.lookup = lookup
    try:
        yield
    finally:
        _active.lookup = before


def set_pull_function(pull: Optional[PullFunction]) -> None:
    """Sets the function that is called where no lookup is active."""
    global _pull_function
    _pull_function = pull


def look_up(table: str, dim: int, ids: tf.Tensor) -> tf.Tensor:
    """The rows of `ids`, a vector of int64, as a matrix."""
    lookup = getattr(_active, "lookup", None)
    if lookup is not None:
        return lookup.rows(table, dim, ids)
    rows = tf.py_function(lambda values: _pull(table, values.numpy()), [ids], tf.float32)
    rows.set_shape([None, dim])
    return rows


def _pull(table: str, ids: np.ndarray) -> np.ndarray:
    if _pull_function is None:
        raise RuntimeError(
            f"the rows of table {table!r} are on parameter servers, and this process is not "
            "connected to any: train the model with `elasticdl train --model_def=...`")
    return _pull_function(table, ids)
