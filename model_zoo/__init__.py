"""Models that the tutorials train, each runnable with `python -m`."""
