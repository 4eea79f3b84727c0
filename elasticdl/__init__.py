"""ElasticDL for Python programs.

The names are imported when they are first used, so that `import elasticdl` is fast:
`ParameterClient` (docs/parameter-server.md) with its results and errors, `ShardTrainer`, which
trains the shards of a job with a `ParameterClient`, and `open_records` and `RecordWriter`, which
read and write record files (docs/formats/records.md).
"""

from __future__ import annotations

import importlib
import pkgutil
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
    from elasticdl.records import RecordError, RecordReader, RecordWriter, open_records
    from elasticdl.shard_trainer import ShardTrainer

__version__ = "2.0.0"
# The package of a clone that was never built has no compiled module. It then uses that of an
# installed elasticdl, as in the image elasticdl:dev.
__path__ = pkgutil.extend_path(__path__, __name__)

_HOME = {name: "elasticdl.parameter_client" for name in (
    "OpenedShard", "Outcome", "ParameterClient", "ParameterError", "PushResult", "ShardKey")}
_HOME.update({name: "elasticdl.records" for name in (
    "RecordError", "RecordReader", "RecordWriter", "open_records")})
_HOME["ShardTrainer"] = "elasticdl.shard_trainer"

__all__ = [
    "OpenedShard",
    "Outcome",
    "ParameterClient",
    "ParameterError",
    "PushResult",
    "RecordError",
    "RecordReader",
    "RecordWriter",
    "ShardKey",
    "ShardTrainer",
    "open_records",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
