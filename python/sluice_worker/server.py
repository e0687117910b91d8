"""A model as a server of its own: the Open Inference Protocol v2 over gRPC."""

from __future__ import annotations

import collections
import threading
from concurrent import futures
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import grpc
import numpy as np

from . import __version__, errors, messages, model, tensors, wire
from .regions import Regions

_SERVICE = "inference.GRPCInferenceService"

#: Streams whose state is kept; the ones unused for longest are forgotten.
_MOST_STREAMS = 10_000

_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    tensors.BYTES: "bytes_contents",
}


class _Failed(Exception):
    """Ends a call with a status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Service:
    """Answers the protocol's methods for one model. Calls of the model go one at a time."""

    def __init__(self, served: model.Served, name: str, regions: Regions) -> None:
        self._served, self._name, self._regions = served, name, regions
        self._one = threading.Lock()
        self._states: "collections.OrderedDict[str, bytes]" = collections.OrderedDict()

    def _known(self, ask: Mapping[str, Any], key: str = "name") -> None:
        if ask.get(key, "") != self._name:
            raise _Failed(grpc.StatusCode.NOT_FOUND, f"there is no model '{ask.get(key, '')}', only '{self._name}'")

    def ServerLive(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802: the protocol's name
        return {"live": True}

    def ServerReady(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        return {"ready": True}

    def ModelReady(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        return {"ready": ask.get("name", "") == self._name}

    def ServerMetadata(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        return {"name": "sluice-worker", "version": __version__, "extensions": ["system_shared_memory", "sequence"]}

    def ModelMetadata(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        self._known(ask)
        return {
            "name": self._name,
            "versions": ["1"],
            "platform": "python",
            "inputs": [s.describe() for s in self._served.inputs or []],
            "outputs": [s.describe() for s in self._served.outputs or []],
        }

    def ModelConfig(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        self._known(ask)
        batch = self._served.max_batch if self._served.batched and not self._served.each_query else 0
        return {"config": {"name": self._name, "max_batch_size": batch}}

    def SystemSharedMemoryStatus(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        return {"regions": self._regions.status(ask.get("name", ""))}

    def SystemSharedMemoryRegister(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        self._regions.register(
            ask.get("name", ""), ask.get("key", ""), ask.get("offset", 0), ask.get("byte_size", 0)
        )
        return {}

    def SystemSharedMemoryUnregister(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        self._regions.unregister(ask.get("name", ""))
        return {}

    def ModelInfer(self, ask: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: N802
        self._known(ask, "model_name")
        inputs = self._inputs(ask)
        self._served.check_inputs(inputs)
        rows = next((a.shape[0] for a in inputs.values() if a.ndim), 1) if self._served.batched else 1
        if rows > self._served.max_batch and self._served.batched:
            raise errors.Refused(f"the request has {rows} items, the model takes {self._served.max_batch}")
        with self._one:
            stream = self._stream(ask.get("parameters", {}))
            outputs = self._served.infer(inputs, rows, stream)
            if stream is not None and stream.id:
                self._keep(stream)
        return self._answer(ask, outputs)

    def _stream(self, parameters: Mapping[str, Any]) -> Optional[model.Stream]:
        if not self._served.streams:
            return None
        value = {k: next(iter(v.values()), None) for k, v in parameters.items()}
        name = str(value.get("sequence_id") or "")
        begins = bool(value.get("sequence_start"))
        state = None if begins else self._states.get(name)
        return model.Stream(name, begins, bool(value.get("sequence_end")), state)

    def _keep(self, stream: model.Stream) -> None:
        self._states.pop(stream.id, None)
        if stream.state is not None and not stream.ends:
            self._states[stream.id] = bytes(stream.state)
        while len(self._states) > _MOST_STREAMS:
            self._states.popitem(last=False)

    def _inputs(self, ask: Mapping[str, Any]) -> Dict[str, np.ndarray]:
        raw = list(ask.get("raw_input_contents", []))
        declared = {s.name: s.datatype for s in self._served.inputs or []}
        out: Dict[str, np.ndarray] = {}
        for t in ask.get("inputs", []):
            name, datatype, shape = t.get("name", ""), t.get("datatype", ""), t.get("shape", [])
            try:
                if datatype not in tensors.TYPES or declared.get(name, datatype) != datatype:
                    raise ValueError(f"is {datatype!r}, want {declared.get(name, 'a data type of the protocol')}")
                where = {k: next(iter(v.values()), None) for k, v in t.get("parameters", {}).items()}
                if where.get("shared_memory_region"):
                    data: Any = self._regions.read(
                        str(where["shared_memory_region"]),
                        int(where.get("shared_memory_offset") or 0),
                        int(where.get("shared_memory_byte_size") or 0),
                    )
                    out[name] = tensors.decode(data, datatype, shape)
                elif raw:
                    out[name] = tensors.decode(raw.pop(0), datatype, shape)
                else:
                    out[name] = _typed(t.get("contents", {}), datatype, shape)
            except ValueError as error:
                raise errors.Refused(f'input "{name}": {error}') from error
        return out

    def _answer(self, ask: Mapping[str, Any], outputs: Dict[str, np.ndarray]) -> Dict[str, Any]:
        declared = {s.name: s.datatype for s in self._served.outputs or []}
        wanted = {o.get("name", ""): o.get("parameters", {}) for o in ask.get("outputs", [])}
        for name in wanted:
            if name not in outputs:
                raise errors.Refused(f'there is no output "{name}"')
        listed: List[Dict[str, Any]] = []
        raw: List[Any] = []
        for name, array in outputs.items():
            if wanted and name not in wanted:
                continue
            datatype = declared.get(name) or tensors.datatype_of(array.dtype)
            data = tensors.encode(array, datatype)
            about: Dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(array.shape)}
            where = {k: next(iter(v.values()), None) for k, v in wanted.get(name, {}).items()}
            if where.get("shared_memory_region"):
                region, offset = str(where["shared_memory_region"]), int(where.get("shared_memory_offset") or 0)
                self._regions.write(region, offset, int(where.get("shared_memory_byte_size") or 0), data)
                about["parameters"] = {
                    "shared_memory_region": {"string_param": region},
                    "shared_memory_offset": {"int64_param": offset},
                    "shared_memory_byte_size": {"int64_param": len(data)},
                }
            else:
                raw.append(data)
            listed.append(about)
        return {
            "model_name": self._name,
            "model_version": "1",
            "id": ask.get("id"),
            "outputs": listed,
            "raw_output_contents": raw,
        }


def _typed(contents: Mapping[str, Any], datatype: str, shape: List[int]) -> np.ndarray:
    key = _CONTENTS.get(datatype)
    if key is None:
        raise ValueError(f"{datatype} needs raw contents")
    values = contents.get(key, [])
    if len(values) != tensors.elements(shape):
        raise ValueError(f"has {len(values)} elements, its shape {shape} asks for {tensors.elements(shape)}")
    if datatype == tensors.BYTES:
        out = np.empty(len(values), dtype=object)
        out[:] = [bytes(v) for v in values]
        return out.reshape(tuple(shape))
    whole = np.array(values)
    cast = whole.astype(tensors.TYPES[datatype])
    if datatype[:1] in "IU" and not np.array_equal(whole, cast):
        raise ValueError(f"has a number that {datatype} does not hold")
    return cast.reshape(tuple(shape))


def _call(service: Service, name: str) -> Callable[[Dict[str, Any], grpc.ServicerContext], Dict[str, Any]]:
    method = getattr(service, name)

    def run(ask: Dict[str, Any], context: grpc.ServicerContext) -> Dict[str, Any]:
        try:
            return dict(method(ask))
        except errors.Refused as error:
            code, text = grpc.StatusCode.INVALID_ARGUMENT, str(error)
        except _Failed as failed:
            code, text = failed.code, failed.text
        except errors.WrongAnswer as error:
            mark = errors.report(f"{name} gave a wrong answer", error)
            code, text = grpc.StatusCode.INTERNAL, f"the model gave a wrong answer (error {mark})"
        except (Exception, SystemExit) as error:
            mark = errors.report(f"{name} failed", error)
            code, text = grpc.StatusCode.INTERNAL, f"the model failed (error {mark})"
        context.abort(code, text)
        raise AssertionError("abort returns")

    return run


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, service: Service) -> None:
        self._methods: Dict[str, Any] = {}
        for name, (asked, answered) in messages.METHODS.items():
            self._methods[f"/{_SERVICE}/{name}"] = _method(service, name, asked, answered)
        self._methods["/grpc.health.v1.Health/Check"] = grpc.unary_unary_rpc_method_handler(
            lambda ask, context: {"status": 1},
            request_deserializer=lambda data: {},
            response_serializer=lambda m: wire.encode(m, {1: wire.Field("status", "int")}),
        )

    def service(self, details: Any) -> Any:
        return self._methods.get(details.method)


def _method(service: Service, name: str, asked: wire.Table, answered: wire.Table) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        _call(service, name),
        request_deserializer=lambda data: wire.decode(data, asked),
        response_serializer=lambda message: wire.encode(message, answered),
    )


def start(
    served: model.Served, name: str, address: str, shared_memory: str = "", most: int = 64 << 20
) -> Tuple[Any, int]:
    """Starts a server at HOST:PORT or unix:PATH, and returns it with its port."""
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=8),
        options=[
            ("grpc.max_receive_message_length", most),
            ("grpc.max_send_message_length", most),
            ("grpc.so_reuseport", 0),
        ],
    )
    server.add_generic_rpc_handlers((_Handler(Service(served, name, Regions(shared_memory))),))
    port = server.add_insecure_port(address)
    if port == 0:
        raise errors.CannotLoad(f"cannot listen at {address}: is it taken?")
    server.start()
    return server, port
