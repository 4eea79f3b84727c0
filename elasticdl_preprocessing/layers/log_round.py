import math

import tensorflow as tf

from elasticdl_preprocessing.layers.values import keep_in_range, map_values


class LogRound(tf.keras.layers.Layer):
    """The logarithm of a number, rounded to an int64 in 0..num_bins-1.

    The base is e if it is None. `default_value` replaces results outside of the range and the
    logarithms of numbers that are not positive.
    """

    def __init__(self, num_bins, default_value=0, base=None, **kwargs):
        super().__init__(**kwargs)
        self.num_bins = num_bins
        self.default_value = default_value
        self.base = base

    def call(self, inputs):
        return map_values(self._round, inputs)

    def _round(self, values):
        logarithm = tf.math.log(tf.cast(values, tf.float32))
        if self.base is not None:
            logarithm /= math.log(self.base)
        return keep_in_range(logarithm, self.num_bins, self.default_value)

    def get_config(self):
        return {**super().get_config(), "num_bins": self.num_bins,
                "default_value": self.default_value, "base": self.base}
