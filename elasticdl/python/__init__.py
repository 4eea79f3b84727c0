"""Modules at the paths that published models and commands use."""
