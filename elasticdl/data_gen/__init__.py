"""Datasets of the models in model_zoo/, as RecordIO files of tf.train.Example (docs/datasets.md).

    python -m elasticdl.data_gen mnist data/mnist

Needs NumPy only: no TensorFlow, and no compiled part of this package, so it also works in a clone
that was never built. The same arguments give the same files.
"""
