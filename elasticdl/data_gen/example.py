"""Serializes tf.train.Example without TensorFlow, whose import takes seconds.

    encode({"feature": int64_list([1, 2]), "label": int64_list([1])})

The bytes are those of protobuf's deterministic serialization: the names of the features are sorted.
"""

import struct
from typing import Iterable, Mapping, Union

# Tags of protobuf: (field number << 3) | wire type 2 (length and bytes).
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def varint(value: int) -> bytes:
    """A base-128 varint. Negative numbers are encoded as 64-bit two's complement."""
    if 0 <= value < 128:
        return bytes((value,))
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit into int64")
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def _packed(content: bytes) -> bytes:
    # An empty list has no value field.
    return _field(_FIELD_1, content) if content else b""


def bytes_list(values: Iterable[Union[bytes, str]]) -> bytes:
    """A Feature with a bytes_list. Strings are encoded as UTF-8."""
    texts = (value.encode() if isinstance(value, str) else value for value in values)
    return _field(_FIELD_1, b"".join(_field(_FIELD_1, text) for text in texts))


def float_list(values: Iterable[float]) -> bytes:
    """A Feature with a float_list."""
    values = list(values)
    return _field(_FIELD_2, _packed(struct.pack(f"<{len(values)}f", *values)))


def int64_list(values: Iterable[int]) -> bytes:
    """A Feature with an int64_list."""
    return _field(_FIELD_3, _packed(b"".join(map(varint, values))))


def feature_entry(name: str, feature: bytes) -> bytes:
    """One entry of the map Features.feature."""
    return _field(_FIELD_1, _field(_FIELD_1, name.encode()) + _field(_FIELD_2, feature))


def encode(features: Mapping[str, bytes]) -> bytes:
    """A serialized tf.train.Example. The values are what the functions above return."""
    return _field(_FIELD_1, b"".join(feature_entry(name, features[name])
                                     for name in sorted(features)))
