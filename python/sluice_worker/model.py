"""A user's class as a model: found, loaded, described and called."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import os
import sys
import typing
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np

from . import tensors
from .errors import CannotLoad, Refused, WrongAnswer
from .tensors import Spec

#: Items of the largest batch of a model that does not say.
DEFAULT_MAX_BATCH = 64

#: Begins the reference of a file of Python whatever its ending: ``stored:PATH:CLASS``, the class may be empty.
STORED = "stored:"


class Config(Dict[str, Any]):
    """What ``load`` is told: ``name``, ``options`` (texts by name), ``folder`` of the file, and ``cores``."""

    @property
    def options(self) -> Dict[str, str]:
        """The options of the variant."""
        return dict(self.get("options") or {})


@dataclass
class Stream:
    """The stream of a query, for a model with ``streams = True``."""

    id: str
    begins: bool = False
    ends: bool = False
    #: What the query before has left; None at the beginning. ``infer`` sets it to what is kept.
    state: Optional[bytes] = None


class Served:
    """A loaded model."""

    def __init__(self, instance: Any, config: Config) -> None:
        self.instance = instance
        self.name = str(config.get("name") or "model")
        declared = lambda key: config.get(key) or getattr(instance, key, None)  # noqa: E731
        hints = _hints(instance)
        self.inputs: Optional[List[Spec]] = tensors.parse_specs(declared("inputs") or hints[0])
        self.outputs: Optional[List[Spec]] = tensors.parse_specs(declared("outputs") or hints[1])
        self.streams = bool(getattr(instance, "streams", False))
        #: ``infer`` is called for one query at a time, and its outputs may have any number of rows.
        self.each_query = self.streams or bool(getattr(instance, "each_query", False))
        specs = list(self.inputs or [])
        if not self.each_query:
            specs += self.outputs or []
        #: The first dimension of all tensors counts items.
        self.batched = all(len(s.shape) > 0 and s.shape[0] == -1 for s in specs)
        most = getattr(instance, "max_batch", None) or DEFAULT_MAX_BATCH
        self.max_batch = int(most) if self.batched else 1

    def describe(self) -> Dict[str, Any]:
        """Returns the model's metadata."""
        return {
            "inputs": None if self.inputs is None else [s.describe() for s in self.inputs],
            "outputs": None if self.outputs is None else [s.describe() for s in self.outputs],
            "batched": self.batched,
            "max_batch": self.max_batch,
            "streams": self.streams,
            "each_query": self.each_query,
            "sample": callable(getattr(self.instance, "sample", None)),
        }

    def infer(self, inputs: Dict[str, np.ndarray], rows: int, stream: Optional[Stream] = None) -> Dict[str, np.ndarray]:
        """Runs the model and returns outputs that fit its description.

        Raises WrongAnswer for outputs that do not fit, and whatever the model raises.
        """
        if self.streams:
            out = self.instance.infer(inputs, stream or Stream(""))
        else:
            out = self.instance.infer(inputs)
        return self._checked(out, rows)

    def _checked(self, out: Any, rows: int) -> Dict[str, np.ndarray]:
        if not isinstance(out, Mapping):
            raise WrongAnswer(f"infer returned a {type(out).__name__}, want a dict of arrays by name")
        arrays = {str(name): tensors.to_array(value) for name, value in out.items()}
        for spec in self.outputs or []:
            if spec.name not in arrays:
                raise WrongAnswer(f'output "{spec.name}" is missing')
            arrays[spec.name] = _cast(arrays[spec.name], spec)
        if self.outputs is not None:
            arrays = {spec.name: arrays[spec.name] for spec in self.outputs}
        if not arrays:
            raise WrongAnswer("infer returned no outputs")
        if self.batched and not self.each_query:
            for name, array in arrays.items():
                if array.ndim == 0 or array.shape[0] != rows:
                    raise WrongAnswer(
                        f'output "{name}" has shape {list(array.shape)}, want {rows} rows, one for each item'
                    )
        return arrays

    def check_inputs(self, inputs: Dict[str, np.ndarray]) -> None:
        """Raises Refused for inputs that do not fit the description."""
        for spec in self.inputs or []:
            if spec.name not in inputs:
                raise Refused(f'input "{spec.name}" is missing')
            if not spec.fits(inputs[spec.name].shape):
                raise Refused(f'input "{spec.name}" has shape {list(inputs[spec.name].shape)}, want {spec.shape}')

    def sample(self, rows: int) -> Dict[str, np.ndarray]:
        """Returns inputs to try the model with: what its method ``sample`` gives, else zeros and empty strings."""
        own = getattr(self.instance, "sample", None)
        if callable(own):
            given = {str(name): tensors.to_array(value) for name, value in own(rows).items()}
            for spec in self.inputs or []:
                if spec.name not in given:
                    raise CannotLoad(f'sample({rows}) lacks input "{spec.name}"')
                given[spec.name] = _cast(given[spec.name], spec)
            return given
        return tensors.example(self.inputs or [], rows)

    def warm_up(self, limit: int) -> None:
        """Runs the model until it takes its steady time: its own ``warm_up``, then batches of 1, 2, 4, ... limit."""
        own = getattr(self.instance, "warm_up", None)
        if callable(own):
            own()
        if self.inputs is None:
            return
        for rows in _sizes(limit if self.batched else 1):
            for _ in range(2):
                self.infer(self.sample(rows), rows, Stream("warm-up", begins=True, ends=True))

    def unload(self) -> None:
        """Calls the model's ``unload``, if it has one."""
        own = getattr(self.instance, "unload", None)
        if callable(own):
            own()


def _sizes(limit: int) -> List[int]:
    out, n = [], 1
    while n < limit:
        out.append(n)
        n *= 2
    return out + [max(1, limit)]


def _cast(array: np.ndarray, spec: Spec) -> np.ndarray:
    """Returns an array of the spec's type: of another width where only that differs."""
    want = tensors.TYPES[spec.datatype]
    if spec.datatype == tensors.BYTES:
        if array.dtype.kind not in "OSU":
            raise WrongAnswer(f'output "{spec.name}" is {array.dtype}, want strings')
    elif array.dtype != want:
        if not np.can_cast(array.dtype, want, "same_kind"):
            raise WrongAnswer(f'output "{spec.name}" is {array.dtype}, want {spec.datatype}')
        array = array.astype(want)
    if not spec.fits(array.shape):
        raise WrongAnswer(f'output "{spec.name}" has shape {list(array.shape)}, want {spec.shape}')
    return array


def _hints(instance: Any) -> "tuple[Optional[Mapping[str, Any]], Optional[Mapping[str, Any]]]":
    """Reads the annotations of ``infer``: dictionaries of specs, or TypedDicts whose fields are Annotated with them."""
    infer = getattr(type(instance), "infer", None)
    raw = dict(getattr(infer, "__annotations__", {}) or {})
    result = raw.pop("return", None)
    first = next(iter(raw.values()), None)
    scope = getattr(infer, "__globals__", {})
    return _hint(first, scope), _hint(result, scope)


def _hint(value: Any, scope: Dict[str, Any]) -> Optional[Mapping[str, Any]]:
    if isinstance(value, str):  # `from __future__ import annotations`
        try:
            value = eval(value, scope)  # noqa: S307: the user's own annotation
        except Exception:
            return None
    if isinstance(value, Mapping):
        return value
    if not (isinstance(value, type) and issubclass(value, dict) and getattr(value, "__annotations__", None)):
        return None
    out: Dict[str, Any] = {}
    for name, kind in typing.get_type_hints(value, include_extras=True).items():
        meta = getattr(kind, "__metadata__", ())
        if not meta:
            return None
        out[name] = meta[0] if len(meta) == 1 else (meta[0], meta[1])
    return out


def load(reference: str, config: Config) -> Served:
    """Loads a model: ``FILE.py:CLASS``, ``FILE.py``, or a file or folder that a ready-made loader knows."""
    if not reference.startswith(STORED):
        config.setdefault("folder", os.path.dirname(os.path.abspath(reference.split(".py:")[0])))
    factory = find(reference)
    instance = factory()
    if not callable(getattr(instance, "infer", None)):
        raise CannotLoad(f"{reference}: {type(instance).__name__} has no method infer(self, inputs)")
    loader = getattr(instance, "load", None)
    if callable(loader):
        loader(config)
    try:
        return Served(instance, config)
    except (ValueError, KeyError, TypeError) as error:
        raise CannotLoad(f"{reference}: {error}") from error


def find(reference: str) -> Callable[[], Any]:
    """Returns what makes the object of a model."""
    if reference.startswith(STORED):
        path, _, name = reference[len(STORED) :].rpartition(":")
        return _class_of(_module(path, stored=True), "the deployed file", name)
    path, sep, name = reference.rpartition(":")
    if not sep or not path.endswith(".py"):
        path, name = reference, ""
    if not path.endswith(".py"):
        from . import loaders

        return loaders.of(path)
    if not os.path.isfile(path):
        raise CannotLoad(f"there is no file {path}")
    return _class_of(_module(path), path, name)


def _class_of(module: ModuleType, path: str, name: str) -> Callable[[], Any]:
    """Returns the class of a name, or the only one with a method infer."""
    if name:
        made = getattr(module, name, None)
        if made is None:
            raise CannotLoad(f"{path} defines no {name}")
        return _factory(made)
    classes = [
        x
        for x in vars(module).values()
        if inspect.isclass(x) and x.__module__ == module.__name__ and callable(getattr(x, "infer", None))
    ]
    if len(classes) != 1:
        known = ", ".join(c.__name__ for c in classes) or "none"
        raise CannotLoad(f"{path} has {len(classes)} classes with a method infer ({known}): name one as {path}:CLASS")
    return _factory(classes[0])


def _factory(made: Any) -> Callable[[], Any]:
    if inspect.isclass(made):
        return typing.cast("Callable[[], Any]", made)
    return lambda: made


def _module(path: str, stored: bool = False) -> ModuleType:
    """Imports a file. Modules beside it can be imported by it, unless it lies in a server's store."""
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    if not stored and folder not in sys.path:
        sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]
    loader = importlib.machinery.SourceFileLoader(name, path)  # whatever the ending of the file is
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise CannotLoad(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module
