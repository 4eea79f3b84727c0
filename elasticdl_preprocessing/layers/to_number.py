import tensorflow as tf

from elasticdl_preprocessing.layers.values import map_values


class ToNumber(tf.keras.layers.Layer):
    """Numbers of type `out_type`. Texts are parsed, and an empty text is `default_value`; numbers
    of another type are cast.

    A text that is not a number is an InvalidArgumentError of TensorFlow.
    """

    def __init__(self, out_type, default_value, **kwargs):
        super().__init__(**kwargs)
        self.out_type = tf.as_dtype(out_type)
        self.default_value = default_value

    def call(self, inputs):
        return map_values(self._number, inputs)

    def _number(self, values):
        if values.dtype != tf.string:
            return tf.cast(values, self.out_type)
        values = tf.where(tf.equal(values, ""), str(self.default_value), values)
        return tf.strings.to_number(values, self.out_type)

    def get_config(self):
        return {**super().get_config(), "out_type": self.out_type.name,
                "default_value": self.default_value}
