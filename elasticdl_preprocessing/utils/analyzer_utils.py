"""Statistics of the columns of a table, from environment variables.

A program that submits a job analyses the table and sets the variables. Without a variable each
function returns its second argument, so a model also works without the analysis.
"""

import os
from typing import Any, Callable

from elasticdl_preprocessing.constants import AnalysisEnvTemplate


def get_min(feature_name, default_value):
    """The smallest number of a column."""
    return _read(AnalysisEnvTemplate.MIN_ENV, feature_name, float, default_value)


def get_max(feature_name, default_value):
    """The largest number of a column."""
    return _read(AnalysisEnvTemplate.MAX_ENV, feature_name, float, default_value)


def get_avg(feature_name, default_value):
    """The mean of a column."""
    return _read(AnalysisEnvTemplate.AVG_ENV, feature_name, float, default_value)


def get_stddev(feature_name, default_value):
    """The standard deviation of a column."""
    return _read(AnalysisEnvTemplate.STDDEV_ENV, feature_name, float, default_value)


def get_bucket_boundaries(feature_name, default_value):
    """The boundaries of buckets: numbers with commas between them, returned without repetitions in
    rising order."""
    return _read(AnalysisEnvTemplate.BUCKET_BOUNDARIES_ENV, feature_name,
                 lambda text: sorted(set(map(float, text.split(",")))), default_value)


def get_distinct_count(feature_name, default_value):
    """The number of different values of a column."""
    return _read(AnalysisEnvTemplate.DISTINCT_COUNT_ENV, feature_name, int, default_value)


def get_vocabulary(feature_name, default_value):
    """The path of a file with the different values of a column, one per line."""
    return _read(AnalysisEnvTemplate.VOCABULARY_ENV, feature_name, str, default_value)


def _read(template: str, feature_name: str, parse: Callable[[str], Any], default: Any) -> Any:
    name = template.format(feature_name)
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} has the value {text!r}, which is not "
                         "what this statistic needs") from None
