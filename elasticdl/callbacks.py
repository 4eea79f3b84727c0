"""Callbacks for models that ElasticDL trains: `callbacks()` of a model file returns a list of them.

The batch that ElasticDL gives to callbacks is the version of the model: the number of batches that
all workers together have completed. In a plain `model.fit` it is the batch of the epoch.
"""

from typing import Any, Callable

import tensorflow as tf


class LearningRateScheduler(tf.keras.callbacks.Callback):
    """Sets the learning rate before each batch.

        def callbacks():
            return [LearningRateScheduler(lambda version: 0.1 if version < 1000 else 0.01)]
    """

    def __init__(self, schedule: Callable[[int], float]):
        super().__init__()
        self.schedule = schedule

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        rate = self.schedule(batch)
        if not isinstance(rate, (int, float)):
            try:
                rate = float(rate)
            except (TypeError, ValueError):
                raise ValueError(f"the schedule of a LearningRateScheduler returned {rate!r} for "
                                 f"version {batch}; it must return a number") from None
        self.model.optimizer.learning_rate = rate


class MaxStepsStopping(tf.keras.callbacks.Callback):
    """Ends the training when the model has this version. `--max_step` does the same."""

    def __init__(self, max_steps: int):
        super().__init__()
        if max_steps < 1:
            raise ValueError(f"max_steps of MaxStepsStopping must be at least 1, not {max_steps}")
        self.max_steps = max_steps

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch >= self.max_steps:
            self.model.stop_training = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # `batch` is the one that has just ended.
        self.on_train_batch_begin(batch + 1)
