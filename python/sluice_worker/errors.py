"""Errors of models, and what may be said of them."""

from __future__ import annotations

import sys
import traceback
import uuid


class Refused(Exception):
    """A model raises it for an input that it does not take. Its text goes to the client."""


class WrongAnswer(Exception):
    """A model's outputs do not fit what the model declares. The text names tensors and shapes, never their content."""


class CannotLoad(Exception):
    """A model cannot be loaded. The text says what is missing and what to do."""


def report(what: str, error: BaseException) -> str:
    """Writes an exception with its traceback to stderr, under an id that it returns.

    Clients are told the id alone: texts of exceptions can hold secrets.
    """
    mark = uuid.uuid4().hex[:12]
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    sys.stderr.write(f"error {mark}: {what}\n" + "".join(lines))
    sys.stderr.flush()
    return mark
