"""Keras models for parameter servers: loading a user's model file, and compiling its step."""
