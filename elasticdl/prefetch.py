"""Parameters that are pulled while the program computes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from elasticdl.arrays import Floats, Ids
from elasticdl.native_module import _native
from elasticdl.thread_state import ThreadStates


class Prefetch:
    """Rows and tensors that `ParameterClient.prefetch` has started to pull."""

    def __init__(self, native: _native.Prefetch, tables: list[str], tensors: list[str],
                 threads: ThreadStates, create: bool) -> None:
        self._native = native
        self._names = tables, tensors
        self._threads = threads
        self._create = create
        self._taken: tuple[dict[str, tuple[Floats, npt.NDArray[np.int32], Ids]],
                           dict[str, Floats]] | None = None

    def done(self) -> bool:
        """Whether `result` would return without waiting."""
        return self._native.done()

    def result(self) -> dict[str, tuple[Floats, npt.NDArray[np.int32]]]:
        """{table: (rows, inverse)}: one row for each distinct id, and for each requested id the
        index of its row. rows[inverse] is what `pull` would have returned."""
        return {name: taken[:2] for name, taken in self._take()[0].items()}

    def ids(self) -> dict[str, Ids]:
        """{table: ids}, the distinct ids in the order of the rows: push gradients with respect to
        the rows with these ids."""
        return {name: taken[2] for name, taken in self._take()[0].items()}

    def tensors(self) -> dict[str, Floats]:
        """{name: array} of the tensors that were requested."""
        return self._take()[1]

    def _take(self) -> tuple[dict[str, tuple[Floats, npt.NDArray[np.int32], Ids]],
                             dict[str, Floats]]:
        if self._taken is None:
            with self._threads.reading():
                tables, tensors = self._native.take()
            self._taken = (dict(zip(self._names[0], tables)), dict(zip(self._names[1], tensors)))
            if self._create:
                self._threads.note_pull(self._native.versions())
        return self._taken
