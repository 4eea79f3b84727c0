"""Errors that the user of a model has to fix."""

from __future__ import annotations


class ModelError(Exception):
    """The model file, the data or a flag is wrong. Every worker would meet the same error, so the
    job fails with this message, which needs no stack trace."""


def summary_of(error: BaseException) -> str:
    """The type and the first lines of an error, without a stack trace."""
    text = str(error).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("in user code"):  # then frames, and the message at the end
        lines = [line.strip() for line in lines[-1:]]
    # TensorFlow repeats the graph of an error below its message.
    short = " ".join(lines[:3])[:1000]
    return f"{type(error).__name__}: {short}" if short else type(error).__name__
