"""The optimizers of the parameter server and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ADAM = frozenset({"beta_1", "beta_2", "epsilon", "amsgrad", "weight_decay"})

# By the names of tf.keras 2.15; docs/formats/parameters.md.
SETTINGS: dict[str, frozenset[str]] = {
    "SGD": frozenset({"momentum", "nesterov", "weight_decay"}),
    "Momentum": frozenset({"momentum", "nesterov", "weight_decay"}),
    "Adagrad": frozenset({"initial_accumulator_value", "epsilon", "weight_decay"}),
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "RMSprop": frozenset({"rho", "momentum", "epsilon", "centered", "weight_decay"}),
    "Ftrl": frozenset({"learning_rate_power", "initial_accumulator_value",
                       "l1_regularization_strength", "l2_regularization_strength",
                       "l2_shrinkage_regularization_strength", "beta", "weight_decay"}),
}


def check_optimizer(optimizer: Any, what: str) -> None:
    """Raises if the optimizer does not exist or has no such setting. The server accepts the
    settings of all optimizers, and would ignore a setting of another one."""
    if optimizer is None:
        return
    if not isinstance(optimizer, Mapping):
        raise TypeError(f"{what}: optimizer is {optimizer!r}; it must be a dict such as "
                        '{"name": "Adagrad"}')
    name = optimizer.get("name", "SGD")
    if name not in SETTINGS:
        raise ValueError(f"{what}: optimizer {name!r} does not exist; there are "
                         f"{', '.join(SETTINGS)}")
    for setting in optimizer:
        if setting == "learning_rate":
            raise ValueError(f"{what}: optimizer {name} has no 'learning_rate'; it comes with each "
                             "push")
        if setting != "name" and setting not in SETTINGS[name]:
            raise ValueError(f"{what}: optimizer {name} has no {setting!r}; it has "
                             f"{', '.join(sorted(SETTINGS[name]))}")
