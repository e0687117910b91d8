"""System shared memory of clients: POSIX objects that they have made and registered (Triton's extension)."""

from __future__ import annotations

import os
import stat
import threading
from typing import Any, Dict, NamedTuple

from .errors import Refused

_FOLDER = "/dev/shm"
_MOST = 1024


class _Region(NamedTuple):
    key: str
    offset: int
    size: int
    fd: int


class Regions:
    """The registered regions. They are read and written as files, never mapped: a client may shrink its object."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lock = threading.Lock()
        self._by_name: Dict[str, _Region] = {}

    def register(self, name: str, key: str, offset: int, size: int) -> None:
        """Opens an object whose name begins with the prefix."""
        if not self._prefix:
            raise Refused("shared memory is turned off: start the worker with --shared-memory PREFIX")
        base = key[1:] if key.startswith("/") else key
        if not name or not base or base in (".", "..") or "/" in base or "\0" in base:
            raise Refused(f"key {key!r} is no name of a shared memory object")
        if not ("/" + base).startswith(self._prefix):
            raise Refused(f"key {key!r}: names of objects must begin with {self._prefix}")
        with self._lock:
            if name in self._by_name:
                raise Refused(f"shared memory region '{name}' already in manager")
            if len(self._by_name) >= _MOST:
                raise Refused(f"{_MOST} regions are registered, which is the most")
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                fd = os.open(os.path.join(_FOLDER, base), flags)
            except OSError:
                raise Refused(f"Unable to open shared memory region: '{key}'") from None
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or size < 1 or offset + size > about.st_size:
                os.close(fd)
                raise Refused(f"region '{name}' does not lie in the object '{key}', of {about.st_size} bytes")
            self._by_name[name] = _Region(key, offset, size, fd)

    def unregister(self, name: str) -> None:
        """Closes a region; all for the name ``""``."""
        with self._lock:
            for n in [n for n in self._by_name if not name or n == name]:
                os.close(self._by_name.pop(n).fd)

    def status(self, name: str) -> Dict[str, Dict[str, Any]]:
        """Describes a region; all for the name ``""``."""
        with self._lock:
            if name and name not in self._by_name:
                raise Refused(f"Unable to find system shared memory region: '{name}'")
            return {
                n: {"name": n, "key": r.key, "offset": r.offset, "byte_size": r.size}
                for n, r in self._by_name.items()
                if not name or n == name
            }

    def _within(self, name: str, offset: int, size: int) -> "tuple[_Region, int]":
        region = self._by_name.get(name)
        if region is None:
            raise Refused(f"Unable to find shared memory region: '{name}'")
        if offset < 0 or size < 0 or offset + size > region.size:
            raise Refused(f"Invalid offset + byte size for shared memory region: '{name}'")
        return region, region.offset + offset

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Returns a part of a region."""
        with self._lock:
            region, at = self._within(name, offset, size)
            data = os.pread(region.fd, size, at)
        if len(data) != size:
            raise Refused(f"shared memory region '{name}' has become smaller")
        return data

    def write(self, name: str, offset: int, room: int, data: Any) -> None:
        """Writes to a part of a region."""
        if len(data) > room:
            raise Refused(f"an output of {len(data)} bytes does not fit into {room} of region '{name}'")
        with self._lock:
            region, at = self._within(name, offset, len(data))
            if os.fstat(region.fd).st_size < at + len(data):
                raise Refused(f"shared memory region '{name}' has become smaller")
            os.pwrite(region.fd, data, at)
