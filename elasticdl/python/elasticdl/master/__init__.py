"""The master, started by hand."""
