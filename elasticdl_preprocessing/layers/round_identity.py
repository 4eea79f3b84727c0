import tensorflow as tf

from elasticdl_preprocessing.layers.values import keep_in_range, map_values


class RoundIdentity(tf.keras.layers.Layer):
    """A number, rounded to an int64 in 0..num_buckets-1; halves are rounded to the even number.

    `default_value` replaces numbers outside of the range.
    """

    def __init__(self, num_buckets, default_value=0, **kwargs):
        super().__init__(**kwargs)
        self.num_buckets = num_buckets
        self.default_value = default_value

    def call(self, inputs):
        return map_values(self._round, inputs)

    def _round(self, values):
        # float64 holds every id below 2^53; float32 would change ids above 2^24.
        return keep_in_range(tf.cast(values, tf.float64), self.num_buckets, self.default_value)

    def get_config(self):
        return {**super().get_config(), "num_buckets": self.num_buckets,
                "default_value": self.default_value}
