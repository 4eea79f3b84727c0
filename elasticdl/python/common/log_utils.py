"""The logger that published models import."""

import logging

default_logger = logging.getLogger("elasticdl")
