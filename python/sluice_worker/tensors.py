"""Tensors: data types of the Open Inference Protocol, their NumPy types, and their bytes."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

BYTES = "BYTES"

#: NumPy types by data type. BF16, which NumPy lacks, is its 16 bits. Elements of BYTES are ``bytes`` objects.
TYPES: Dict[str, Any] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BF16": np.dtype("<u2"),
    BYTES: np.dtype(object),
}

_NAMES = {dtype: name for name, dtype in TYPES.items() if name not in (BYTES, "BF16")}
_TEXT = re.compile(r"^\s*([A-Z0-9]+)\s*\[([^\]]*)\]\s*$")


@dataclass
class Spec:
    """The name, data type and shape of a tensor. A dimension of -1 is open; the first one counts items if it is."""

    name: str
    datatype: str
    shape: List[int] = field(default_factory=list)

    def fits(self, shape: Sequence[int]) -> bool:
        """Tells whether a shape is one of those that the spec allows."""
        return len(shape) == len(self.shape) and all(w in (-1, g) for w, g in zip(self.shape, shape))

    def describe(self) -> Dict[str, Any]:
        """Returns the spec as the protocol's metadata has it."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


def datatype_of(value: Any) -> str:
    """Returns the protocol's name of a type: one of its own names, a NumPy type, ``str`` or ``bytes``."""
    if isinstance(value, str) and value in TYPES:
        return value
    if value in (str, bytes, object):
        return BYTES
    try:
        dtype = np.dtype(value).newbyteorder("<")
    except TypeError:
        dtype = None
    if dtype is not None and dtype in _NAMES:
        return _NAMES[dtype]
    if dtype is not None and dtype.kind in "SU":
        return BYTES
    raise ValueError(f"{value!r} is no data type: want one of {', '.join(TYPES)}")


def parse_spec(name: str, value: Any) -> Spec:
    """Reads a spec: ``"FP32[-1,16]"``, ``("FP32", [-1, 16])``, ``(np.float32, (-1, 16))`` or a mapping of metadata."""
    if isinstance(value, Spec):
        return Spec(name, value.datatype, list(value.shape))
    if isinstance(value, str):
        match = _TEXT.match(value)
        if match is None:
            raise ValueError(f'tensor "{name}" is described as {value!r}: want a text such as "FP32[-1,16]"')
        dims = [d.strip() for d in match.group(2).split(",") if d.strip()]
        value = (match.group(1), [int(d) for d in dims])
    if isinstance(value, Mapping):
        value = (value["datatype"], value["shape"])
    if not (isinstance(value, (tuple, list)) and len(value) == 2):
        raise ValueError(f'tensor "{name}" is described as {value!r}: want a data type and a shape')
    shape = [int(d) for d in value[1]]
    if any(d < -1 for d in shape):
        raise ValueError(f'tensor "{name}" has the shape {shape}: want -1 or a size for each dimension')
    return Spec(name, datatype_of(value[0]), shape)


def parse_specs(value: Optional[Mapping[str, Any]]) -> Optional[List[Spec]]:
    """Reads specs by name; None for none."""
    return None if value is None else [parse_spec(str(name), v) for name, v in value.items()]


Buffer = Union[bytes, bytearray, memoryview, Any]


def elements(shape: Sequence[int]) -> int:
    """Returns the number of elements of a shape."""
    n = 1
    for d in shape:
        if d < 0:
            raise ValueError(f"the shape {list(shape)} has a negative dimension")
        n *= d
    return n


def decode(data: Buffer, datatype: str, shape: Sequence[int]) -> np.ndarray:
    """Returns a tensor over its bytes, without a copy. Strings are copied, since they are objects."""
    n = elements(shape)
    if datatype == BYTES:
        return _decode_strings(data, n).reshape(tuple(shape))
    dtype = TYPES[datatype]
    if len(data) != n * dtype.itemsize:
        raise ValueError(f"{datatype}{list(shape)} has {n * dtype.itemsize} bytes, {len(data)} came")
    return np.frombuffer(data, dtype=dtype, count=n).reshape(tuple(shape))


def _decode_strings(data: Buffer, n: int) -> np.ndarray:
    view, at = memoryview(data), 0
    out = np.empty(n, dtype=object)
    for k in range(n):
        if at + 4 > len(view):
            raise ValueError(f"a tensor of {n} strings ends after {k}")
        size = struct.unpack_from("<I", view, at)[0]
        at += 4
        if at + size > len(view):
            raise ValueError(f"string {k} of {n} is longer than its tensor")
        out[k] = view[at : at + size].tobytes()
        at += size
    if at != len(view):
        raise ValueError(f"{len(view) - at} bytes follow the last of {n} strings")
    return out


def encode_strings(array: np.ndarray) -> bytes:
    """Returns the bytes of a tensor of ``bytes`` or ``str``."""
    out = bytearray()
    for x in array.ravel():
        if isinstance(x, np.bytes_):
            x = bytes(x)
        if isinstance(x, str):
            x = x.encode()
        if not isinstance(x, (bytes, bytearray)):
            raise ValueError(f"a tensor of strings holds a {type(x).__name__}")
        out += struct.pack("<I", len(x))
        out += x
    return bytes(out)


def to_array(value: Any) -> np.ndarray:
    """Returns what a model gave as an array. Tensors of PyTorch are brought to the CPU."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def encode(array: np.ndarray, datatype: str) -> Buffer:
    """Returns the bytes of a tensor, without a copy where it lies in one piece."""
    if datatype == BYTES:
        return encode_strings(array)
    return np.ascontiguousarray(array, dtype=TYPES[datatype]).reshape(-1).view(np.uint8).data


def example(specs: Sequence[Spec], rows: int) -> Dict[str, np.ndarray]:
    """Returns zeros, or empty strings, of as many rows. Other open dimensions are 1."""
    out: Dict[str, np.ndarray] = {}
    for s in specs:
        shape = [1 if d < 0 else d for d in s.shape]
        if s.shape and s.shape[0] < 0:
            shape[0] = rows
        if s.datatype == BYTES:
            out[s.name] = np.full(shape, b"", dtype=object)
        else:
            out[s.name] = np.zeros(shape, dtype=TYPES[s.datatype])
    return out
