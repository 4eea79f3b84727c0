"""A decorator of models."""


def declare_model_inputs(*names):
    """Records the names of the inputs of a Keras model in `_model_inputs` of its class or function,
    because a subclass of tf.keras.Model does not show them.

        @declare_model_inputs("wide_embeddings", "deep_embeddings")
        class WideAndDeep(tf.keras.Model): ...

    ValueError: there are no names, or one is not a string.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"declare_model_inputs needs the names of the inputs, not {names}")

    def declare(model):
        model._model_inputs = list(names)
        return model

    return declare
