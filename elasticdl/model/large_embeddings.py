"""Moves large Keras embeddings to the parameter servers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from elasticdl.feature_column import EmbeddingColumn
from elasticdl.layers.embedding import Embedding

# As in the original ElasticDL: a larger table is not pulled whole in every step.
_LARGEST_DENSE_BYTES = 2 << 20


class MovedEmbedding(Embedding):
    """Stands for a Keras Embedding whose variable is too large to pull it in every step."""


def move_large_embeddings(model: tf.keras.Model) -> tf.keras.Model:
    """Returns the model with a `MovedEmbedding` for each Keras Embedding above 2 MiB. A functional
    or Sequential model is cloned, and `model` itself stays as it is, for the export. In a
    subclassed model the layers are replaced; `put_back` reverses that."""
    if not any(_is_large(layer) for layer in _layers_of(model)):
        return model
    if _is_functional(model):
        return tf.keras.models.clone_model(model, clone_function=_clone_layer)
    for owner, attribute, layer in _attributes_of(model):
        if _is_large(layer):
            setattr(owner, attribute, _moved(layer))
    return model


def _clone_layer(layer: tf.keras.layers.Layer) -> tf.keras.layers.Layer:
    return _moved(layer) if _is_large(layer) else layer.__class__.from_config(layer.get_config())


def _is_large(layer: Any) -> bool:
    return (type(layer) is tf.keras.layers.Embedding
            and 4 * layer.input_dim * layer.output_dim > _LARGEST_DENSE_BYTES)


def _moved(layer: tf.keras.layers.Embedding) -> MovedEmbedding:
    moved = MovedEmbedding(layer.output_dim, input_dim=layer.input_dim,
                           embeddings_initializer=layer.embeddings_initializer,
                           mask_zero=layer.mask_zero, input_length=layer.input_length,
                           name=layer.name)
    moved.keras_layer = _Untracked(layer)
    return moved


class _Untracked:
    """Keeps a layer without making it a sublayer, whose variables would be trained."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer


def _is_functional(model: tf.keras.Model) -> bool:
    return isinstance(model, tf.keras.Sequential) or getattr(model, "_is_graph_network", False)


def _layers_of(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False, recursive=True))


def _attributes_of(owner: Any) -> list[tuple[Any, str, Any]]:
    """(owner, attribute, layer) of all layers that are attributes of a subclassed model or of its
    sublayers."""
    found = []
    for attribute, value in list(vars(owner).items()):
        if isinstance(value, tf.keras.layers.Layer) and not attribute.startswith("_"):
            found.append((owner, attribute, value))
            found.extend(_attributes_of(value))
    return found


def embedding_layers(model: tf.keras.Model) -> list[Embedding]:
    """All layers of a model whose rows are on the parameter servers, also those of feature
    columns."""
    found = []
    for layer in _layers_of(model):
        if isinstance(layer, Embedding):
            found.append(layer)
        for column in getattr(layer, "_feature_columns", ()):
            if isinstance(column, EmbeddingColumn):
                found.append(column.layer)
    return found


def put_back(model: tf.keras.Model, moved: MovedEmbedding, rows: Any) -> None:
    """Makes the Keras Embedding that `moved` stands for part of `model` again, with these rows."""
    layer = moved.keras_layer.layer
    if not layer.built:
        layer.build(None)
    layer.embeddings.assign(rows)
    for owner, attribute, value in _attributes_of(model):
        if value is moved:
            setattr(owner, attribute, layer)
