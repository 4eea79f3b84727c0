import tensorflow as tf

COMBINERS = ("mean", "sqrtn", "sum")


class SparseEmbedding(tf.keras.layers.Layer):
    """One vector per row: the embeddings of the row's ids, combined by mean, sum or sqrtn.

    The input is a matrix of ids. Negative ids are left out, and a row without ids becomes zeros. In
    a dense input 0 stands for a missing id.
    """

    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", combiner="mean",
                 embeddings_regularizer=None, embeddings_constraint=None, **kwargs):
        super().__init__(**kwargs)
        if combiner not in COMBINERS:
            raise ValueError(f"the combiner of a SparseEmbedding must be one of "
                             f"{', '.join(COMBINERS)}, not {combiner!r}")
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.combiner = combiner
        self.embeddings_initializer = tf.keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = tf.keras.regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = tf.keras.constraints.get(embeddings_constraint)

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings", shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer, regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint)
        super().build(input_shape)

    def call(self, inputs):
        if isinstance(inputs, tf.RaggedTensor):
            inputs = inputs.to_sparse()
        elif not isinstance(inputs, tf.SparseTensor):
            inputs = tf.sparse.from_dense(inputs)
        if inputs.dtype not in (tf.int32, tf.int64):
            inputs = tf.cast(inputs, tf.int64)
        return tf.nn.safe_embedding_lookup_sparse(
            self.embeddings, inputs, combiner=self.combiner)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "combiner": self.combiner,
            "embeddings_initializer": tf.keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": tf.keras.regularizers.serialize(self.embeddings_regularizer),
            "embeddings_constraint": tf.keras.constraints.serialize(self.embeddings_constraint),
        }
