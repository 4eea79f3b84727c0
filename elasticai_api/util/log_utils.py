"""The logger of this package.

If the program configures logging, as TensorFlow and most training programs do, its handlers write
the lines. Otherwise they are written to stderr.
"""

import logging

default_logger = logging.getLogger("elasticai_api")


def get_logger(name: str, level: str = "INFO") -> logging.Logger:
    """The logger `name`, set to `level`."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    return logger
