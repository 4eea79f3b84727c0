"""The path of the original ElasticDL for `Embedding`."""

from elasticdl.layers.embedding import Embedding

__all__ = ["Embedding"]
