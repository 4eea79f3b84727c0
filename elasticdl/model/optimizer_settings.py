"""Keras optimizers as the parameter servers know them."""

from __future__ import annotations

from typing import Any, Optional

from elasticdl.model.errors import ModelError
from elasticdl.optimizers import SETTINGS

# Settings of Keras that do not change the result here, or that the worker applies itself.
_APPLIED_HERE = frozenset({"name", "learning_rate", "lr", "decay", "clipnorm", "clipvalue",
                           "global_clipnorm", "jit_compile", "is_legacy_optimizer",
                           "ema_momentum", "ema_overwrite_frequency"})


class OptimizerSettings:
    """The settings of a Keras optimizer: what the servers apply, and what the worker applies to
    gradients before it pushes them."""

    def __init__(self, optimizer: Any, where: str) -> None:
        """where: the file and symbol of the optimizer, for errors."""
        self._optimizer = optimizer
        config = optimizer.get_config() if hasattr(optimizer, "get_config") else None
        kind = type(optimizer).__name__
        if config is None or not hasattr(optimizer, "apply_gradients"):
            raise ModelError(f"{where} returned a {kind}; expected an optimizer of tf.keras")
        if kind not in SETTINGS:
            raise ModelError(f"{where} returned {kind}, which the parameter servers do not have; "
                             f"use one of {', '.join(SETTINGS)}")
        if config.get("use_ema"):
            raise ModelError(f"{where}: use_ema=True is not supported")
        self._declared = {"name": kind}
        for setting, value in config.items():
            if setting in _APPLIED_HERE or setting == "use_ema" or value is None:
                continue
            if setting not in SETTINGS[kind]:
                raise ModelError(f"{where}: {kind}({setting}={value!r}) is not supported by the "
                                 f"parameter servers; they know "
                                 f"{', '.join(sorted(SETTINGS[kind]))}")
            self._declared[setting] = value
        self.clipnorm: Optional[float] = config.get("clipnorm")
        self.global_clipnorm: Optional[float] = config.get("global_clipnorm")
        self.clipvalue: Optional[float] = config.get("clipvalue")
        self._decay = float(config.get("decay") or 0.0)  # of older optimizers

    def declared_for(self, variable: Any = None) -> dict[str, Any]:
        """The settings to declare for a variable, or for a table."""
        declared = dict(self._declared)
        uses_decay = getattr(self._optimizer, "_use_weight_decay", None)
        if "weight_decay" in declared and variable is not None and uses_decay is not None:
            if not uses_decay(variable):
                del declared["weight_decay"]
        return declared

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step: callbacks and schedules may change it."""
        import tensorflow as tf

        rate = getattr(self._optimizer, "_learning_rate", None)
        if rate is None:
            rate = self._optimizer.learning_rate
        if isinstance(rate, tf.keras.optimizers.schedules.LearningRateSchedule):
            return float(rate(step))
        value = float(tf.convert_to_tensor(rate() if callable(rate) else rate))
        return value / (1.0 + self._decay * step)
