"""Protocol buffers on the wire, as far as the Open Inference Protocol needs them.

A message is a dict by field name; fields that are not set are absent. A table of fields says how it is written. That
is all of it, so the package needs no generated code, which would have to match the version of the protobuf package.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

#: Depth of messages within messages that is read.
_DEPTH = 16


class Field(NamedTuple):
    """A field: its name, its kind, and the message of kind ``message`` and ``map`` (text to message)."""

    name: str
    kind: str  # bool, int, uint, float, double, text, bytes, message, map
    repeated: bool = False
    message: Optional["Table"] = None


Table = Dict[int, Field]


class Malformed(ValueError):
    """Bytes that are no message."""


def _varint(data: memoryview, at: int) -> Tuple[int, int]:
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def decode(data: Union[bytes, memoryview], table: Table, depth: int = 0) -> Dict[str, Any]:
    """Reads a message. Unknown fields are passed over. Bytes are views of the data."""
    if depth > _DEPTH:
        raise Malformed("messages are nested too deeply")
    view, at, out = memoryview(data), 0, {}  # type: memoryview, int, Dict[str, Any]
    while at < len(view):
        tag, at = _varint(view, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value: Any
            value, at = _varint(view, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = view[at : at + size], at + size
        elif wire == 2:
            size, at = _varint(view, at)
            value, at = view[at : at + size], at + size
        else:
            raise Malformed(f"wire type {wire}")
        if at > len(view):
            raise Malformed("a field is cut off")
        field = table.get(number)
        if field is not None:
            _put(out, field, wire, value, depth)
    return out


def _put(out: Dict[str, Any], field: Field, wire: int, value: Any, depth: int) -> None:
    if field.kind == "map":
        if wire != 2:
            raise Malformed(f"field {field.name} has wire type {wire}")
        entry = decode(value, {1: Field("key", "text"), 2: Field("value", "message", message=field.message)}, depth + 1)
        out.setdefault(field.name, {})[entry.get("key", "")] = entry.get("value", {})
    elif field.repeated and wire == 2 and field.kind not in ("text", "bytes", "message"):
        out.setdefault(field.name, []).extend(_packed(field.kind, value))
    elif field.repeated:
        out.setdefault(field.name, []).append(_scalar(field, wire, value, depth))
    else:
        out[field.name] = _scalar(field, wire, value, depth)


def _packed(kind: str, data: memoryview) -> List[Any]:
    if kind in ("float", "double"):
        code, size = ("f", 4) if kind == "float" else ("d", 8)
        if len(data) % size:
            raise Malformed("packed numbers are cut off")
        return list(struct.unpack(f"<{len(data) // size}{code}", data))
    out, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        out.append(_number(kind, value))
    return out


def _number(kind: str, value: int) -> Any:
    if kind == "bool":
        return value != 0
    return _signed(value) if kind == "int" else value


def _scalar(field: Field, wire: int, value: Any, depth: int) -> Any:
    kind = field.kind
    if wire != {"float": 5, "double": 1, "text": 2, "bytes": 2, "message": 2}.get(kind, 0):
        raise Malformed(f"field {field.name} has wire type {wire}")
    if kind == "text":
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"field {field.name} is no UTF-8") from error
    if kind == "message":
        return decode(value, field.message or {}, depth + 1)
    if kind == "float":
        return struct.unpack("<f", value)[0]
    if kind == "double":
        return struct.unpack("<d", value)[0]
    return value if kind == "bytes" else _number(kind, value)


def _append_varint(out: bytearray, value: int) -> None:
    value &= 0xFFFFFFFFFFFFFFFF
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encode(message: Mapping[str, Any], table: Table) -> bytes:
    """Writes a message. Fields that are absent or None are left out."""
    out = bytearray()
    for number, field in table.items():
        value = message.get(field.name)
        if value is None:
            continue
        if field.kind == "map":
            entry: Table = {1: Field("key", "text"), 2: Field("value", "message", message=field.message)}
            for key, item in value.items():
                _append(out, number, Field("", "bytes"), encode({"key": key, "value": item}, entry))
        elif field.repeated and field.kind in ("int", "uint", "bool"):
            if value:
                block = bytearray()
                for item in value:
                    _append_varint(block, int(item))
                _append(out, number, Field("", "bytes"), block)
        elif field.repeated:
            for item in value:
                _append(out, number, field, item)
        else:
            _append(out, number, field, value)
    return bytes(out)


def _append(out: bytearray, number: int, field: Field, value: Any) -> None:
    kind = field.kind
    if kind in ("bool", "int", "uint"):
        _append_varint(out, number << 3)
        _append_varint(out, int(value))
        return
    if kind in ("float", "double"):
        _append_varint(out, number << 3 | (5 if kind == "float" else 1))
        out += struct.pack("<f" if kind == "float" else "<d", value)
        return
    if kind == "text":
        value = value.encode()
    elif kind == "message":
        value = encode(value, field.message or {})
    _append_varint(out, number << 3 | 2)
    _append_varint(out, len(value))
    out += value
