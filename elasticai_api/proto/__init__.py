"""For programs that use `from elasticai_api.proto import elasticai_api_pb2`."""
