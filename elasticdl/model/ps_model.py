"""A Keras model with its parameters on parameter servers: declaration and compiled step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf

from elasticdl.layers.lookup import CollectIds, PulledRows, active_lookup
from elasticdl.model.errors import ModelError
from elasticdl.model.initializer_settings import initializer_settings
from elasticdl.model.large_embeddings import embedding_layers
from elasticdl.model.optimizer_settings import OptimizerSettings

# {table: (ids, rows, inverse)} of the rows that a batch needs: rows[inverse] are in the order of
# the batch's ids.
Rows = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclasses.dataclass
class Gradients:
    """The result of a step, as the arguments of ParameterClient.push."""

    loss: float
    tables: dict[str, tuple[np.ndarray, np.ndarray]]
    tensors: dict[str, np.ndarray]


class PsModel:
    """Computes gradients and outputs of a Keras model with parameters that the caller pulled.

    Dense variables of the model are tensors of the servers, with the names of the variables. The
    change of a variable that is not trained (a moving average) is pushed as its gradient. The rows
    of `Embedding` layers are tables. Variables that are not floating-point numbers stay in the
    worker. Use it from one thread.
    """

    def __init__(self, model: tf.keras.Model, loss: Optional[Callable[..., Any]],
                 optimizer: Optional[Any], where: str, updates_locally: bool = False) -> None:
        """where: file of the model, for errors. updates_locally: a step also changes the worker's
        own variables with the optimizer, because it does not pull them in every step."""
        self.model = model
        self._loss = loss
        self._where = where
        self.optimizer = optimizer
        self.settings = None if optimizer is None else OptimizerSettings(
            optimizer, f"{where}: optimizer()")
        self._updates_locally = updates_locally
        self._layers = embedding_layers(model)
        self.tables = list(dict.fromkeys(layer.table for layer in self._layers))
        self._dims = {layer.table: layer.output_dim for layer in self._layers}
        self._trained: list[tf.Variable] = []
        self._kept: list[tf.Variable] = []
        self.tensors: list[str] = []
        self.features_spec: Any = None  # of the mode that was compiled first
        self._functions: dict[Any, Callable[..., Any]] = {}

    # --- declaration ---

    def build(self, features: Any) -> None:
        """Creates the variables of the model. `features`: of any batch; a subclassed model creates
        its variables in its first call."""
        with active_lookup(CollectIds()):
            try:
                self.model(features, training=False)
            except Exception as error:
                raise ModelError(f"{self._where}: the model cannot be called with the features "
                                 f"that feed() returned: {_first_line(error)}") from error
        self._trained = [v for v in self.model.trainable_variables if v.dtype.is_floating]
        self._kept = [v for v in self.model.non_trainable_variables if v.dtype.is_floating]
        self.tensors = _unique_names([*self._trained, *self._kept])
        self._functions["assign"] = tf.function(self._assign,
                                                input_signature=[self._tensor_specs()])

    def declaration(self, seed: int) -> dict[str, Any]:
        """The arguments of ParameterClient.declare."""
        tables = {}
        for layer in self._layers:
            where = f"{self._where}: layer {layer.name!r}"
            tables[layer.table] = {
                "name": layer.table, "dim": layer.output_dim,
                "initializer": initializer_settings(layer.embeddings_initializer, layer.input_dim,
                                                    layer.output_dim, where),
                **({"optimizer": self.settings.declared_for()} if self.settings else {})}
        tensors: list[dict[str, Any]] = []
        for name, variable in zip(self.tensors, [*self._trained, *self._kept]):
            tensor: dict[str, Any] = {"name": name, "value": _as_floats(variable.numpy())}
            if len(tensors) >= len(self._trained):
                tensor["trainable"] = False
            elif self.settings is not None:
                tensor["optimizer"] = self.settings.declared_for(variable)
            tensors.append(tensor)
        return {"tables": list(tables.values()), "tensors": tensors, "seed": seed}

    def compile(self, mode: str, features_spec: Any, labels_spec: Any) -> None:
        """Compiles the functions for the batches of a mode, whose shapes and types differ between
        modes. Call this after `build`."""
        self.features_spec = self.features_spec or features_spec
        rows = [(tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, self._dims[table]]),
                 tf.TensorSpec([None], tf.int32)) for table in self.tables]
        self._functions["ids", mode] = tf.function(self._ids, input_signature=[features_spec])
        if mode == "training":
            self._functions["step"] = tf.function(
                self._step, input_signature=[features_spec, labels_spec, rows])
            self._functions["assign and step"] = tf.function(
                self._assign_and_step,
                input_signature=[self._tensor_specs(), features_spec, labels_spec, rows])
        else:
            self._functions["forward", mode] = tf.function(
                self._forward, input_signature=[features_spec, rows])

    # --- computation ---

    def ids_of(self, features: Any, mode: str) -> dict[str, np.ndarray]:
        """The ids that a batch looks up, by table."""
        if not self.tables:
            return {}
        return {table: ids.numpy()
                for table, ids in zip(self.tables, self._functions["ids", mode](features))}

    def assign(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Sets the dense variables to pulled values."""
        if self.tensors:
            self._functions["assign"]([tensors[name] for name in self.tensors])

    def step(self, features: Any, labels: Any, rows: Rows,
             tensors: Optional[Mapping[str, np.ndarray]] = None) -> Gradients:
        """Computes the gradients of a batch. `tensors`: pulled values, to which the dense variables
        are set before; without them, they have the values that they had."""
        arguments = features, labels, self._inputs(rows)
        if tensors:
            values = [tensors[name] for name in self.tensors]
            loss, gradients, changes = self._functions["assign and step"](values, *arguments)
        else:
            loss, gradients, changes = self._functions["step"](*arguments)
        tables, tensors = {}, {}
        for table, gradient in zip(self.tables, gradients[len(self._trained):]):
            if gradient is not None:
                tables[table] = rows[table][0], gradient.numpy()
        for name, gradient in zip(self.tensors, [*gradients[:len(self._trained)], *changes]):
            if gradient is not None:
                tensors[name] = gradient.numpy()
        return Gradients(float(loss), tables, tensors)

    def forward(self, features: Any, rows: Rows, mode: str) -> Any:
        """The outputs of the model for a batch, without training."""
        return self._functions["forward", mode](features, self._inputs(rows))

    def values(self) -> dict[str, np.ndarray]:
        """The dense variables as the worker has them."""
        return {name: _as_floats(variable.numpy())
                for name, variable in zip(self.tensors, [*self._trained, *self._kept])}

    def _inputs(self, rows: Rows) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return [tuple(rows[table]) for table in self.tables]

    def _ids(self, features: Any) -> list[tf.Tensor]:
        collected = CollectIds()
        with active_lookup(collected):
            self.model(features, training=False)
        nothing = tf.zeros([0], tf.int64)
        return [tf.concat(collected.ids.get(table, [nothing]), 0) for table in self.tables]

    def _assign(self, values: Sequence[tf.Tensor]) -> None:
        for variable, value in zip([*self._trained, *self._kept], values):
            variable.assign(tf.cast(value, variable.dtype))

    def _assign_and_step(self, values: Sequence[tf.Tensor], features: Any, labels: Any,
                         rows: Sequence[Any]) -> tuple[Any, Any, Any]:
        self._assign(values)
        return self._step(features, labels, rows)

    def _tensor_specs(self) -> list[tf.TensorSpec]:
        return [tf.TensorSpec(v.shape, tf.float32) for v in [*self._trained, *self._kept]]

    def _forward(self, features: Any, rows: Sequence[Any]) -> Any:
        with active_lookup(PulledRows(dict(zip(self.tables, rows)))):
            return self.model(features, training=False)

    def _step(self, features: Any, labels: Any, rows: Sequence[Any]) -> tuple[Any, Any, Any]:
        before = [tf.identity(variable) for variable in self._kept]
        with tf.GradientTape() as tape:
            inputs = [row for _, row, _ in rows]
            tape.watch(inputs)
            with active_lookup(PulledRows(dict(zip(self.tables, rows)))):
                outputs = self.model(features, training=True)
            assert self._loss is not None
            loss = self._loss(labels, outputs)
            if loss.shape.rank != 0:  # a loss for each example
                loss = tf.reduce_mean(loss)
            if self.model.losses:
                loss += tf.cast(tf.add_n(self.model.losses), loss.dtype)
        gradients = tape.gradient(loss, [*self._trained, *inputs])
        gradients = [None if g is None else tf.cast(tf.convert_to_tensor(g), tf.float32)
                     for g in gradients]
        assert self.settings is not None
        if self.settings.clipvalue is not None:
            limit = self.settings.clipvalue
            gradients = [None if g is None else tf.clip_by_value(g, -limit, limit)
                         for g in gradients]
        if self._updates_locally:
            dense = [(g, v) for g, v in zip(gradients, self._trained) if g is not None]
            self.optimizer.apply_gradients(dense)
        changes = [tf.cast(variable - value, tf.float32)
                   for variable, value in zip(self._kept, before)]
        return loss, gradients, changes


def _as_floats(value: Any) -> np.ndarray:
    return np.ascontiguousarray(value, dtype=np.float32)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:500] if lines else type(error).__name__


def _unique_names(variables: Sequence[tf.Variable]) -> list[str]:
    """The names of the variables. Two variables of a subclassed model may have the same name."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for variable in variables:
        count = seen[variable.name] = seen.get(variable.name, 0) + 1
        names.append(variable.name if count == 1 else f"{variable.name}#{count}")
    return names
