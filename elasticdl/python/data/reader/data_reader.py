"""The path of the original ElasticDL for `AbstractDataReader` and `Metadata`."""

from elasticdl.data.reader import AbstractDataReader, Metadata

__all__ = ["AbstractDataReader", "Metadata"]
