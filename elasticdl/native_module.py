"""Loads elasticdl._native, the compiled part of the package."""

from __future__ import annotations

try:
    from elasticdl import _native
except ImportError as error:
    raise ImportError(f"cannot load elasticdl._native ({error}); in a clone of the repository, "
                      "build it with: make setup native") from error

ParameterError = _native.ParameterError
RecordError = _native.RecordError

__all__ = ["ParameterError", "RecordError", "_native"]
