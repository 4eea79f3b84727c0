"""The worker of a job with --model_def: `python -m elasticdl.worker`."""
