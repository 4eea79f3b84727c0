"""How a worker reads the records of a dataset."""

from elasticdl.data.reader import AbstractDataReader, Metadata

__all__ = ["AbstractDataReader", "Metadata"]
