import tensorflow as tf

from elasticdl_preprocessing.layers.values import default_ignored


class ToSparse(tf.keras.layers.Layer):
    """A SparseTensor without the values that are equal to `ignore_value`.

    `ignore_value` None stands for "" in texts, -1 in integers and 0.0 in floats.
    """

    def __init__(self, ignore_value=None, **kwargs):
        super().__init__(**kwargs)
        self.ignore_value = ignore_value

    def call(self, inputs):
        ignored = self.ignore_value
        if ignored is None:
            ignored = default_ignored(inputs.dtype)
        ignored = tf.cast(0.0 if ignored is None else ignored, inputs.dtype)
        if isinstance(inputs, tf.RaggedTensor):
            inputs = inputs.to_sparse()
        if isinstance(inputs, tf.SparseTensor):
            return tf.sparse.retain(inputs, tf.not_equal(inputs.values, ignored))
        indices = tf.where(tf.not_equal(inputs, ignored))
        return tf.SparseTensor(
            indices, tf.gather_nd(inputs, indices), tf.shape(inputs, out_type=tf.int64))

    def get_config(self):
        return {**super().get_config(), "ignore_value": self.ignore_value}
