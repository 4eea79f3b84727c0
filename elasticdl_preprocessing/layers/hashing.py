import tensorflow as tf

from elasticdl_preprocessing.layers.values import as_text, map_values


class Hashing(tf.keras.layers.Layer):
    """The bucket of a text as int64: its 64-bit FarmHash fingerprint modulo num_bins.

    Integers are hashed as decimal numbers. The buckets are the same on every machine.
    """

    def __init__(self, num_bins, **kwargs):
        super().__init__(**kwargs)
        if num_bins is None or num_bins <= 0:
            raise ValueError(f"num_bins of a Hashing must be positive, not {num_bins}")
        self.num_bins = num_bins

    def call(self, inputs):
        return map_values(self._hash, inputs)

    def _hash(self, values):
        return tf.strings.to_hash_bucket_fast(as_text(values), self.num_bins)

    def get_config(self):
        return {**super().get_config(), "num_bins": self.num_bins}
