"""Feature columns whose embeddings are on parameter servers."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as columns

from elasticdl.layers.embedding import Embedding


def embedding_column(categorical_column: Any, dimension: int, combiner: str = "mean",
                     initializer: Optional[Any] = None, max_norm: Optional[float] = None,
                     trainable: bool = True) -> EmbeddingColumn:
    """Like tf.feature_column.embedding_column, with the rows on the parameter servers of the job.

    max_norm and trainable=False are not supported. initializer: of tf.keras, uniform by default.
    """
    if max_norm is not None or not trainable:
        raise ValueError("embedding_column: max_norm and trainable=False are not supported for "
                         "rows on parameter servers; use tf.feature_column.embedding_column")
    return EmbeddingColumn(categorical_column, dimension, combiner, initializer or "uniform")


class EmbeddingColumn(columns.DenseColumn):
    """A column of tf.keras.layers.DenseFeatures. Made by `embedding_column`."""

    def __init__(self, categorical_column: Any, dimension: int, combiner: str,
                 initializer: Any) -> None:
        self.categorical_column = categorical_column
        self.dimension = dimension
        self.combiner = combiner
        self.initializer = initializer
        self.layer = Embedding(dimension, embeddings_initializer=initializer, combiner=combiner,
                               name=self.name)

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> Any:
        return self.categorical_column.parse_example_spec

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    @property
    def _is_v2_column(self) -> bool:
        return True

    def create_state(self, state_manager: Any) -> None:
        """The rows are on servers."""

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        return transformation_cache.get(self.categorical_column, state_manager)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> tf.Tensor:
        sparse = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        if sparse.weight_tensor is not None:
            raise ValueError(f"column {self.name!r}: a weighted categorical column is not "
                             "supported for rows on parameter servers")
        return self.layer(sparse.id_tensor)

    def get_config(self) -> dict[str, Any]:
        return {"categorical_column": columns.serialize_feature_column(self.categorical_column),
                "dimension": self.dimension, "combiner": self.combiner,
                "initializer": tf.keras.initializers.serialize(
                    tf.keras.initializers.get(self.initializer))}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None,
                    columns_by_name: Any = None) -> EmbeddingColumn:
        inner = columns.deserialize_feature_column(config["categorical_column"], custom_objects,
                                                   columns_by_name)
        return cls(inner, config["dimension"], config["combiner"], config["initializer"])
