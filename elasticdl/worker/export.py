"""Writes the trained model as a SavedModel that plain TensorFlow loads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.layers.embedding import Embedding
from elasticdl.model.large_embeddings import MovedEmbedding, embedding_layers, put_back
from elasticdl.model.ps_model import PsModel
from elasticdl.parameter_client import ParameterClient

_ROWS_AT_ONCE = 1 << 16


class RowsInModel(tf.Module):
    """Rows of a table inside of a SavedModel. An id without a row gives zeros."""

    def __init__(self, ids: Optional[np.ndarray], rows: np.ndarray, name: str) -> None:
        """ids: of the rows. None: the id of a row is its number."""
        super().__init__()
        self._rows = tf.Variable(np.vstack([rows, np.zeros((1, rows.shape[1]), np.float32)]),
                                 trainable=False, name=name)
        self._none = len(rows)  # the number of the row of zeros
        self._places: Optional[Any] = None
        if ids is not None:
            places = tf.range(len(ids), dtype=tf.int64)
            self._places = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(tf.constant(ids, tf.int64), places),
                default_value=self._none)

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        none = tf.constant(self._none, tf.int64)
        if self._places is not None:
            places = self._places.lookup(ids)
        else:
            places = tf.where((ids >= 0) & (ids < none), ids, none)
        return tf.gather(self._rows, places)


def export_model(model: PsModel, keras_model: tf.keras.Model, client: ParameterClient, output: str,
                 ids_of_table: Callable[[str], np.ndarray]) -> None:
    """Writes `keras_model`, the model as the user made it, with the parameters of the servers.

    The folder `output` appears when it is complete; an older one is replaced.
    ids_of_table(table): the ids of all rows of a table, for layers without input_dim.
    """
    values = client.pull_tensors(model.tensors)
    model.assign(values)
    if keras_model is not model.model:
        _assign_by_name(keras_model, values)
    for layer in embedding_layers(model.model):
        if isinstance(layer, MovedEmbedding):
            rows = _pull_rows(client, layer.table, np.arange(layer.input_dim, dtype=np.int64),
                              layer.output_dim)
            put_back(keras_model, layer, rows)
        else:
            layer.set_exported_rows(_exported(layer, client, ids_of_table))
    _save(keras_model, output, _signature(keras_model, model.features_spec))
    logger.info("exported the model to %s", output)


def _exported(layer: Embedding, client: ParameterClient,
              ids_of_table: Callable[[str], np.ndarray]) -> RowsInModel:
    known = layer.input_dim is not None
    ids = np.arange(layer.input_dim, dtype=np.int64) if known else ids_of_table(layer.table)
    rows = _pull_rows(client, layer.table, ids, layer.output_dim)
    return RowsInModel(None if known else ids, rows, f"{layer.name}/embeddings")


def _pull_rows(client: ParameterClient, table: str, ids: np.ndarray, dim: int) -> np.ndarray:
    rows = np.empty((len(ids), dim), np.float32)
    for begin in range(0, len(ids), _ROWS_AT_ONCE):
        part = np.ascontiguousarray(ids[begin:begin + _ROWS_AT_ONCE])
        rows[begin:begin + len(part)] = client.pull(table, part, create=False)
    return rows


def _assign_by_name(model: tf.keras.Model, values: dict[str, np.ndarray]) -> None:
    for variable in model.variables:
        if variable.name in values:
            variable.assign(values[variable.name].reshape(variable.shape))


def _signature(model: tf.keras.Model, features: Any) -> Optional[Any]:
    """The serving signature of a model whose outputs are a dict: Keras would name them after
    layers. None: that of Keras."""
    names_outputs = isinstance(getattr(model, "output", None), dict)
    if not names_outputs or not isinstance(features, dict) or not all(
            isinstance(spec, tf.TensorSpec) for spec in features.values()):
        return None

    @tf.function
    def serve(**given: tf.Tensor) -> Any:
        return model(given, training=False)

    return serve.get_concrete_function(**{
        name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in features.items()})


def _save(model: tf.keras.Model, output: str, signature: Optional[Any]) -> None:
    output = os.path.abspath(output)
    temporary = f"{output}.{os.getpid()}.tmp"
    os.makedirs(os.path.dirname(output), exist_ok=True)
    shutil.rmtree(temporary, ignore_errors=True)
    model.save(temporary, save_format="tf", include_optimizer=False, signatures=signature)
    old = f"{output}.{os.getpid()}.old"
    if os.path.isdir(output):
        os.rename(output, old)
    os.rename(temporary, output)
    shutil.rmtree(old, ignore_errors=True)
