"""Constants that models import."""


class Mode:
    """What `feed(dataset, mode, metadata)` of a model makes records for."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    PREDICTION = "prediction"
