"""Keras layers whose parameters are on parameter servers."""

from elasticdl.layers.embedding import Embedding

__all__ = ["Embedding"]
