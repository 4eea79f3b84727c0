"""The messages of proto/elasticdl/v1/master.proto, made from its descriptor at import.

There is no generated code, because it would require one protobuf release, and training programs use
that of their framework (3.20 and later work). The descriptor pool is private, so its messages
cannot collide with those of the program.
"""

import os
from typing import Any, Dict

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from elasticai_api.common.errors import MasterError

_PACKAGE = "elasticdl.v1"
_DESCRIPTOR_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "master.desc")

SERVICE = f"/{_PACKAGE}.Master/"


def _load_pool() -> descriptor_pool.DescriptorPool:
    try:
        with open(_DESCRIPTOR_FILE, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
    except OSError as error:
        raise MasterError(
            f"{_DESCRIPTOR_FILE} is missing ({error.strerror}); in a clone, build it with: make"
        ) from error
    pool = descriptor_pool.DescriptorPool()
    for described in files:
        pool.AddSerializedFile(described.SerializeToString())
    return pool


_pool = _load_pool()


def message(name: str) -> Any:
    """The class of message `name`, as in message("JoinRequest")(role="worker")."""
    descriptor = _pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    factory: Any = message_factory.MessageFactory(_pool)  # protobuf < 4.22
    return factory.GetPrototype(descriptor)


class Method:
    """A method of the service: its path, and the classes of its request and its response."""

    def __init__(self, name: str):
        service = _pool.FindServiceByName(f"{_PACKAGE}.Master")
        method = service.methods_by_name[name]
        self.name = name
        self.path = SERVICE + name
        self.request = message(method.input_type.name)
        self.response = message(method.output_type.name)


_methods: Dict[str, Method] = {}


def method(name: str) -> Method:
    """The method `name` of the service."""
    if name not in _methods:
        _methods[name] = Method(name)
    return _methods[name]


class Answer:
    """ReportAndLeaseResponse.Answer."""

    NOTHING, SHARDS, WAIT, FINISHED, UNKNOWN_DATASET, _, RETRY = range(7)


class Verdict:
    """ReportAndLeaseResponse.Verdict."""

    ACCEPTED, LOST, REOPEN = range(3)
