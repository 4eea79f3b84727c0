"""Predicts shards: the outputs go to the user's processor, or to files."""

from __future__ import annotations

import csv
import os
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from elasticai_api.common.shard import Shard
from elasticdl.model.errors import ModelError, summary_of
from elasticdl.worker.evaluation import Inference
from elasticdl.worker.shard_input import ShardBatches


class ShardPrediction:
    """Predicts the records of shards.

    Without a processor, the predictions of a shard are written to `part-NNNNN.csv` in the output
    folder (one line for each record), or to `part-NNNNN.npz` if an output has more than one
    dimension. The name is that of the shard, and the file appears when it is complete, so a shard
    that is predicted again replaces its file, and there is one prediction for each record.
    """

    def __init__(self, inference: Inference, processor: Optional[Any], output: str,
                 worker_id: int) -> None:
        if processor is None and not output:
            raise ModelError("there is nowhere to write predictions: give --output=FOLDER, or "
                             "define PredictionOutputsProcessor in the model file")
        self._inference = inference
        self._processor = processor
        self._output = output
        self._worker_id = worker_id

    def predict(self, shard: Shard, batches: ShardBatches) -> None:
        self._inference.pull_tensors()
        parts: list[dict[str, np.ndarray]] = []
        index = 0
        while (batch := batches.get(index)) is not None:
            outputs = self._inference.outputs(batch[0])
            if self._processor is not None:
                self._process(outputs)
            else:
                parts.append(_by_name(outputs))
            index += 1
            batches.release(index)
        if self._processor is None and parts:
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            write_predictions(self._output, shard.ordinal, joined)

    def _process(self, outputs: Any) -> None:
        assert self._processor is not None
        values = tf.nest.map_structure(lambda tensor: tensor.numpy(), outputs)
        try:
            self._processor.process(values, self._worker_id)
        except Exception as error:
            raise ModelError("PredictionOutputsProcessor.process(predictions, worker_id) failed: "
                             f"{summary_of(error)}") from error


def write_predictions(folder: str, ordinal: int, outputs: dict[str, np.ndarray]) -> str:
    """Writes the predictions of a shard, and returns the path of the file."""
    os.makedirs(folder, exist_ok=True)
    flat = all(array.ndim <= 2 for array in outputs.values())
    path = os.path.join(folder, f"part-{ordinal:05d}.{'csv' if flat else 'npz'}")
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        if flat:
            _write_csv(file, outputs)
        else:
            np.savez(file, **outputs)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return path


def _write_csv(file: Any, outputs: dict[str, np.ndarray]) -> None:
    import io

    columns: dict[str, np.ndarray] = {}
    for name, array in outputs.items():
        if array.ndim == 1 or array.shape[1] == 1:
            columns[name] = array.reshape(-1)
        else:
            columns.update({f"{name}_{place}": array[:, place] for place in range(array.shape[1])})
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values())))
    text.flush()
    text.detach()


def _by_name(outputs: Any) -> dict[str, np.ndarray]:
    if isinstance(outputs, dict):
        return {str(name): np.asarray(tensor) for name, tensor in outputs.items()}
    if isinstance(outputs, (list, tuple)):
        return {f"output_{place}": np.asarray(tensor) for place, tensor in enumerate(outputs)}
    return {"output": np.asarray(outputs)}
