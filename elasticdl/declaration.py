"""Turns the arguments of ParameterClient.declare into the JSON of docs/formats/parameters.md."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elasticdl.arrays import Floats, checked_array
from elasticdl.optimizers import check_optimizer


class Declaration:
    """The tables and tensors of a client, checked. Tables and tensors are numbered in their order.
    """

    def __init__(self, tables: Sequence[Mapping[str, Any]], tensors: Sequence[Mapping[str, Any]],
                 seed: int, consistency: Mapping[str, Any]) -> None:
        self._tables = [_table_of(table) for table in _specs(tables, "tables")]
        self._tensors: list[dict[str, Any]] = []
        self.values: list[Floats] = []  # of the tensors
        for tensor in _specs(tensors, "tensors"):
            described, value = _tensor_of(tensor)
            self._tensors.append(described)
            self.values.append(value)
        for kind, specs in (("table", self._tables), ("tensor", self._tensors)):
            names = [spec["name"] for spec in specs]
            if len(set(names)) != len(names):
                raise ValueError(f"two {kind}s have the same name: {sorted(names)}")
        try:
            self.text = json.dumps(
                {"seed": _integer(seed, "seed"), "tables": self._tables, "tensors": self._tensors,
                 "consistency": consistency}, allow_nan=False, default=_plain)
        except ValueError as error:
            raise ValueError(f"the declaration contains NaN or infinity: {error}") from None

    def dims(self) -> list[int]:
        """The dim of each table."""
        return [table["dim"] for table in self._tables]

    def sizes(self) -> list[tuple[str, int]]:
        """Name and size of each tensor."""
        return [(spec["name"], spec["size"]) for spec in self._tensors]

    def table_numbers(self) -> dict[str, tuple[int, int]]:
        """{name: (number, dim)} of the tables."""
        return {table["name"]: (number, table["dim"])
                for number, table in enumerate(self._tables)}

    def tensor_numbers(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        """{name: (number, shape)} of the tensors."""
        return {spec["name"]: (number, value.shape)
                for number, (spec, value) in enumerate(zip(self._tensors, self.values))}


def _specs(given: Sequence[Mapping[str, Any]], what: str) -> list[dict[str, Any]]:
    if isinstance(given, (Mapping, str)):
        raise TypeError(f"{what} is a {type(given).__name__}; it must be a list of dicts, such as "
                        f'[{{"name": "users", ...}}]')
    specs = list(given)
    for spec in specs:
        if not isinstance(spec, Mapping):
            raise TypeError(f"{what} contains a {type(spec).__name__}; it must be a list of dicts")
        for field in spec:
            if not isinstance(field, str):
                raise TypeError(f"{what}: field {field!r} is not a string")
    return [dict(spec) for spec in specs]


def _required(spec: Mapping[str, Any], field: str, kind: str) -> Any:
    try:
        return spec[field]
    except KeyError:
        raise ValueError(f"a {kind} has no {field!r}: {spec}") from None


def _integer(value: Any, what: str) -> int:
    """Converts an integer of any type, also of NumPy's."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; it must be an integer") from None


def _plain(value: Any) -> Any:
    """Converts a NumPy number for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"the declaration contains {value!r}, a {type(value).__name__}; it may contain "
                    "dicts, lists, strings, numbers and booleans")


def _name_of(spec: Mapping[str, Any], kind: str) -> str:
    name = _required(spec, "name", kind)
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} is {name!r}; it must be a string")
    return name


def _table_of(table: dict[str, Any]) -> dict[str, Any]:
    """What is declared of a table."""
    name = _name_of(table, "table")
    described = {**table, "dim": _integer(_required(table, "dim", "table"),
                                          f"dim of table {name!r}")}
    check_optimizer(table.get("optimizer"), f"table {name!r}")
    return described


def _tensor_of(tensor: dict[str, Any]) -> tuple[dict[str, Any], Floats]:
    """What is declared of a tensor, and its value."""
    name = _name_of(tensor, "tensor")
    value = checked_array(_required(tensor, "value", "tensor"), np.float32,
                          f"value of tensor {name!r}")
    unknown = set(tensor) - {"name", "value", "optimizer", "trainable"}
    if unknown:
        raise ValueError(f"tensor {name!r} has {sorted(unknown)}; it may have name, value, "
                         "optimizer, trainable")
    text: dict[str, Any] = {"name": name, "size": value.size}
    if tensor.get("trainable", True):
        text["optimizer"] = tensor.get("optimizer", {"name": "SGD"})
        check_optimizer(text["optimizer"], f"tensor {name!r}")
    elif "optimizer" in tensor:
        raise ValueError(f"tensor {name!r} has an optimizer and trainable=False")
    return text, value
