"""Types and checks of the arrays that programs pass to a ParameterClient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_T = TypeVar("_T")


def checked_array(array: Any, dtype: type, what: str) -> npt.NDArray[Any]:
    """Returns the array itself; the client reads its memory without a copy."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what}: expected a NumPy array, found {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{what}: expected dtype {np.dtype(dtype)}, found {array.dtype}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{what}: the array is not contiguous; use np.ascontiguousarray()")
    return array


def checked_mapping(given: Mapping[str, _T] | None, what: str, form: str) -> Mapping[str, _T]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a {type(given).__name__}; it must be a dict {form}")
    return given
