"""The worker of a job with a model."""
