"""A worker, started by hand."""
