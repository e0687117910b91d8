"""The backend cases of the ONNX standard: models with inputs, and the outputs that they are to give.

Debian has them as libonnx-testdata, and python3-onnx reads them.
"""

import glob
import os
import re
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

DATATYPES = {
    TensorProto.BOOL: "BOOL", TensorProto.INT8: "INT8", TensorProto.INT16: "INT16", TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64", TensorProto.UINT8: "UINT8", TensorProto.UINT16: "UINT16",
    TensorProto.UINT32: "UINT32", TensorProto.UINT64: "UINT64", TensorProto.FLOAT16: "FP16",
    TensorProto.BFLOAT16: "BF16", TensorProto.FLOAT: "FP32", TensorProto.DOUBLE: "FP64", TensorProto.STRING: "BYTES",
}


class Tensor(NamedTuple):
    """A tensor of a case. The values of BF16 are float32, as python3-onnx reads them."""

    name: str
    datatype: str
    values: np.ndarray


class Case:
    """A case: the model's file, and the name that its folder has in a repository."""

    def __init__(self, path):
        self.path = path
        folder = os.path.dirname(path)
        self.name = re.sub(r"[^A-Za-z0-9_.-]", "_", "__".join(folder.split(os.sep)[-2:]))

    def tensors(self):
        """Returns the inputs and the outputs of the first set of data, or None where one of them is no tensor of the
        protocol."""
        graph = onnx.load(self.path, load_external_data=False).graph
        folder = os.path.join(os.path.dirname(self.path), "test_data_set_0")
        sides = []
        for kind, declared in (("input", graph.input), ("output", graph.output)):
            found = []
            for k in range(len(glob.glob(os.path.join(folder, kind + "_*.pb")))):
                t = None
                if declared[k].type.HasField("tensor_type"):
                    t = read(os.path.join(folder, f"{kind}_{k}.pb"), declared[k])
                if t is None:
                    return None
                found.append(t)
            sides.append(found)
        return sides


def read(path, declared):
    """Reads a tensor of a file, which a model declares; None for one that the protocol cannot carry."""
    t = TensorProto()
    with open(path, "rb") as f:
        t.ParseFromString(f.read())
    datatype = DATATYPES.get(declared.type.tensor_type.elem_type)
    if datatype is None:
        return None
    values = numpy_helper.to_array(t)
    if datatype == "BF16" and values.dtype == np.uint16:  # as the files have it
        values = (values.astype(np.uint32) << 16).view(np.float32)
    if datatype == "BYTES":
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in values.reshape(-1)]
        values = np.array(flat + [None], dtype=object)[:-1].reshape(values.shape)
    return Tensor(declared.name, datatype, values)


def cases(data, pattern=""):
    """Returns the cases of a folder whose names a regular expression is found in."""
    found = [Case(p) for p in sorted(glob.glob(os.path.join(data, "*", "*", "model.onnx")))]
    return [c for c in found if re.search(pattern, c.name)]
