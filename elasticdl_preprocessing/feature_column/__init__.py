"""Columns beside those of tf.feature_column."""

from elasticdl_preprocessing.feature_column.feature_column import concatenated_categorical_column

__all__ = ["concatenated_categorical_column"]
