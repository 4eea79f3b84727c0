"""The path of `elasticdl.callbacks` in published models."""

from elasticdl.callbacks import LearningRateScheduler, MaxStepsStopping

__all__ = ["LearningRateScheduler", "MaxStepsStopping"]
