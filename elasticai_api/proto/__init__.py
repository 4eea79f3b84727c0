"""Kept so that `from elasticai_api.proto import elasticai_api_pb2` still gives the task types."""
