"""Statistics of columns (analyzer_utils), and a decorator of models (decorators)."""
