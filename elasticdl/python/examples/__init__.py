"""Models of the development guide."""
