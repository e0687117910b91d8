"""Cases on asyncio: aiohttp and grpc.aio."""

import asyncio
import json

import aiohttp
import grpc
import numpy as np
from internal.api.oip.pb import open_inference_pb2 as pb
from internal.api.oip.pb import open_inference_pb2_grpc

from grpccases import adding, ints
from grpccases import simple as simple_request
from httpcases import json_inputs
from wire import ONES, TWOS, binary_body, check, contains, read_binary, simple


def case_aiohttp(http, _):
    async def run():
        base = f"http://{http}/v2"
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as s:
            # It asks for gzip by itself. What is not inference comes as it is.
            async with s.get(base + "/models/simple") as r:
                check("name", json.loads(await r.read())["name"], "simple")
            async with s.post(base + "/models/none/infer", json=json_inputs()) as r:
                check("status", r.status, 404)
                contains("error", json.loads(await r.read())["error"], "none")

            body, n = binary_body(simple(), parameters={"binary_data_output": True})

            async def one():
                headers = {"Inference-Header-Content-Length": str(n), "Accept-Encoding": "identity"}
                async with s.post(base + "/models/simple/infer", data=body, headers=headers) as r:
                    check("status", r.status, 200)
                    return read_binary(await r.read(), int(r.headers["Inference-Header-Content-Length"]))

            for _, raw in await asyncio.gather(*(one() for _ in range(40))):
                check("sum", np.frombuffer(raw["OUTPUT0"], np.int32), (ONES + TWOS).flatten())

    asyncio.run(run())


def case_grpc_aio(_, address):
    async def run():
        async with grpc.aio.insecure_channel(address) as channel:
            c = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
            got = await asyncio.gather(*(c.ModelInfer(simple_request(id=str(k)), timeout=30) for k in range(40)))
            check("ids", [int(r.id) for r in got], list(range(40)))
            try:
                await c.ModelInfer(pb.ModelInferRequest(model_name="none"), timeout=30)
                raise AssertionError("an unknown model is answered")
            except grpc.aio.AioRpcError as e:
                check("status", e.code(), grpc.StatusCode.NOT_FOUND)

    asyncio.run(run())


def case_grpc_aio_stream(_, address):
    async def run():
        async with grpc.aio.insecure_channel(address) as channel:
            c = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
            call = c.ModelStreamInfer(timeout=30)
            total = 0
            for k in range(1, 5):  # each request waits for the answer to the one before
                await call.write(adding(k, sequence_id="aio", sequence_start=k == 1, sequence_end=k == 4))
                total += k
                r = await call.read()
                check("sum", (r.error_message, ints(r.infer_response.raw_output_contents[0])[0]), ("", total))
            await call.done_writing()
            check("end", await call.read(), grpc.aio.EOF)

    asyncio.run(run())
