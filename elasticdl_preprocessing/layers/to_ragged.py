import tensorflow as tf

from elasticdl_preprocessing.layers.values import default_ignored


class ToRagged(tf.keras.layers.Layer):
    """A RaggedTensor of the values of each row, without those that are equal to `ignore_value`.

    Texts are split at `sep`, so the row ["1,2", "", "3"] becomes ["1", "2", "3"]; an empty `sep`
    leaves them whole. `ignore_value` None stands for "" in texts and -1 in integers.
    """

    def __init__(self, sep=",", ignore_value=None, **kwargs):
        super().__init__(**kwargs)
        self.sep = sep
        self.ignore_value = ignore_value

    def call(self, inputs):
        if isinstance(inputs, tf.SparseTensor):
            # Unlike RaggedTensor.from_sparse, this takes rows with gaps.
            inputs = tf.RaggedTensor.from_value_rowids(
                inputs.values, inputs.indices[:, 0], nrows=inputs.dense_shape[0])
        elif not isinstance(inputs, tf.RaggedTensor):
            inputs = tf.RaggedTensor.from_tensor(inputs)
        if inputs.dtype == tf.string and self.sep:
            inputs = tf.strings.split(inputs, sep=self.sep).merge_dims(1, 2)
        ignored = self.ignore_value
        if ignored is None:
            ignored = default_ignored(inputs.dtype)
        if ignored is None:
            return inputs
        return tf.ragged.boolean_mask(inputs, tf.not_equal(inputs, tf.cast(ignored, inputs.dtype)))

    def get_config(self):
        return {**super().get_config(), "sep": self.sep, "ignore_value": self.ignore_value}
