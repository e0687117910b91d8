"""Serves a model alone: ``python -m sluice_worker FILE.py:Model --port 8001``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import List, Optional

from . import model
from .errors import CannotLoad


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs until it is interrupted. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m sluice_worker", description="Serves a model over the Open Inference Protocol v2 (gRPC)."
    )
    parser.add_argument("model", help="FILE.py:CLASS, FILE.py, or a file or folder of a ready-made loader")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8001, help="port to listen at (8001), 0 for a free one")
    parser.add_argument("--socket", default="", help="path of a Unix socket to listen at instead")
    parser.add_argument("--name", default="", help="name of the model (that of its file)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="option for the class")
    parser.add_argument(
        "--shared-memory", default="", metavar="PREFIX", help="prefix of shared memory objects that clients may use"
    )
    given = parser.parse_args(arguments)
    name = given.name or os.path.splitext(os.path.basename(given.model.split(".py:")[0]))[0]
    options = dict(o.partition("=")[::2] for o in given.option)
    try:
        from . import server

        served = model.load(given.model, model.Config(name=name, options=options, cores=0))
        served.warm_up(served.max_batch)
        address = f"unix:{given.socket}" if given.socket else f"{given.host}:{given.port}"
        running, port = server.start(served, name, address, given.shared_memory)
    except (CannotLoad, ImportError) as error:
        print(f"sluice_worker: {error}", file=sys.stderr)
        return 1
    print(f"serving {name} at {given.socket or f'{given.host}:{port}'}", flush=True)
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    stop.wait()
    running.stop(5).wait()
    served.unload()
    return 0


if __name__ == "__main__":
    sys.exit(main())
