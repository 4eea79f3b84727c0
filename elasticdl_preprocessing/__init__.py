"""Keras layers that turn columns of tables into what a model computes with.

`elasticdl_preprocessing.layers` has the layers, `feature_column` a column for TensorFlow's feature
columns, `utils` the statistics of columns and a decorator of models.
"""

__version__ = "2.0.0"
