"""The base class of a model's PredictionOutputsProcessor."""

import abc
from typing import Any


class BasePredictionOutputsProcessor(abc.ABC):
    """Receives the predictions of one worker. A model file that defines a subclass named
    `PredictionOutputsProcessor` gets its predictions written; it is made without arguments."""

    @abc.abstractmethod
    def process(self, predictions: Any, worker_id: int) -> None:
        """Called with the outputs of the model for each batch, in the order of the batches."""
