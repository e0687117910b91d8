"""Tests of sluice_worker: ``python -m unittest`` in this folder. What an interpreter lacks is skipped."""

from __future__ import annotations

import importlib.util
import os
import random
import struct
import sys
import tempfile
import types
import typing
import unittest
from multiprocessing import shared_memory
from typing import Any, Dict
from unittest import mock

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sluice_worker import channel, errors, messages, model, tensors, wire  # noqa: E402


def has(name: str) -> bool:
    """Tells whether the interpreter has a package, or must have it: a test of that then fails without."""
    return os.environ.get("SLUICE_PYTHON_TESTS") == "must" or importlib.util.find_spec(name) is not None


def exports() -> bool:
    """Tells whether the interpreter's PyTorch has torch.export (2.1 and newer)."""
    return importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.export") is not None


class Tensors(unittest.TestCase):
    """Specs, and bytes there and back."""

    def test_specs(self) -> None:
        for value in ("FP32[-1,16]", " FP32 [ -1 , 16 ]", ("FP32", [-1, 16]), (np.float32, (-1, 16))):
            spec = tensors.parse_spec("x", value)
            self.assertEqual((spec.datatype, spec.shape), ("FP32", [-1, 16]), value)
        self.assertEqual(tensors.parse_spec("x", (str, [])).datatype, "BYTES")
        for value in ("FP32", "FP31[1]", ("FP32",), 7, "FP32[-2]", "FP32[a]"):
            with self.assertRaises(ValueError, msg=repr(value)):
                tensors.parse_spec("x", value)

    def test_round_trips(self) -> None:
        rng = np.random.default_rng(1)
        for name, dtype in tensors.TYPES.items():
            if name == tensors.BYTES:
                a = np.array([b"", b"a\x00b", "ü".encode()], dtype=object)
            else:
                a = rng.integers(0, 2, size=(2, 3)).astype(dtype)
            b = tensors.decode(bytes(tensors.encode(a, name)), name, list(a.shape))
            self.assertTrue(np.array_equal(a, b), name)

    def test_foreign_bytes(self) -> None:
        rng = random.Random(1)
        for _ in range(2000):
            data = rng.randbytes(rng.randrange(40))
            for name in ("BYTES", "FP32"):
                try:
                    tensors.decode(data, name, [rng.randrange(-1, 5)])
                except ValueError:
                    pass


class Wire(unittest.TestCase):
    """Protocol buffers."""

    ask: Dict[str, Any] = {
        "model_name": "m",
        "id": "7",
        "parameters": {"sequence_id": {"int64_param": -5}, "f": {"double_param": 0.5}, "b": {"bool_param": True}},
        "inputs": [{"name": "x", "datatype": "INT64", "shape": [2, 300], "contents": {"fp32_contents": [1.5, -2.0]}}],
        "raw_input_contents": [b"\x00\x01", b""],
    }

    def test_round_trip(self) -> None:
        data = wire.encode(self.ask, messages.INFER_REQUEST)
        self.assertEqual(wire.decode(data, messages.INFER_REQUEST), self.ask)

    def test_foreign_bytes(self) -> None:
        rng = random.Random(2)
        whole = wire.encode(self.ask, messages.INFER_REQUEST)
        for _ in range(5000):
            data = bytearray(whole)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                wire.decode(bytes(data[: rng.randrange(len(data) + 1)]), messages.INFER_REQUEST)
            except wire.Malformed:
                pass

    @unittest.skipUnless(has("google.protobuf"), "protobuf is not installed")
    def test_like_protobuf(self) -> None:
        from google.protobuf import struct_pb2

        table: wire.Table = {
            1: wire.Field("null_value", "int"),
            2: wire.Field("number_value", "double"),
            3: wire.Field("string_value", "text"),
            4: wire.Field("bool_value", "bool"),
        }
        theirs = struct_pb2.Value(string_value="ü")
        self.assertEqual(wire.decode(theirs.SerializeToString(), table), {"string_value": "ü"})
        theirs.ParseFromString(wire.encode({"number_value": -0.25}, table))
        self.assertEqual(theirs.number_value, -0.25)


class Doubles:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1,2]"}

    def infer(self, inputs: Any) -> Any:
        return {"y": inputs["x"] * 2.0, "more": inputs["x"]}


class In(typing.TypedDict):
    """Annotated inputs."""

    x: "typing.Annotated[np.ndarray, 'FP32', (-1, 2)]"


class Models(unittest.TestCase):
    """Classes as models."""

    def served(self, made: Any, **config: Any) -> model.Served:
        return model.Served(made, model.Config(**config))

    def test_outputs_fit(self) -> None:
        out = self.served(Doubles()).infer({"x": np.ones((3, 2), dtype=np.float64)}, 3)
        self.assertEqual(list(out), ["y"])
        self.assertEqual(out["y"].dtype, np.float32)
        objects = np.zeros((3, 2), dtype=object)
        for wrong in (None, {}, {"y": np.zeros((2, 2))}, {"y": np.zeros((3, 1))}, {"y": objects}):
            made = Doubles()
            made.infer = lambda inputs, wrong=wrong: wrong  # type: ignore[method-assign]
            with self.assertRaises(errors.WrongAnswer, msg=repr(wrong)):
                self.served(made).infer({"x": np.ones((3, 2))}, 3)

    def test_annotations(self) -> None:
        class ByDict:
            def infer(self, inputs: {"x": "FP32[-1,2]"}) -> {"y": "INT64[-1]"}:  # type: ignore  # noqa: F722
                return {"y": np.arange(len(inputs["x"]))}

        class ByType:
            def infer(self, inputs: In) -> Any:
                return {"y": inputs["x"]}

        for made in (ByDict(), ByType()):
            spec = (self.served(made).inputs or [])[0]
            self.assertEqual((spec.name, spec.datatype, spec.shape), ("x", "FP32", [-1, 2]))

    def test_batching(self) -> None:
        self.assertTrue(self.served(Doubles()).batched)
        fixed = Doubles()
        fixed.inputs = {"x": "FP32[2]"}
        self.assertFalse(self.served(fixed).batched)
        self.assertEqual(self.served(fixed).max_batch, 1)

    def test_find(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "app.py")
            with open(os.path.join(folder, "beside.py"), "w") as f:
                f.write("FACTOR = 3\n")
            with open(path, "w") as f:
                f.write(
                    "from beside import FACTOR\n"
                    "class One:\n    def infer(self, inputs): return {'y': inputs['x'] * FACTOR}\n"
                    "class Two(One):\n    def load(self, config): self.folder = config['folder']\n"
                )
            with self.assertRaisesRegex(errors.CannotLoad, "2 classes"):
                model.load(path, model.Config())
            with self.assertRaisesRegex(errors.CannotLoad, "no Three"):
                model.load(path + ":Three", model.Config())
            two = model.load(path + ":Two", model.Config())
            self.assertEqual(two.instance.folder, folder)
            self.assertEqual(two.infer({"x": np.ones(1)}, 1)["y"][0], 3)
            with self.assertRaisesRegex(errors.CannotLoad, "no file"):
                model.load(os.path.join(folder, "none.py"), model.Config())
            with self.assertRaisesRegex(errors.CannotLoad, "is no model"):
                model.load(os.path.join(folder, "none.txt"), model.Config())


class Loaders(unittest.TestCase):
    """Files without a class, with the libraries that the interpreter has."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_torchscript(self) -> None:
        import torch

        torch.manual_seed(1)
        module = torch.nn.Linear(3, 2)
        torch.jit.script(module).save(self.path("m.pt"))
        tensor = {"name": "x", "datatype": "FP32", "shape": [-1, 3]}
        served = model.load(self.path("m.pt"), model.Config(inputs={"x": tensor}, outputs={"y": "FP32[-1,2]"}, cores=1))
        x = np.ones((4, 3), dtype=np.float32)
        want = module(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(served.infer({"x": x}, 4)["y"], want, rtol=1e-6)

    @unittest.skipUnless(has("torch") and not exports(), "this PyTorch has torch.export, or there is none")
    def test_export_needs_a_newer_torch(self) -> None:
        with open(self.path("m.pt2"), "wb"):
            pass
        with self.assertRaisesRegex(errors.CannotLoad, r"m\.pt2 needs PyTorch 2\.1 or newer"):
            model.load(self.path("m.pt2"), model.Config())

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_export_stand_in(self) -> None:
        """Holds what the loader does with a program, on a stand-in for torch.export with the same names."""
        import torch

        module = torch.nn.Linear(3, 2)
        value = types.SimpleNamespace(dtype=torch.float32, shape=(object(), 3))  # an open dimension is no int
        nodes = [
            types.SimpleNamespace(op="placeholder", name="p_weight", meta={}),
            types.SimpleNamespace(op="placeholder", name="x", meta={"val": value}),
            types.SimpleNamespace(op="call_function", name="linear", meta={}),
        ]
        program = types.SimpleNamespace(
            graph=types.SimpleNamespace(nodes=nodes),
            graph_signature=types.SimpleNamespace(user_inputs=("x",)),
            module=lambda: module,
        )
        with open(self.path("m.pt2"), "wb"):
            pass
        loaded = mock.Mock(load=mock.Mock(return_value=program))
        with mock.patch.object(torch, "export", loaded, create=True):
            served = model.load(self.path("m.pt2"), model.Config())
        loaded.load.assert_called_once_with(self.path("m.pt2"))
        spec = (served.inputs or [])[0]
        self.assertEqual((spec.name, spec.datatype, spec.shape), ("x", "FP32", [-1, 3]))
        x = np.ones((2, 3), dtype=np.float32)
        want = module(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(served.infer({"x": x}, 2)["output"], want, rtol=1e-6)

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_hugging_face_stand_in(self) -> None:
        """Holds what the loader does with a folder, on a stand-in for transformers with the same names."""
        import torch

        class Encoding(Dict[str, Any]):
            def to(self, device: str) -> "Encoding":
                return self

        class Tokenizer:
            def __call__(self, texts: Any, padding: bool, truncation: bool, return_tensors: str) -> Encoding:
                assert padding and truncation and return_tensors == "pt", "texts of a batch differ in length"
                return Encoding(input_ids=torch.tensor([[len(t)] for t in texts]))

        class Classifier(torch.nn.Module):  # type: ignore[misc,name-defined]
            config = types.SimpleNamespace(id2label={0: "short", 1: "long"})

            def forward(self, input_ids: Any) -> Any:
                n = input_ids[:, 0].float() - 5
                return types.SimpleNamespace(logits=torch.stack([-n, n], dim=1))

        made = {"AutoTokenizer": Tokenizer(), "AutoModelForSequenceClassification": Classifier()}
        library = types.ModuleType("transformers")
        calls = {}
        for name, value in made.items():
            calls[name] = mock.Mock(return_value=value)
            setattr(library, name, types.SimpleNamespace(from_pretrained=calls[name]))
        with open(self.path("config.json"), "w") as f:
            f.write("{}")
        with mock.patch.dict(sys.modules, transformers=library), mock.patch.dict(os.environ):
            served = model.load(self.folder, model.Config())
            self.assertEqual(os.environ["HF_HUB_OFFLINE"], "1")
        for call in calls.values():
            call.assert_called_once_with(self.folder, local_files_only=True)
        out = served.infer({"text": np.array([b"a", "übermäßig".encode(), b"\xff"], dtype=object)}, 3)
        self.assertEqual(list(out["label"]), [b"short", b"long", b"short"])
        self.assertTrue((out["score"] > 0.5).all())
        served.warm_up(2)
        with mock.patch.dict(sys.modules, transformers=None):
            with self.assertRaisesRegex(errors.CannotLoad, "transformers"):
                model.load(self.folder, model.Config())

    @unittest.skipUnless(exports(), "torch.export is not installed")
    def test_export(self) -> None:
        import torch

        module = torch.nn.Linear(3, 2)
        dim = torch.export.Dim("rows")
        program = torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: dim},))
        torch.export.save(program, self.path("m.pt2"))
        served = model.load(self.path("m.pt2"), model.Config())
        self.assertEqual((served.inputs or [])[0].shape, [-1, 3])

    @unittest.skipUnless(has("sklearn") and has("joblib"), "scikit-learn is not installed")
    def test_scikit_learn(self) -> None:
        import joblib
        from sklearn.linear_model import LogisticRegression

        x = np.array([[0.0, 0.0], [1.0, 1.0]])
        joblib.dump(LogisticRegression().fit(x, ["no", "yes"]), self.path("m.joblib"))
        served = model.load(self.path("m.joblib"), model.Config())
        out = served.infer({"x": x}, 2)
        self.assertEqual(list(out["y"]), ["no", "yes"])
        self.assertEqual(out["probabilities"].shape, (2, 2))

    @unittest.skipUnless(has("xgboost"), "xgboost is not installed")
    def test_xgboost(self) -> None:
        import xgboost

        x = np.arange(8, dtype=np.float32).reshape(4, 2)
        booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(x, np.array([0, 0, 1, 1])), 3)
        booster.save_model(self.path("m.json"))
        out = model.load(self.path("m.json"), model.Config(cores=1)).infer({"x": x}, 4)
        np.testing.assert_allclose(out["y"], booster.predict(xgboost.DMatrix(x)), rtol=1e-6)

    def test_folders_are_local(self) -> None:
        with self.assertRaisesRegex(errors.CannotLoad, "config.json"):
            model.load(self.folder, model.Config())
        with self.assertRaisesRegex(errors.CannotLoad, "is no model"):
            model.load("bert-base-uncased", model.Config())  # the name of a model that would be downloaded


class Channel(unittest.TestCase):
    """What a worker answers to its server."""

    def worker(self, made: Any) -> channel.Worker:
        fd = os.memfd_create("test")
        os.ftruncate(fd, 1 << 16)
        out = channel.Worker(channel.Memory(fd))
        out._served = model.Served(made, model.Config())
        return out

    def test_room(self) -> None:
        w = self.worker(Doubles())
        ask = {"op": "infer", "rows": 1, "room": [64, 4]}
        ask["inputs"] = [{"name": "x", "datatype": "FP32", "shape": [1, 2], "offset": 0, "size": 8}]
        w._memory.part(0, 8)[:] = struct.pack("<2f", 1, 2)
        need = w.answer(ask)["need"]
        out = w.answer({"op": "outputs", "room": [64, need]})["outputs"][0]
        self.assertEqual(struct.unpack("<2f", w._memory.part(out["offset"], out["size"])), (2, 4))

    def test_streams(self) -> None:
        class Counts:
            inputs = {"x": "INT64[-1]"}
            outputs = {"n": "INT64[-1]"}
            streams = True

            def infer(self, inputs: Any, stream: model.Stream) -> Any:
                n = 1 + (0 if stream.state is None else int(stream.state))
                stream.state = str(n).encode()
                return {"n": np.array([n])}

        w = self.worker(Counts())
        ask: Dict[str, Any] = {"op": "infer", "rows": 1, "room": [4096, 4096], "stream": {"id": "a", "state": None}}
        ask["inputs"] = [{"name": "x", "datatype": "INT64", "shape": [1], "offset": 0, "size": 8}]
        for want in (b"1", b"2", b"3"):
            out = w.answer(ask)
            self.assertEqual(bytes(w._memory.part(*out["state"])), want)
            ask["stream"]["state"] = out["state"]

    def test_wrong_places(self) -> None:
        w = self.worker(Doubles())
        for offset, size in ((1 << 40, 8), (-8, 8), (0, 7)):
            ask = {"op": "infer", "rows": 1, "room": [64, 64]}
            ask["inputs"] = [{"name": "x", "datatype": "FP32", "shape": [1, 2], "offset": offset, "size": size}]
            self.assertIn("error", w.answer(ask))


@unittest.skipUnless(has("grpc"), "grpcio is not installed")
class Alone(unittest.TestCase):
    """A worker as a server of its own."""

    def setUp(self) -> None:
        import grpc

        from sluice_worker import server

        served = model.Served(Doubles(), model.Config())
        self.running, port = server.start(served, "m", "127.0.0.1:0", "/sluice-test-")
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.refused = grpc.RpcError

    def tearDown(self) -> None:
        self.channel.close()
        self.running.stop(0).wait()

    def call(self, name: str, ask: Dict[str, Any]) -> Dict[str, Any]:
        asked, answered = messages.METHODS[name]
        method = self.channel.unary_unary(
            f"/inference.GRPCInferenceService/{name}",
            request_serializer=lambda m: wire.encode(m, asked),
            response_deserializer=lambda data: wire.decode(data, answered),
        )
        return dict(method(ask, timeout=30))

    def test_calls(self) -> None:
        self.assertTrue(self.call("ServerReady", {})["ready"])
        self.assertEqual(self.call("ModelMetadata", {"name": "m"})["inputs"][0]["shape"], [-1, 2])
        x = {"name": "x", "datatype": "FP32", "shape": [1, 2]}
        ask = {"model_name": "m", "inputs": [x], "raw_input_contents": [struct.pack("<2f", 1, 2)]}
        self.assertEqual(bytes(self.call("ModelInfer", ask)["raw_output_contents"][0]), struct.pack("<2f", 2, 4))
        typed = {"model_name": "m", "inputs": [{**x, "contents": {"fp32_contents": [1, 2]}}]}
        self.assertEqual(bytes(self.call("ModelInfer", typed)["raw_output_contents"][0]), struct.pack("<2f", 2, 4))
        for wrong in ({"model_name": "n"}, {"model_name": "m"}, {**ask, "raw_input_contents": [b"1"]}):
            with self.assertRaises(self.refused):
                self.call("ModelInfer", wrong)

    def test_shared_memory(self) -> None:
        block = shared_memory.SharedMemory(name=f"sluice-test-{os.getpid()}", create=True, size=64)
        try:
            block.buf[:8] = struct.pack("<2f", 1, 2)
            self.call("SystemSharedMemoryRegister", {"name": "r", "key": "/" + block.name, "byte_size": 64})
            self.assertEqual(self.call("SystemSharedMemoryStatus", {})["regions"]["r"]["byte_size"], 64)

            def at(offset: int) -> Dict[str, Any]:
                return {
                    "shared_memory_region": {"string_param": "r"},
                    "shared_memory_offset": {"int64_param": offset},
                    "shared_memory_byte_size": {"int64_param": 8},
                }

            self.call(
                "ModelInfer",
                {
                    "model_name": "m",
                    "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": at(0)}],
                    "outputs": [{"name": "y", "parameters": at(8)}],
                },
            )
            self.assertEqual(struct.unpack("<2f", block.buf[8:16]), (2, 4))
            with self.assertRaises(self.refused):
                self.call("SystemSharedMemoryRegister", {"name": "s", "key": "/other", "byte_size": 8})
            self.call("SystemSharedMemoryUnregister", {"name": "r"})
        finally:
            block.close()
            block.unlink()


if __name__ == "__main__":
    unittest.main()
