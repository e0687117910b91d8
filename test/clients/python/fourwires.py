"""One request by the four wires of the protocol: HTTP with binary data or JSON, gRPC with raw or typed contents."""

import http.client
import json
import re

import grpc
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from wire import binary_body, read_binary, read_strings, strings

NUMPY = {
    "BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8,
    "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "FP16": np.float16, "FP32": np.float32,
    "FP64": np.float64,
}
HALVES = ("FP16", "BF16")  # which the protocol has in binary form only
CONTENTS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}


class Refused(Exception):
    """An answer of the server that is an error."""


class Unwritable(Exception):
    """A request or an answer that a wire has no form for."""


def to_bytes(datatype, values):
    """Returns the elements of a tensor as bytes."""
    if datatype == "BYTES":
        return strings(values.reshape(-1))
    if datatype == "BF16":
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.ascontiguousarray(values, NUMPY[datatype]).tobytes()


def from_bytes(datatype, shape, raw):
    """Returns the elements of a tensor in bytes; those of BF16 as float32."""
    if datatype == "BYTES":
        return np.array(read_strings(bytes(raw)) + [None], dtype=object)[:-1].reshape(shape)
    if datatype == "BF16":
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(raw, NUMPY[datatype]).reshape(shape)


class HTTP:
    """A server over HTTP. Each of its calls is a wire."""

    def __init__(self, address, timeout=60):
        self.address, self.timeout, self.connection = address, timeout, None

    def ask(self, method, path, body=None, headers=None):
        """Returns headers and body of an answer."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=self.timeout)
        try:
            self.connection.request(method, path, body, headers or {})
            r = self.connection.getresponse()
            text = r.read()
        except Exception:
            self.connection = None
            raise
        if r.status != 200:
            raise Refused(f"{r.status} {json.loads(text)['error']}")
        return r.headers, text

    def binary(self, model, inputs):
        """Asks with binary data on both ways."""
        body, n = binary_body([(t.name, t.datatype, t.values.shape, to_bytes(t.datatype, t.values)) for t in inputs],
                              parameters={"binary_data_output": True})
        headers, text = self.ask("POST", f"/v2/models/{model}/infer", body, {"Inference-Header-Content-Length": str(n)})
        head, raw = read_binary(text, int(headers["Inference-Header-Content-Length"]))
        return {o["name"]: (o["datatype"], from_bytes(o["datatype"], o["shape"], raw[o["name"]]))
                for o in head["outputs"]}

    def json(self, model, inputs):
        """Asks with numbers and texts in JSON on both ways."""
        listed = []
        for t in inputs:
            try:
                data = [v.decode() if t.datatype == "BYTES" else v.item() for v in t.values.reshape(-1)]
            except UnicodeDecodeError:
                raise Unwritable("JSON has no form for a text that is no UTF-8") from None
            listed.append({"name": t.name, "datatype": t.datatype, "shape": list(t.values.shape), "data": data})
        try:
            _, text = self.ask("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": listed}),
                               {"Content-Type": "application/json"})
        except Refused as e:
            if re.search(f"({'|'.join(HALVES)}) has no JSON form", str(e)):
                raise Unwritable(str(e)) from None
            raise
        out = {}
        for o in json.loads(text)["outputs"]:
            if o["datatype"] == "BYTES":
                values = np.array([v.encode() for v in o["data"]] + [None], dtype=object)[:-1]
            else:
                values = np.array(o["data"], NUMPY.get(o["datatype"], np.float32))
            out[o["name"]] = (o["datatype"], values.reshape(o["shape"]))
        return out


class GRPC:
    """A server over gRPC. The messages are those that a file of descriptions has. Each of its calls is a wire."""

    def __init__(self, address, messages, timeout=60):
        pool, files = descriptor_pool.DescriptorPool(), descriptor_pb2.FileDescriptorSet()
        with open(messages, "rb") as f:
            files.ParseFromString(f.read())
        for f in files.file:
            pool.Add(f)
        factory = message_factory.MessageFactory(pool)
        request, self.answer = (factory.GetPrototype(pool.FindMessageTypeByName("inference.ModelInfer" + x))
                                for x in ("Request", "Response"))
        self.request, self.timeout = request, timeout
        channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
        self.infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                         request_serializer=request.SerializeToString,
                                         response_deserializer=self.answer.FromString)

    def ask(self, request):
        """Returns the outputs of an answer, whose contents are raw."""
        try:
            r = self.infer(request, timeout=self.timeout)
        except grpc.RpcError as e:
            raise Refused(f"{e.code().name} {e.details()}") from None
        return {o.name: (o.datatype, from_bytes(o.datatype, list(o.shape), raw))
                for o, raw in zip(r.outputs, r.raw_output_contents, strict=True)}

    def raw(self, model, inputs):
        """Asks with bytes."""
        r = self.request(model_name=model)
        for t in inputs:
            r.inputs.add(name=t.name, datatype=t.datatype, shape=t.values.shape)
            r.raw_input_contents.append(to_bytes(t.datatype, t.values))
        return self.ask(r)

    def typed(self, model, inputs):
        """Asks with repeated fields, which there are not of 16-bit floating-point numbers."""
        r = self.request(model_name=model)
        for t in inputs:
            if t.datatype in HALVES:
                raise Unwritable(f"typed contents have no form for {t.datatype}")
            into = r.inputs.add(name=t.name, datatype=t.datatype, shape=t.values.shape).contents
            flat = t.values.reshape(-1)
            getattr(into, CONTENTS[t.datatype]).extend(flat if t.datatype == "BYTES" else flat.tolist())
        return self.ask(r)
