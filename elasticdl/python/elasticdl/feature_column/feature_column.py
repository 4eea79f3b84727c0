"""The path of the original ElasticDL for `embedding_column`."""

from elasticdl.feature_column import EmbeddingColumn, embedding_column

__all__ = ["EmbeddingColumn", "embedding_column"]
