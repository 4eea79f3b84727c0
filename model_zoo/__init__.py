"""The models of the tutorials. Each can be run with `python -m`."""
