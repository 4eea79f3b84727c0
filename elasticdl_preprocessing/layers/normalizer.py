import tensorflow as tf

from elasticdl_preprocessing.layers.values import map_values


class Normalizer(tf.keras.layers.Layer):
    """(x - subtractor) / divisor as float32.

    With the mean and the standard deviation of a column it standardizes; with the minimum and the
    range it scales to 0..1. ValueError: the divisor is 0.
    """

    def __init__(self, subtractor, divisor, **kwargs):
        super().__init__(**kwargs)
        if divisor == 0:
            raise ValueError("the divisor of a Normalizer must not be 0; a column with one value "
                             "needs no Normalizer")
        self.subtractor = subtractor
        self.divisor = divisor

    def call(self, inputs):
        return map_values(self._normalize, inputs)

    def _normalize(self, values):
        return (tf.cast(values, tf.float32) - self.subtractor) / self.divisor

    def get_config(self):
        return {**super().get_config(), "subtractor": self.subtractor, "divisor": self.divisor}
