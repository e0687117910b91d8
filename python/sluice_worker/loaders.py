"""Ready-made models: files and folders that need no class of their own. Nothing is ever downloaded."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from . import tensors
from .errors import CannotLoad
from .model import Config


def of(path: str) -> Callable[[], Any]:
    """Returns the maker of the model for a file or folder."""
    if os.path.isdir(path):
        if os.path.isfile(os.path.join(path, "config.json")):
            return lambda: HuggingFace(path)
        raise CannotLoad(f"the folder {path} has no config.json, which a Hugging Face model has")
    kinds: Dict[str, Callable[[str], Any]] = {
        ".pt": TorchScript,
        ".pth": TorchScript,
        ".pt2": Exported,
        ".joblib": ScikitLearn,
        ".json": XGBoost,
        ".ubj": XGBoost,
    }
    kind = os.path.splitext(path)[1]
    if kind not in kinds:
        raise CannotLoad(f"{path} is no model: want FILE.py, FILE.py:CLASS, {', '.join(kinds)} or a folder")
    made = kinds[kind]
    if not os.path.isfile(path):
        raise CannotLoad(f"there is no file {path}")
    return lambda: made(path)


def _names(config: Config, key: str, default: str) -> List[str]:
    given = config.get(key)
    return list(given) if given else [default]


class _Torch:
    """What models of PyTorch share: inputs by position, outputs by position."""

    inputs: Optional[Dict[str, Any]] = None
    outputs: Optional[Dict[str, Any]] = None

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, config: Config) -> None:
        try:
            import torch
        except ImportError as error:
            raise CannotLoad(f"{self.path} needs PyTorch, which this interpreter lacks: {error}") from error
        self.torch = torch
        if config.get("cores"):
            torch.set_num_threads(max(1, int(config["cores"])))
        self.device = config.options.get("device", "cpu")
        self.taken = _names(config, "inputs", "input")
        self.given = _names(config, "outputs", "output")
        self.module = self._module()

    def _module(self) -> Any:
        raise NotImplementedError

    def infer(self, inputs: Dict[str, np.ndarray]) -> Dict[str, Any]:
        names = self.taken if set(self.taken) <= set(inputs) else sorted(inputs)
        with self.torch.inference_mode():
            args = [self.torch.from_numpy(np.array(inputs[n])).to(self.device) for n in names]
            out = self.module(*args)
        if isinstance(out, dict):
            return dict(out)
        listed = list(out) if isinstance(out, (tuple, list)) else [out]
        given = self.given if len(self.given) == len(listed) else [f"output_{k}" for k in range(len(listed))]
        return dict(zip(given, listed))


class TorchScript(_Torch):
    """A file of ``torch.jit.save``. It says nothing of shapes: the configuration must list the tensors."""

    def _module(self) -> Any:
        return self.torch.jit.load(self.path, map_location=self.device).eval()


class Exported(_Torch):
    """A file of ``torch.export.save``. Shapes follow from the program where the configuration lists none."""

    def _module(self) -> Any:
        try:
            from torch import export  # type: ignore[attr-defined]
        except ImportError as error:
            raise CannotLoad(f"{self.path} needs PyTorch 2.1 or newer (torch.export): {error}") from error
        program = export.load(self.path)
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        wanted = set(program.graph_signature.user_inputs)
        found = [n for n in placeholders if n.name in wanted]
        self.inputs = {n.name: _traced(n.meta["val"]) for n in found}
        if self.taken == ["input"]:
            self.taken = [n.name for n in found]
        return program.module().to(self.device)


def _traced(value: Any) -> "tuple[str, List[int]]":
    """Returns the type and shape of a traced tensor. Symbolic dimensions are open."""
    kind = str(value.dtype).rsplit(".", 1)[-1]
    name = "BF16" if kind == "bfloat16" else tensors.datatype_of(kind)
    return name, [d if isinstance(d, int) else -1 for d in value.shape]


class HuggingFace:
    """A folder with a model for sequence classification and its tokenizer, as ``save_pretrained`` writes both."""

    inputs = {"text": "BYTES[-1]"}
    outputs = {"label": "BYTES[-1]", "score": "FP32[-1]"}

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, config: Config) -> None:
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        try:
            import torch
            import transformers
        except ImportError as error:
            raise CannotLoad(f"{self.path} needs transformers and PyTorch: {error}") from error
        self.torch = torch
        if config.get("cores"):
            torch.set_num_threads(max(1, int(config["cores"])))
        self.device = config.options.get("device", "cpu")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.path, local_files_only=True)
        self.module = transformers.AutoModelForSequenceClassification.from_pretrained(
            self.path, local_files_only=True
        )
        self.module.eval().to(self.device)

    def sample(self, rows: int) -> Dict[str, Any]:
        return {"text": np.full(rows, b"a text of some words, as they come", dtype=object)}

    def infer(self, inputs: Dict[str, np.ndarray]) -> Dict[str, Any]:
        texts = [bytes(x).decode("utf-8", "replace") for x in inputs["text"].ravel()]
        tokens = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(self.device)
        with self.torch.inference_mode():
            scores = self.module(**tokens).logits.softmax(dim=-1).cpu().numpy()
        best = scores.argmax(axis=1)
        labels = self.module.config.id2label
        return {
            "label": np.array([str(labels[int(k)]).encode() for k in best], dtype=object),
            "score": scores[np.arange(len(best)), best].astype(np.float32),
        }


class ScikitLearn:
    """An estimator that ``joblib.dump`` has written. A file of joblib runs code when it is read: trust its source."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, config: Config) -> None:
        try:
            import joblib
        except ImportError as error:
            raise CannotLoad(f"{self.path} needs joblib and scikit-learn: {error}") from error
        self.estimator = joblib.load(self.path)
        width = int(getattr(self.estimator, "n_features_in_", -1))
        self.inputs = {"x": ("FP64", [-1, width])}
        classes = getattr(self.estimator, "classes_", None)
        self.probabilities = classes is not None and callable(getattr(self.estimator, "predict_proba", None))
        kind = "FP64" if classes is None else tensors.datatype_of(np.asarray(classes).dtype)
        self.outputs = {"y": (kind, [-1])}
        if classes is not None and self.probabilities:
            self.outputs["probabilities"] = ("FP64", [-1, len(classes)])

    def infer(self, inputs: Dict[str, np.ndarray]) -> Dict[str, Any]:
        out: Dict[str, Any] = {"y": self.estimator.predict(inputs["x"])}
        if self.probabilities:
            out["probabilities"] = self.estimator.predict_proba(inputs["x"])
        return out


class XGBoost:
    """A model that ``Booster.save_model`` has written."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, config: Config) -> None:
        try:
            import xgboost
        except ImportError as error:
            raise CannotLoad(f"{self.path} needs xgboost: {error}") from error
        self.xgboost = xgboost
        self.booster = xgboost.Booster(model_file=self.path)
        if config.get("cores"):
            self.booster.set_param({"nthread": max(1, int(config["cores"]))})
        self.inputs = {"x": ("FP32", [-1, int(self.booster.num_features())])}
        out = self.booster.inplace_predict(np.zeros((1, int(self.booster.num_features())), dtype=np.float32))
        self.outputs = {"y": ("FP32", [-1] + list(np.asarray(out).shape[1:]))}

    def infer(self, inputs: Dict[str, np.ndarray]) -> Dict[str, Any]:
        return {"y": self.booster.inplace_predict(inputs["x"])}
