"""ElasticDL for Python programs.

The names are imported when they are first used, so that `import elasticdl` is fast:
`ParameterClient` (docs/parameter-server.md) with its results and errors, and `ShardTrainer`, which
trains the shards of a job with a `ParameterClient`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elasticdl.parameter_client import (
        OpenedShard,
        Outcome,
        ParameterClient,
        ParameterError,
        PushResult,
        ShardKey,
    )
    from elasticdl.shard_trainer import ShardTrainer

__version__ = "2.0.0"

_HOME = {name: "elasticdl.parameter_client" for name in (
    "OpenedShard", "Outcome", "ParameterClient", "ParameterError", "PushResult", "ShardKey")}
_HOME["ShardTrainer"] = "elasticdl.shard_trainer"

__all__ = [
    "OpenedShard",
    "Outcome",
    "ParameterClient",
    "ParameterError",
    "PushResult",
    "ShardKey",
    "ShardTrainer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
