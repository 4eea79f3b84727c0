import tensorflow as tf

from elasticdl_preprocessing.layers.values import map_values


class Discretization(tf.keras.layers.Layer):
    """The bucket of a number as int64: how many boundaries are at most the number.

    The boundaries [0, 10] make the buckets (-inf, 0), [0, 10) and [10, inf).
    ValueError: the boundaries do not rise.
    """

    def __init__(self, bins, **kwargs):
        super().__init__(**kwargs)
        self.bins = [float(boundary) for boundary in bins]
        if sorted(set(self.bins)) != self.bins:
            raise ValueError(f"the boundaries of a Discretization must rise: {self.bins}")

    def num_bins(self):
        """The number of buckets."""
        return len(self.bins) + 1

    def call(self, inputs):
        return map_values(self._bucket, inputs)

    def _bucket(self, values):
        return tf.cast(tf.raw_ops.Bucketize(input=values, boundaries=self.bins), tf.int64)

    def get_config(self):
        return {**super().get_config(), "bins": self.bins}
