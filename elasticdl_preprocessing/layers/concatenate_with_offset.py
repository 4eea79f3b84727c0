import tensorflow as tf

from elasticdl_preprocessing.layers.values import map_values


class ConcatenateWithOffset(tf.keras.layers.Layer):
    """Concatenates tensors of ids, after adding an offset to the ids of each.

    With the offsets [0, n], where n is the number of ids of the first tensor, ids of different
    tensors differ, and one embedding serves all. `offsets` None adds nothing. An input that is not
    a list is returned unchanged. All inputs must be of the same kind: dense, sparse or ragged.
    """

    def __init__(self, offsets, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.offsets = None if offsets is None else list(offsets)
        self.axis = axis

    def call(self, inputs):
        if not isinstance(inputs, (list, tuple)):
            return inputs
        shifted = self._shift(inputs)
        if all(isinstance(tensor, tf.SparseTensor) for tensor in shifted):
            return tf.sparse.concat(axis=self.axis, sp_inputs=shifted)
        return tf.concat(shifted, axis=self.axis)

    def _shift(self, inputs):
        kinds = {type(tensor) for tensor in inputs
                 if isinstance(tensor, (tf.SparseTensor, tf.RaggedTensor))}
        dense = any(not isinstance(tensor, (tf.SparseTensor, tf.RaggedTensor)) for tensor in inputs)
        if len(kinds) + dense > 1:
            raise ValueError("ConcatenateWithOffset got inputs of different kinds; convert them "
                             "with ToSparse or ToRagged")
        if self.offsets is None:
            return list(inputs)
        if len(inputs) != len(self.offsets):
            raise ValueError(f"ConcatenateWithOffset has {len(self.offsets)} offsets, but "
                             f"{len(inputs)} inputs")
        return [map_values(lambda values, offset=offset: values + tf.cast(offset, values.dtype),
                           tensor) for tensor, offset in zip(inputs, self.offsets)]

    def get_config(self):
        return {**super().get_config(), "offsets": self.offsets, "axis": self.axis}
