"""The worker of a sluice server: it answers on an inherited socket, and tensors lie in shared memory.

A message is four bytes of length, little-endian, and as many of JSON. The server asks, the worker answers, one at a
time. Tensors are named as in the protocol's JSON, with their place in the shared memory, an anonymous file that only
server and worker have (memfd_create(2)). What a model prints goes to stderr and stdout as it is.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import socket
import struct
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import errors, frameworks, model, tensors

#: Alignment of tensors in shared memory, in bytes.
ALIGN = 64

#: Characters of an error's text that are handed on; the server bounds answers.
_TEXT = 4000


class Memory:
    """The shared memory. The server makes it larger, never smaller."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._map: Optional[mmap.mmap] = None
        self._view = memoryview(b"")

    def part(self, offset: int, size: int) -> memoryview:
        """Returns a part of it."""
        end = offset + size
        if end > len(self._view):
            self._map = mmap.mmap(self._fd, os.fstat(self._fd).st_size)
            self._view = memoryview(self._map)
        if offset < 0 or size < 0 or end > len(self._view):
            raise ValueError(f"bytes {offset} to {end} are not in a memory of {len(self._view)}")
        return self._view[offset:end]


class Worker:
    """Answers the messages of a server."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._served: Optional[model.Served] = None
        self._kept: Optional[Dict[str, np.ndarray]] = None  # outputs that wait for a larger room
        self._kept_state: Optional[bytes] = None

    def answer(self, ask: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns the answer to a message."""
        try:
            return self._answer(ask)
        except errors.Refused as error:
            return {"error": {"kind": "refused", "text": str(error)[:_TEXT]}}
        except (errors.WrongAnswer, errors.CannotLoad) as error:
            kind = "answer" if isinstance(error, errors.WrongAnswer) else "load"
            return {"error": {"kind": kind, "text": str(error)[:_TEXT]}}
        except MemoryError as error:
            return {"error": {"kind": "memory", "id": errors.report("out of memory", error)}}
        except (Exception, SystemExit) as error:  # SystemExit: sys.exit in a model ends its batch, not the worker
            mark = errors.report(f"{ask.get('op')} failed", error)
            return {"error": {"kind": "exception", "id": mark, "text": type(error).__name__}}

    def _answer(self, ask: Mapping[str, Any]) -> Dict[str, Any]:
        op = ask["op"]
        if op == "infer":
            return self._infer(ask)
        if op == "outputs":
            return self._put(ask["room"])
        if op == "load":
            return self._load(ask)
        if op == "import":
            return {"modules": frameworks.bring(ask["modules"])}
        served = self._loaded()
        if op == "warm":
            _forget_peak()
            served.warm_up(int(ask["limit"]))
            return {"modules": frameworks.used(ask.get("frameworks") or [])}
        if op == "sample":
            self._kept, self._kept_state = served.sample(int(ask["rows"])), None
            return self._put(ask["room"])
        if op == "unload":
            self._served = None
            served.unload()
            return {}
        raise ValueError(f"unknown message {op!r}")

    def _loaded(self) -> model.Served:
        if self._served is None:
            raise ValueError("no model is loaded")
        return self._served

    def _load(self, ask: Mapping[str, Any]) -> Dict[str, Any]:
        config = model.Config(ask["config"])
        for key in ("inputs", "outputs"):
            if config.get(key):
                config[key] = {t["name"]: t for t in config[key]}
        self._served = model.load(ask["model"], config)
        return self._served.describe()

    def _infer(self, ask: Mapping[str, Any]) -> Dict[str, Any]:
        served = self._loaded()
        inputs = {}
        for t in ask["inputs"]:
            part = self._memory.part(t["offset"], t["size"])
            inputs[t["name"]] = tensors.decode(part, t["datatype"], t["shape"])
        stream = None
        if ask.get("stream") is not None:
            s = ask["stream"]
            state = None if s.get("state") is None else bytes(self._memory.part(*s["state"]))
            stream = model.Stream(s["id"], bool(s.get("begins")), bool(s.get("ends")), state)
        self._kept = served.infer(inputs, ask["rows"], stream)
        self._kept_state = None if stream is None else stream.state
        return self._put(ask["room"])

    def _put(self, room: List[int]) -> Dict[str, Any]:
        """Writes outputs into a part of the memory. Says how large it must be where they do not fit."""
        kept, state = self._kept or {}, None if self._kept_state is None else bytes(self._kept_state)
        listed: List[Dict[str, Any]] = []
        blocks: List[Tuple[int, tensors.Buffer]] = []  # with their offsets in the room
        at = 0
        declared = {s.name: s.datatype for s in (self._loaded().outputs or []) + (self._loaded().inputs or [])}
        for name, array in kept.items():
            datatype = declared.get(name) or tensors.datatype_of(array.dtype)
            data = tensors.encode(array, datatype)
            listed.append(
                {
                    "name": name,
                    "datatype": datatype,
                    "shape": list(array.shape),
                    "offset": room[0] + at,
                    "size": len(data),
                }
            )
            blocks.append((at, data))
            at += -(-len(data) // ALIGN) * ALIGN
        if state is not None:
            placed = [room[0] + at, len(state)]
            blocks.append((at, state))
            at += len(state)
        if at > room[1]:
            return {"need": at}
        to = self._memory.part(room[0], room[1])
        for begin, block in blocks:
            to[begin : begin + len(block)] = block
        self._kept = self._kept_state = None
        answer: Dict[str, Any] = {"outputs": listed}
        if state is not None:
            answer["state"] = placed
        return answer


def _forget_peak() -> None:
    """Has the kernel count the most memory of this process anew, so that it is that of batches, not of the load."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:  # the peak of the load counts, too
        pass


def _read(sock: socket.socket) -> Optional[bytes]:
    """Returns the next message; None at the end."""
    head = sock.recv(65536)
    while len(head) < 4:
        more = sock.recv(65536)
        if not more:
            return None
        head += more
        if not head:
            return None
    size = struct.unpack_from("<I", head)[0]
    if len(head) == size + 4:
        return head[4:]
    parts, have = [head[4:]], len(head) - 4
    while have < size:
        more = sock.recv(min(1 << 20, size - have))
        if not more:
            return None
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def serve(channel: int, memory: int) -> int:
    """Answers until the server closes the socket. Returns the exit status."""
    limit = int(os.environ.pop("SLUICE_WORKER_DATA", "0"))
    if limit > 0:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sock = socket.socket(fileno=channel)
    os.set_inheritable(channel, False)
    os.set_inheritable(memory, False)
    worker = Worker(Memory(memory))
    hello = json.dumps({"pid": os.getpid(), "python": sys.version.split()[0], "numpy": np.__version__})
    sock.sendall(struct.pack("<I", len(hello)) + hello.encode())
    while True:
        data = _read(sock)
        if data is None:
            return 0
        answer = json.dumps(worker.answer(json.loads(data))).encode()
        sock.sendall(struct.pack("<I", len(answer)) + answer)
