"""The logger of this package.

It writes lines of its own to stderr only while the program has set up no logging: TensorFlow and
most training programs do, and then the lines go where theirs go.
"""

import logging

default_logger = logging.getLogger("elasticai_api")


def get_logger(name: str, level: str = "INFO") -> logging.Logger:
    """A logger called `name` at `level`."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    return logger
