"""ElasticDL for Python programs.

What is here is imported when it is first used, so that `import elasticdl` costs nothing:
`ParameterClient` (docs/parameter-server.md) and what it returns and raises, and `ShardTrainer`,
which trains the shards of a job with it.
"""

import importlib

_HOME = {name: "elasticdl.parameter_client" for name in (
    "OpenedShard", "Outcome", "ParameterClient", "ParameterError", "PushResult", "ShardKey")}
_HOME["ShardTrainer"] = "elasticdl.shard_trainer"

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__():
    return sorted([*globals(), *__all__])
