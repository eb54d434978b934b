"""The wire format of Protocol Buffers for what Sawtooth's messages have: texts, bytes, flags and lists of them.

As in proto3, single fields with their default value are left out.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Value: TypeAlias = bool | str | bytes | Sequence[str] | Sequence[bytes]


def encode_message(fields: Iterable[tuple[int, Value]]) -> bytes:
    """Encodes a message, with its fields in the order of their numbers."""
    return b"".join(_encode_field(number, value) for number, value in fields)


def _encode_field(number: int, value: Value) -> bytes:
    if isinstance(value, bool):
        return bytes([number << 3, 1]) if value else b""
    if isinstance(value, (str, bytes)):
        return _encode_bytes(number, value) if value else b""
    return b"".join(_encode_bytes(number, entry) for entry in value)


def _encode_bytes(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + _encode_length(len(data)) + data


def _encode_length(length: int) -> bytes:
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*encoded, length])
