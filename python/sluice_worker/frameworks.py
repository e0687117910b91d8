"""Frameworks that take long to import: which ones a model uses, and their import before a model is there."""

from __future__ import annotations

import importlib
import sys
from typing import Iterable, List

#: Names that are listed at most, and how many dots they have at most: what is below comes with what is above.
_MOST, _DOTS = 1000, 1


def used(names: Iterable[str]) -> List[str]:
    """Lists the modules of frameworks that have been imported, in the order in which that began."""
    of = set(names)
    out = []
    for name in list(sys.modules):
        parts = name.split(".")
        if parts[0] in of and len(parts) <= _DOTS + 1 and not any(p.startswith("_") for p in parts):
            out.append(name)
    return out[:_MOST]


def bring(modules: Iterable[str]) -> List[str]:
    """Imports modules, and returns those that could be: a model that needs another one will say so itself."""
    out = []
    for name in modules:
        try:
            importlib.import_module(name)
            out.append(name)
        except Exception:
            pass
    return out
