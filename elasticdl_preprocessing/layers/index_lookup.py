import os

import tensorflow as tf

from elasticdl_preprocessing.layers.values import as_text, map_values


class IndexLookup(tf.keras.layers.Layer):
    """The position of a word in a vocabulary as int64.

    `vocabulary` is a list, or the path of a file with one word per line. Other words get one of the
    `num_oov_tokens` ids after the vocabulary, by their hash.
    ValueError: the vocabulary is empty or contains a word twice.
    """

    def __init__(self, vocabulary=None, num_oov_tokens=1, **kwargs):
        super().__init__(**kwargs)
        if num_oov_tokens < 1:
            raise ValueError(f"num_oov_tokens of an IndexLookup must be positive, not "
                             f"{num_oov_tokens}: a word that is not in the vocabulary needs an id")
        self.num_oov_tokens = num_oov_tokens
        # Copies of the layer do not need the file: it may not exist where they are made.
        self.vocabulary = read_vocabulary(vocabulary)
        self._table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(self.vocabulary), tf.range(len(self.vocabulary), dtype=tf.int64)),
            num_oov_tokens)

    def vocab_size(self):
        """The number of ids."""
        return len(self.vocabulary) + self.num_oov_tokens

    def call(self, inputs):
        return map_values(lambda values: self._table.lookup(as_text(values)), inputs)

    def get_config(self):
        return {**super().get_config(), "vocabulary": list(self.vocabulary),
                "num_oov_tokens": self.num_oov_tokens}


def read_vocabulary(vocabulary):
    """The words of a list or of a file."""
    if isinstance(vocabulary, (str, os.PathLike)):
        source = f"the vocabulary {vocabulary}"
        with tf.io.gfile.GFile(os.fspath(vocabulary)) as file:
            words = file.read().splitlines()
    else:
        source = "the vocabulary"
        words = [str(word) for word in vocabulary or ()]
    if not words:
        raise ValueError(f"{source} of an IndexLookup is empty")
    seen = set()
    for word in words:
        if word in seen:
            raise ValueError(f"{source} contains {word!r} twice")
        seen.add(word)
    return words
