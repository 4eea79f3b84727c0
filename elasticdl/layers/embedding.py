"""An embedding whose rows are on parameter servers."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from elasticdl.layers.lookup import look_up

_COMBINERS = ("sum", "mean", "sqrtn")


class Embedding(tf.keras.layers.Layer):
    """Like tf.keras.layers.Embedding, with the rows on the parameter servers of the job. A row is
    created when its id is first trained, so the ids need no known range.

    Inputs are integers. A dense tensor of shape (batch, ...) gives (batch, ..., output_dim). A
    SparseTensor or RaggedTensor of shape (batch, n) needs a `combiner` and gives
    (batch, output_dim): the rows of an example are summed ("sum"), averaged ("mean"), or divided by
    the square root of their number ("sqrtn"). Negative ids of such inputs are ignored, and an
    example without ids gives zeros. A RaggedTensor without a combiner gives a RaggedTensor.
    """

    def __init__(self, output_dim: int, input_dim: Optional[int] = None,
                 embeddings_initializer: Any = "uniform", mask_zero: bool = False,
                 input_length: Optional[int] = None, combiner: Optional[str] = None,
                 **kwargs: Any) -> None:
        """input_dim: ids are below this number; an id outside raises an error. None: any id.
        mask_zero: id 0 is padding, and is masked for the layers that follow.
        """
        super().__init__(**kwargs)
        if output_dim < 1:
            raise ValueError(f"output_dim is {output_dim}; it must be at least 1")
        if combiner is not None and combiner not in _COMBINERS:
            raise ValueError(f"combiner is {combiner!r}; it is one of {', '.join(_COMBINERS)}")
        self.output_dim = output_dim
        self.input_dim = input_dim
        self.embeddings_initializer = tf.keras.initializers.get(embeddings_initializer)
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        self.input_length = input_length
        self.combiner = combiner
        self._exported: Optional[Any] = None

    @property
    def table(self) -> str:
        """The name of its table at the parameter servers."""
        return f"{self.name}/embeddings:0"

    def set_exported_rows(self, exported: Any) -> None:
        """`exported(ids)` returns the rows from now on: the layer becomes part of a SavedModel."""
        self._exported = exported

    def call(self, inputs: Any) -> Any:
        if isinstance(inputs, tf.SparseTensor):
            if self.combiner is None:
                raise ValueError(f"layer {self.name!r} got a SparseTensor; give it a combiner "
                                 f"({', '.join(_COMBINERS)})")
            return self._combine(inputs.values, inputs.indices[:, 0], inputs.dense_shape[0])
        if isinstance(inputs, tf.RaggedTensor):
            if self.combiner is None:
                return inputs.with_flat_values(self._rows_of(inputs.flat_values))
            return self._combine(inputs.flat_values, inputs.value_rowids(), inputs.nrows())
        return self._rows_of(inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if not self.mask_zero or isinstance(inputs, (tf.SparseTensor, tf.RaggedTensor)):
            return None
        return tf.not_equal(inputs, 0)

    def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
        shape = tf.TensorShape(input_shape)
        return shape[:1].concatenate(self.output_dim) if self.combiner else shape.concatenate(
            self.output_dim)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_dim": self.output_dim, "input_dim": self.input_dim,
                "embeddings_initializer": tf.keras.initializers.serialize(
                    self.embeddings_initializer),
                "mask_zero": self.mask_zero, "input_length": self.input_length,
                "combiner": self.combiner}

    def _rows_of(self, ids: tf.Tensor) -> tf.Tensor:
        ids = tf.convert_to_tensor(ids)
        rows = self._look_up(tf.reshape(tf.cast(ids, tf.int64), [-1]))
        rows = tf.reshape(rows, tf.concat([tf.shape(ids), [self.output_dim]], axis=0))
        rows.set_shape(ids.shape.concatenate(self.output_dim))
        return rows

    def _combine(self, ids: tf.Tensor, examples: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        ids = tf.cast(ids, tf.int64)
        valid = ids >= 0
        ids, examples = tf.boolean_mask(ids, valid), tf.boolean_mask(examples, valid)
        rows = self._look_up(ids)
        total = tf.math.unsorted_segment_sum(rows, examples, count)
        if self.combiner != "sum":
            number = tf.math.unsorted_segment_sum(tf.ones_like(examples, tf.float32), examples,
                                                  count)
            divisor = number if self.combiner == "mean" else tf.sqrt(number)
            total = total / tf.maximum(divisor, 1.0)[:, tf.newaxis]
        total.set_shape([None, self.output_dim])
        return total

    def _look_up(self, ids: tf.Tensor) -> tf.Tensor:
        if self.input_dim is not None:
            tf.debugging.assert_less(ids, tf.constant(self.input_dim, tf.int64),
                                     f"layer {self.name!r}: an id is not below input_dim")
        if self._exported is not None:
            return self._exported(ids)
        return look_up(self.table, self.output_dim, ids)
