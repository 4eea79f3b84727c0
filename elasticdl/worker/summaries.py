"""Writes losses and metrics as events for TensorBoard."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf


class Summaries:
    """Events of one worker: its loss in DIR/worker-ID, and evaluations in DIR/evaluation. Without a
    folder it does nothing."""

    def __init__(self, folder: str, worker_id: int) -> None:
        self._folder = folder
        self._worker_id = worker_id
        self._writers: dict[str, Any] = {}

    def add_loss(self, step: int, loss: float) -> None:
        self._add(f"worker-{self._worker_id}", step, {"loss": loss})

    def add_evaluation(self, step: int, metrics: dict[str, float]) -> None:
        self._add("evaluation", step, metrics)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _add(self, run: str, step: int, values: dict[str, float]) -> None:
        if not self._folder:
            return
        if run not in self._writers:
            self._writers[run] = tf.summary.create_file_writer(os.path.join(self._folder, run))
        with self._writers[run].as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
        self._writers[run].flush()
