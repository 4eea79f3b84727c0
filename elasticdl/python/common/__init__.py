"""What models and workers share."""
