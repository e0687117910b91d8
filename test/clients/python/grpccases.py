"""Cases over gRPC, by its implementation in C++ and the messages that protoc makes for Python."""

import queue
import threading

import grpc
import numpy as np
from internal.api.oip.pb import open_inference_pb2 as pb
from internal.api.oip.pb import open_inference_pb2_grpc

from wire import ONES, TWOS, check, contains, read_strings, region, strings


class client:
    """A connection, and its calls."""

    def __init__(self, address, **more):
        self.channel = grpc.insecure_channel(address, **more)

    def __enter__(self):
        return open_inference_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def __exit__(self, *_):
        self.channel.close()


def tensor(name, datatype, shape, **parameters):
    t = pb.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=shape)
    set_all(t.parameters, parameters)
    return t


def set_all(into, parameters):
    """Sets parameters, each of the kind that its value has."""
    for key, value in parameters.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param"}[type(value)]
        setattr(into[key], kind, value)


def simple(**more):
    return pb.ModelInferRequest(
        model_name="simple",
        inputs=[tensor("INPUT0", "INT32", [1, 16]), tensor("INPUT1", "INT32", [1, 16])],
        raw_input_contents=[ONES.tobytes(), TWOS.tobytes()], **more)


def adding(value, **parameters):
    r = pb.ModelInferRequest(model_name="adding", inputs=[tensor("x", "INT32", [1, 1])],
                             raw_input_contents=[np.int32(value).tobytes()])
    set_all(r.parameters, parameters)
    return r


def ints(raw):
    return np.frombuffer(raw, np.int32)


def fails(what, code, call, *args, **more):
    """Fails unless a call ends with a status. Returns what the status says."""
    try:
        call(*args, **more)
    except grpc.RpcError as e:
        check(f"{what}: {e.details()}", e.code(), code)
        return e.details()
    raise AssertionError(f"{what}: it succeeds")


def case_health_and_metadata(_, a):
    with client(a) as c:
        check("live", c.ServerLive(pb.ServerLiveRequest(), timeout=30).live, True)
        check("ready", c.ServerReady(pb.ServerReadyRequest()).ready, True)
        check("model", c.ModelReady(pb.ModelReadyRequest(name="simple")).ready, True)
        check("no model", c.ModelReady(pb.ModelReadyRequest(name="none")).ready, False)
        m = c.ModelMetadata(pb.ModelMetadataRequest(name="simple"))
        check("inputs", [(x.name, x.datatype, list(x.shape)) for x in m.inputs],
              [("INPUT0", "INT32", [-1, 16]), ("INPUT1", "INT32", [-1, 16])])
        check("largest batch", c.ModelConfig(pb.ModelConfigRequest(name="simple")).config.max_batch_size, 8)
        contains("index", [x.name for x in c.RepositoryIndex(pb.RepositoryIndexRequest()).models], "simple")
        contains("extensions", c.ServerMetadata(pb.ServerMetadataRequest()).extensions, "system_shared_memory")


def case_infer_raw(_, a):
    with client(a) as c:
        r = c.ModelInfer(simple(id="seven"), timeout=30)
        check("id", r.id, "seven")
        check("names", [o.name for o in r.outputs], ["OUTPUT0", "OUTPUT1"])
        check("sum", ints(r.raw_output_contents[0]), (ONES + TWOS).flatten())
        check("difference", ints(r.raw_output_contents[1]), (ONES - TWOS).flatten())


def case_infer_typed(_, a):
    r = simple()
    del r.raw_input_contents[:]
    for t, values in zip(r.inputs, (ONES, TWOS)):
        t.contents.int_contents.extend(values.flatten().tolist())
    with client(a) as c:
        got = c.ModelInfer(r, timeout=30)
        check("sum", ints(got.raw_output_contents[0]), (ONES + TWOS).flatten())


def case_compression(_, a):
    for coding in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        with client(a, compression=coding) as c:
            got = c.ModelInfer(simple(), timeout=30)
            check("sum", ints(got.raw_output_contents[0]), (ONES + TWOS).flatten())


def case_strings(_, a):
    values = [b"plain", b"nul\0inside", b"\xff\xfe", b""]
    with client(a) as c:
        got = c.ModelInfer(pb.ModelInferRequest(
            model_name="strings", inputs=[tensor("INPUT0", "BYTES", [1, 4])],
            raw_input_contents=[strings(values)]), timeout=30)
        check("strings", read_strings(got.raw_output_contents[0]), values)


def case_classification(_, a):
    out = pb.ModelInferRequest.InferRequestedOutputTensor(name="y")
    set_all(out.parameters, {"classification": 1})
    with client(a) as c:
        got = c.ModelInfer(pb.ModelInferRequest(
            model_name="scores", inputs=[tensor("x", "FP32", [1, 3])], outputs=[out],
            raw_input_contents=[np.float32([0.5, 2, 1]).tobytes()]), timeout=30)
        check("class", read_strings(got.raw_output_contents[0]), [b"2.000000:1:cat"])


def case_sequences_on_a_stream(_, a):
    requests, want = [], []
    totals = {7: 0, 8: 0}
    for k in range(1, 6):
        for s in totals:
            totals[s] += k * s
            want.append(totals[s])
            requests.append(adding(k * s, sequence_id=s, sequence_start=k == 1, sequence_end=k == 5))
    with client(a) as c:
        got = list(c.ModelStreamInfer(iter(requests), timeout=30))
    check("errors", [r.error_message for r in got], [""] * len(want))
    check("sums, in the order of the requests", [int(ints(r.infer_response.raw_output_contents[0])[0]) for r in got],
          want)


def case_an_error_does_not_end_a_stream(_, a):
    wrong = simple()
    wrong.model_name = "none"
    with client(a) as c:
        got = list(c.ModelStreamInfer(iter([simple(id="1"), wrong, simple(id="3")]), timeout=30))
    check("errors", [bool(r.error_message) for r in got], [False, True, False])
    check("ids", [got[0].infer_response.id, got[2].infer_response.id], ["1", "3"])


def case_errors(_, a):
    invalid, missing = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
    with client(a) as c:
        r = simple()
        r.model_name = "none"
        contains("model", fails("model", missing, c.ModelInfer, r), "none")
        fails("version", missing, c.ModelInfer, simple(model_version="9"))
        r = simple()
        r.inputs[0].name = "X"
        contains("name", fails("name", invalid, c.ModelInfer, r), "X")
        r = simple()
        r.raw_input_contents[0] = b"\0" * 60
        contains("size", fails("size", invalid, c.ModelInfer, r), "INPUT0")
        r = simple()
        r.inputs[0].shape[:] = [-1, 16]
        fails("shape", invalid, c.ModelInfer, r)
        r = simple()
        set_all(r.parameters, {"timeout": 1})
        fails("deadline", grpc.StatusCode.DEADLINE_EXCEEDED, c.ModelInfer, r)
        fails("CUDA", grpc.StatusCode.UNIMPLEMENTED, c.CudaSharedMemoryRegister,
              pb.CudaSharedMemoryRegisterRequest(name="c"))


def case_timeouts_and_cancellation(_, a):
    slow = pb.ModelInferRequest(model_name="slow", inputs=[tensor("x", "FP32", [1, 1])],
                                raw_input_contents=[np.float32([1]).tobytes()])
    with client(a) as c:
        fails("the client's own deadline", grpc.StatusCode.DEADLINE_EXCEEDED, c.ModelInfer, slow, timeout=0.001)
        call = c.ModelInfer.future(slow)
        call.cancel()
        check("cancelled", call.cancelled(), True)
        # The server goes on with what others want.
        check("slow", len(c.ModelInfer(slow, timeout=60).raw_output_contents[0]), 4)


def case_calls_under_way_at_once(_, a):
    done = queue.Queue()
    with client(a) as c:
        for k in range(64):
            c.ModelInfer.future(simple(id=str(k)), timeout=30).add_done_callback(done.put)
        got = [done.get(timeout=30).result() for _ in range(64)]
    check("ids", sorted(int(r.id) for r in got), list(range(64)))
    for r in got:
        check("sum", ints(r.raw_output_contents[0]), (ONES + TWOS).flatten())


def case_a_stream_is_cancelled(_, a):
    never = threading.Event()

    def requests():
        yield simple(id="first")
        never.wait(30)

    with client(a) as c:
        call = c.ModelStreamInfer(requests())
        check("first", next(call).infer_response.id, "first")
        call.cancel()
        never.set()
        try:
            next(call)
        except grpc.RpcError as e:
            check("status", e.code(), grpc.StatusCode.CANCELLED)
        check("others are answered", c.ModelInfer(simple(id="next"), timeout=30).id, "next")


def case_shared_memory(_, a):
    with region(192) as (key, path), client(a) as c:
        with open(path, "r+b") as f:
            f.write(ONES.tobytes() + TWOS.tobytes())
        c.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="g", key=key, byte_size=192))
        try:
            def part(offset):
                return {"shared_memory_region": "g", "shared_memory_offset": offset, "shared_memory_byte_size": 64}
            out = pb.ModelInferRequest.InferRequestedOutputTensor(name="OUTPUT1")
            set_all(out.parameters, part(128))
            c.ModelInfer(pb.ModelInferRequest(
                model_name="simple", outputs=[out],
                inputs=[tensor("INPUT0", "INT32", [1, 16], **part(0)),
                        tensor("INPUT1", "INT32", [1, 16], **part(64))]), timeout=30)
            with open(path, "rb") as f:
                check("difference", ints(f.read()[128:]), (ONES - TWOS).flatten())
            beyond = tensor("INPUT0", "INT32", [1, 16], **part(160))
            text = fails("beyond the region", grpc.StatusCode.INVALID_ARGUMENT, c.ModelInfer, pb.ModelInferRequest(
                model_name="simple", inputs=[beyond, tensor("INPUT1", "INT32", [1, 16], **part(64))]))
            contains("beyond the region", text, "g")
            regions = c.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions
            check("region", regions["g"].byte_size, 192)
        finally:
            c.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest(name="g"))


def case_load_and_unload(_, a):
    with client(a) as c:
        c.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="strings"), timeout=30)
        check("unloaded", c.ModelReady(pb.ModelReadyRequest(name="strings")).ready, False)
        fails("unloaded", grpc.StatusCode.UNAVAILABLE, c.ModelInfer, pb.ModelInferRequest(
            model_name="strings", inputs=[tensor("INPUT0", "BYTES", [1, 1])], raw_input_contents=[strings([b"a"])]))
        c.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="strings"), timeout=60)
        check("loaded", c.ModelReady(pb.ModelReadyRequest(name="strings")).ready, True)


def case_statistics(_, a):
    def served(c):
        s = c.ModelStatistics(pb.ModelStatisticsRequest(name="scores")).model_stats[0]
        return s.inference_stats.success.count

    with client(a) as c:
        before = served(c)
        for _ in range(3):
            c.ModelInfer(pb.ModelInferRequest(
                model_name="scores", inputs=[tensor("x", "FP32", [1, 3])],
                raw_input_contents=[np.float32([1, 2, 3]).tobytes()]), timeout=30)
        check("served", served(c) - before, 3)
