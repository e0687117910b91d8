"""What the cases share: bodies of the protocol over HTTP, and regions of shared memory."""

import contextlib
import json
import os
import struct

import numpy as np

ONES = np.arange(16, dtype=np.int32).reshape(1, 16)
TWOS = np.full((1, 16), 2, dtype=np.int32)


def check(what, got, want):
    """Fails unless got equals want."""
    same = np.array_equal(got, want) if isinstance(want, np.ndarray) else got == want
    if not same:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def contains(what, text, part):
    """Fails unless part is in text."""
    if part not in text:
        raise AssertionError(f"{what}: {part!r} is not in {text!r}")


def strings(values):
    """Encodes byte strings as a BYTES tensor: each behind its length."""
    return b"".join(struct.pack("<I", len(v)) + v for v in values)


def read_strings(raw):
    """Decodes a BYTES tensor."""
    out = []
    while raw:
        (n,) = struct.unpack_from("<I", raw)
        out.append(raw[4:4 + n])
        raw = raw[4 + n:]
    return out


def binary_body(tensors, **more):
    """Returns the body of a request with tensors of (name, datatype, shape, bytes), and the length of its JSON."""
    head = dict(more, inputs=[
        {"name": n, "datatype": t, "shape": list(s), "parameters": {"binary_data_size": len(raw)}}
        for n, t, s, raw in tensors
    ])
    text = json.dumps(head).encode()
    return text + b"".join(raw for *_, raw in tensors), len(text)


def read_binary(body, json_length):
    """Returns the JSON of an answer and the bytes of its outputs, by name."""
    head = json.loads(body[:json_length])
    at, raw = json_length, {}
    for o in head["outputs"]:
        n = o.get("parameters", {}).get("binary_data_size")
        if n is not None:
            raw[o["name"]] = body[at:at + n]
            at += n
    check("bytes behind the last output", len(body), at)
    return head, raw


def simple():
    """Returns the tensors of a request to the model simple, as binary_body takes them."""
    return [("INPUT0", "INT32", ONES.shape, ONES.tobytes()), ("INPUT1", "INT32", TWOS.shape, TWOS.tobytes())]


@contextlib.contextmanager
def region(size):
    """Makes an object of shared memory. Yields its key and its path."""
    key = f"/sluice-judge-{os.getpid()}"
    path = "/dev/shm" + key
    with open(path, "wb") as f:
        f.truncate(size)
    try:
        yield key, path
    finally:
        os.unlink(path)
