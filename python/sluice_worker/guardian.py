"""The process that stands over a worker, so that nothing a worker starts outlives the server.

The server starts the guardian; the guardian forks the worker before anything large is imported. It does nothing but
wait. It ends everything below it when the server is gone (its end of the lifeline closes, whatever killed it), when
the server asks for that (the same), and when the worker has ended. As a subreaper (prctl(2)) it also finds processes
that left the worker's process group. If the guardian itself is killed, the kernel kills the worker.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from typing import List

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

#: Rounds of killing what is left, and the pause between two, in seconds.
_ROUNDS, _PAUSE = 200, 0.01


def _prctl(option: int, value: int) -> None:
    try:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (AttributeError, OSError):  # not Linux
        pass


def stand(lifeline: int, workers: List[int]) -> None:
    """Forks. Returns in the worker; the guardian waits and exits with the worker's status, 128 + N for signal N.

    The descriptors workers are the worker's alone: the server sees by them that it has ended.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # SIGCHLD wakes poll through this pipe.
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        for fd in (wake, waker, lifeline):
            os.close(fd)
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:  # it died in between
            os._exit(1)
        return
    try:
        os.setpgid(worker, worker)
    except OSError:  # the worker has done so, or has ended
        pass
    for fd in workers:
        os.close(fd)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for quiet in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a terminal's: the server says when to end
        signal.signal(quiet, signal.SIG_IGN)
    status = 0
    poller = select.poll()
    poller.register(lifeline, select.POLLIN | select.POLLHUP)
    poller.register(wake, select.POLLIN)
    try:
        while True:
            ended, status = _reap(worker)
            if ended:
                break
            events = dict(poller.poll())
            if lifeline in events:
                break
            if wake in events:
                os.read(wake, 4096)
    finally:
        status = _kill(worker, status)
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    os._exit(code)


def _reap(worker: int) -> "tuple[bool, int]":
    """Collects processes that have ended. Tells whether the worker is one of them, and its status."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True, 0
        if pid == 0:
            return False, 0
        if pid == worker:
            return True, status


def _kill(worker: int, status: int) -> int:
    """Ends everything below this process. A process group dies at once, so that a fork bomb cannot outrun it.

    Returns the status of the worker, which is the given one unless it is collected here.
    """
    for _ in range(_ROUNDS):
        try:
            os.killpg(worker, signal.SIGKILL)
        except OSError:
            pass
        for pid in _children():
            try:
                group = os.getpgid(pid)
                if group not in (worker, os.getpgrp()):
                    os.killpg(group, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has ended
                pass
        try:
            while True:
                pid, how = os.waitpid(-1, os.WNOHANG)
                if pid == worker:
                    status = how
                if pid == 0:
                    break
        except ChildProcessError:
            break
        time.sleep(_PAUSE)
    return status


def _children() -> List[int]:
    """Lists the children of this process. Those of a child that has ended become its own, since it is a subreaper."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children") as f:
            return [int(x) for x in f.read().split()]
    except (OSError, ValueError):
        return []


def main(lifeline: int, channel: int, memory: int) -> None:
    """Stands over a worker that talks to the server through the descriptors channel and memory."""
    stand(lifeline, [channel, memory])
    from . import channel as serving

    sys.exit(serving.serve(channel, memory))
