"""Keras initializers as the parameter servers know them."""

from __future__ import annotations

import math
from typing import Any, Optional

from elasticdl.model.errors import ModelError

_FIXED = {
    "Zeros": ("zeros", ()),
    "Ones": ("ones", ()),
    "Constant": ("constant", ("value",)),
    "RandomUniform": ("uniform", ("minval", "maxval")),
    "RandomNormal": ("normal", ("mean", "stddev")),
    "TruncatedNormal": ("truncated_normal", ("mean", "stddev")),
}
# The standard deviation of a normal distribution that is cut at two standard deviations.
_TRUNCATED_STDDEV = 0.87962566103423978


def initializer_settings(initializer: Any, input_dim: Optional[int], output_dim: int,
                         where: str) -> dict[str, Any]:
    """The declaration of a Keras initializer for the rows of a table."""
    kind = type(initializer).__name__
    config = initializer.get_config()
    if kind in _FIXED:
        name, settings = _FIXED[kind]
        return {"name": name, **{setting: float(config[setting]) for setting in settings}}
    if "distribution" in config or kind.startswith(("Glorot", "He", "Lecun")):
        return _variance_scaling(initializer, input_dim, output_dim, where)
    raise ModelError(f"{where}: the parameter servers do not have the initializer {kind}; use one "
                     f"of {', '.join(_FIXED)}, or one of the Glorot, He and Lecun initializers")


def _variance_scaling(initializer: Any, input_dim: Optional[int], output_dim: int,
                      where: str) -> dict[str, Any]:
    if input_dim is None:
        raise ModelError(f"{where}: the initializer {type(initializer).__name__} depends on "
                         "input_dim, which the layer does not have; use 'uniform' or "
                         "RandomNormal")
    scale = float(initializer.scale)
    fans = {"fan_in": input_dim, "fan_out": output_dim, "fan_avg": (input_dim + output_dim) / 2}
    variance = scale / max(1.0, fans[initializer.mode])
    if initializer.distribution == "uniform":
        limit = math.sqrt(3.0 * variance)
        return {"name": "uniform", "minval": -limit, "maxval": limit}
    if initializer.distribution == "untruncated_normal":
        return {"name": "normal", "mean": 0.0, "stddev": math.sqrt(variance)}
    return {"name": "truncated_normal", "mean": 0.0,
            "stddev": math.sqrt(variance) / _TRUNCATED_STDDEV}
