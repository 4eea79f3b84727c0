"""A categorical column that is the concatenation of others."""

import collections

import tensorflow as tf

# The base classes of columns are not part of TensorFlow's public API.
from tensorflow.python.feature_column import feature_column_v2 as fc
from tensorflow.python.feature_column import serialization


def concatenated_categorical_column(categorical_columns):
    """One categorical column of the ids of several. The ids of each column follow those of the
    column before it, so an embedding of the result is one table for all of them.

    ValueError: there are no columns, or one of them is not categorical.
    """
    columns = tuple(categorical_columns or ())
    if not columns:
        raise ValueError("concatenated_categorical_column needs at least one column")
    for column in columns:
        if not isinstance(column, fc.CategoricalColumn):
            raise ValueError(f"concatenated_categorical_column: {column} is not a categorical "
                             "column; numbers need a bucketized_column first")
    return ConcatenatedCategoricalColumn(columns)


class ConcatenatedCategoricalColumn(
        fc.CategoricalColumn,
        collections.namedtuple("ConcatenatedCategoricalColumn", ("categorical_columns",))):
    """See concatenated_categorical_column."""

    @property
    def _is_v2_column(self):
        return all(column._is_v2_column for column in self.categorical_columns)

    @property
    def name(self):
        return "_C_".join(sorted(column.name for column in self.categorical_columns))

    @property
    def num_buckets(self):
        return sum(column.num_buckets for column in self.categorical_columns)

    @property
    def parse_example_spec(self):
        spec = {}
        for column in self.categorical_columns:
            spec.update(column.parse_example_spec)
        return spec

    @property
    def parents(self):
        return list(self.categorical_columns)

    def transform_feature(self, transformation_cache, state_manager):
        """(ids, weights) as sparse tensors; weights is None if no column has weights."""
        pairs = [column.get_sparse_tensors(transformation_cache, state_manager)
                 for column in self.categorical_columns]
        weighted = any(pair.weight_tensor is not None for pair in pairs)
        ids, weights, offset = [], [], 0
        for column, pair in zip(self.categorical_columns, pairs):
            ids.append(_shift(pair.id_tensor, offset))
            weights.append(pair.weight_tensor if pair.weight_tensor is not None
                           else _ones_like(pair.id_tensor))
            offset += column.num_buckets
        return _beside_each_other(ids), _beside_each_other(weights) if weighted else None

    def get_sparse_tensors(self, transformation_cache, state_manager):
        ids, weights = transformation_cache.get(self, state_manager)
        return fc.CategoricalColumn.IdWeightPair(ids, weights)

    def get_config(self):
        return {"categorical_columns": [serialization.serialize_feature_column(column)
                                        for column in self.categorical_columns]}

    @classmethod
    def from_config(cls, config, custom_objects=None, columns_by_name=None):
        return cls(tuple(serialization.deserialize_feature_column(
            column, custom_objects, columns_by_name) for column in config["categorical_columns"]))


def _shift(ids, offset):
    values = tf.cast(ids.values, tf.int64)
    # A negative id stands for an unknown value, which embeddings leave out.
    values = tf.where(values < 0, values, values + offset)
    return tf.SparseTensor(ids.indices, values, ids.dense_shape)


def _ones_like(ids):
    return tf.SparseTensor(ids.indices, tf.ones_like(ids.values, tf.float32), ids.dense_shape)


def _beside_each_other(tensors):
    return tf.sparse.concat(axis=-1, sp_inputs=tensors)
