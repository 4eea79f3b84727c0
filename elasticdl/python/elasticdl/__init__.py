"""What models import: callbacks and layers."""
