"""Serves a Python class over the Open Inference Protocol v2.

A model is a class with a method ``infer``; everything else is optional::

    class Model:
        inputs = {"x": "FP32[-1,4]"}
        outputs = {"y": "FP32[-1]"}

        def infer(self, inputs):
            return {"y": inputs["x"].sum(axis=1)}

``python -m sluice_worker FILE.py:Model --port 8001`` serves it alone. A sluice server starts it by itself
(``variants[].python`` in ``sluice.yaml``). docs/python.md of sluice describes the class.
"""

from .errors import Refused
from .model import Config, Stream
from .tensors import Spec

__all__ = ["Config", "Refused", "Spec", "Stream"]
__version__ = "0.1.0"
