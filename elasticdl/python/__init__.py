"""Module paths of the original ElasticDL, for model files that were written for it."""
