"""Learning rates and gradient clipping of a push."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Union

import numpy as np

from elasticdl.arrays import Floats, Ids

# {table: (ids, gradients)}, {tensor: gradient}, and a number or {name: number}.
TableGradients = Mapping[str, tuple[Ids, Floats]]
TensorGradients = Mapping[str, Floats]
LearningRate = Union[float, Mapping[str, float]]
# As the native client takes them: the number of the table or tensor, and its learning rate.
NumberedRows = tuple[int, Ids, Floats, float]
NumberedTensor = tuple[int, Floats, float]

_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def checked_rates(learning_rate: LearningRate, names: list[str]) -> Callable[[str], float]:
    """Checks all learning rates of a push, and returns a function from a name to its rate."""
    rates = ({name: learning_rate[name] for name in names if name in learning_rate}
             if isinstance(learning_rate, Mapping) else dict.fromkeys(names, learning_rate))
    for name in names:
        if name not in rates:
            raise ValueError(f"learning_rate has no entry for {name!r}")
        rate = rates[name]
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number)):
            raise TypeError(f"the learning rate of {name!r} is {rate!r}; it must be a number")
        # Servers compute in 32 bits, in which 1e39 is infinite.
        if not abs(float(rate)) <= _LARGEST_FLOAT:
            raise ValueError(f"the learning rate of {name!r} is {rate}; it must be finite as "
                             f"float32, at most {_LARGEST_FLOAT:.3g}")
    return lambda name: float(rates[name])


def clip(tables: list[NumberedRows], tensors: list[NumberedTensor], clipnorm: float | None,
         global_clipnorm: float | None) -> tuple[list[NumberedRows], list[NumberedTensor]]:
    """Scales gradients down whose norm is too large. The client has to do it: the rows of a push
    belong to several servers, and none of them knows the norm."""
    if clipnorm is None and global_clipnorm is None:
        return tables, tensors
    if clipnorm is not None and global_clipnorm is not None:
        raise ValueError("clipnorm and global_clipnorm are both given; give one of them")
    limit = global_clipnorm if clipnorm is None else clipnorm
    if limit is None or not (math.isfinite(limit) and limit > 0):
        raise ValueError(f"the norm to clip to is {limit}; it must be a finite number above 0")
    sums = [_sum_by_id(ids, gradients) for _, ids, gradients, _ in tables]
    arrays = [gradients for _, gradients in sums] + [gradient for _, gradient, _ in tensors]
    norms = [math.sqrt(np.sum(np.square(array, dtype=np.float64))) for array in arrays]
    if clipnorm is None:
        norms = [math.hypot(*norms)] * len(norms)
    # A norm that is NaN scales nothing: the native client refuses such a batch.
    arrays = [array * np.float32(limit / norm) if norm > limit else array
              for array, norm in zip(arrays, norms)]
    return ([(number, ids, array, rate)
             for (number, *_, rate), (ids, _), array in zip(tables, sums, arrays)],
            [(number, array, rate)
             for (number, _, rate), array in zip(tensors, arrays[len(tables):])])


def _sum_by_id(ids: Ids, gradients: Floats) -> tuple[Ids, Floats]:
    """Returns the distinct ids, and the sum of the gradients of each."""
    distinct, places = np.unique(ids, return_inverse=True)
    if distinct.size == ids.size:
        return ids, gradients
    sums = np.zeros((distinct.size, gradients.shape[-1]), np.float32)
    np.add.at(sums, places.ravel(), gradients.reshape(ids.size, -1))
    return distinct, sums
