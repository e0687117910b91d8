"""Cases over HTTP with clients that block: http.client of Python, and geventhttpclient."""

import gzip
import http.client
import json
import zlib

import gevent
import gevent.pool
import numpy as np
from geventhttpclient import HTTPClient

from wire import ONES, TWOS, binary_body, check, contains, read_binary, read_strings, region, simple, strings

JSON = {"Content-Type": "application/json"}


def ask(http_address, method, path, body=None, headers=None):
    """Returns status, headers and body of an answer."""
    c = http.client.HTTPConnection(http_address, timeout=30)
    try:
        if isinstance(body, dict):
            body = json.dumps(body)
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


def asked(http_address, method, path, body=None, headers=None):
    """Returns the JSON of an answer with status 200."""
    status, _, text = ask(http_address, method, path, body, headers)
    check(f"{method} {path}: {text[:300]}", status, 200)
    return json.loads(text) if text else None


def json_inputs(*extra, **more):
    """Returns a JSON request to the model simple."""
    return dict(more, inputs=[
        {"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "data": ONES.tolist()},
        {"name": "INPUT1", "datatype": "INT32", "shape": [1, 16], "data": TWOS.flatten().tolist()},
        *extra,
    ])


def case_health_and_metadata(a, _):
    model = "/v2/models/simple"
    for path in ("/v2/health/live", "/v2/health/ready", model + "/ready", model + "/versions/1/ready"):
        check(path, ask(a, "GET", path + "?a=1&b=2")[0], 200)
    server = asked(a, "GET", "/v2")
    contains("extensions", server["extensions"], "binary_tensor_data")
    m = asked(a, "GET", "/v2/models/simple")
    check("inputs", [(x["name"], x["datatype"], x["shape"]) for x in m["inputs"]],
          [("INPUT0", "INT32", [-1, 16]), ("INPUT1", "INT32", [-1, 16])])
    check("largest batch", asked(a, "GET", "/v2/models/simple/config")["max_batch_size"], 8)
    index = asked(a, "POST", "/v2/repository/index", b"")
    contains("index", [(x["name"], x["state"]) for x in index], ("simple", "READY"))
    asked(a, "GET", "/v2/models/simple/stats")


def case_infer_json(a, _):
    r = asked(a, "POST", "/v2/models/simple/infer", json_inputs(id="seven"))
    check("id", r["id"], "seven")
    out = {o["name"]: o for o in r["outputs"]}
    check("sum", np.array(out["OUTPUT0"]["data"]), (ONES + TWOS).flatten())
    check("difference", np.array(out["OUTPUT1"]["data"]), (ONES - TWOS).flatten())


def case_infer_binary(a, _):
    body, n = binary_body(simple(), parameters={"binary_data_output": True})
    status, headers, got = ask(a, "POST", "/v2/models/simple/infer", body, {"Inference-Header-Content-Length": str(n)})
    check(f"status: {got[:200]}", status, 200)
    _, raw = read_binary(got, int(headers["Inference-Header-Content-Length"]))
    check("sum", np.frombuffer(raw["OUTPUT0"], np.int32), (ONES + TWOS).flatten())
    check("difference", np.frombuffer(raw["OUTPUT1"], np.int32), (ONES - TWOS).flatten())


def case_infer_in_chunks(a, _):
    body, n = binary_body(simple())
    chunks = (body[i:i + 7] for i in range(0, len(body), 7))
    status, _, got = ask(a, "POST", "/v2/models/simple/infer", chunks, {"Inference-Header-Content-Length": str(n)})
    check(f"status: {got[:200]}", status, 200)
    check("outputs", len(json.loads(got)["outputs"]), 2)


def case_compression(a, _):
    text = json.dumps(json_inputs()).encode()
    for coding, pack, unpack in (("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)):
        status, headers, got = ask(a, "POST", "/v2/models/simple/infer", pack(text),
                                   {"Content-Encoding": coding, "Accept-Encoding": coding})
        check(coding, (status, headers["Content-Encoding"]), (200, coding))
        check("outputs", len(json.loads(unpack(got))["outputs"]), 2)
    check("metadata is not compressed",
          ask(a, "GET", "/v2/models/simple", headers={"Accept-Encoding": "gzip"})[1]["Content-Encoding"], None)


def case_strings(a, _):
    values = [b"plain", "größer".encode(), b"nul\0inside", b""]
    body, n = binary_body([("INPUT0", "BYTES", [1, 4], strings(values))], parameters={"binary_data_output": True})
    status, headers, got = ask(a, "POST", "/v2/models/strings/infer", body, {"Inference-Header-Content-Length": str(n)})
    check(f"status: {got[:200]}", status, 200)
    _, raw = read_binary(got, int(headers["Inference-Header-Content-Length"]))
    check("strings", read_strings(raw["OUTPUT0"]), values)


def case_classification(a, _):
    r = asked(a, "POST", "/v2/models/scores/infer", {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [0.5, 2, 1]}],
        "outputs": [{"name": "y", "parameters": {"classification": 2}}]})
    check("classes", r["outputs"][0]["data"], ["2.000000:1:cat", "1.000000:2:fox"])


def case_sequences(a, _):
    for name in (41, "a name"):
        total = 0
        for k in range(1, 5):
            total += k
            r = asked(a, "POST", "/v2/models/adding/infer", {
                "inputs": [{"name": "x", "datatype": "INT32", "shape": [1, 1], "data": [k]}],
                "parameters": {"sequence_id": name, "sequence_start": k == 1, "sequence_end": k == 4}})
            check(f"sum of sequence {name}", r["outputs"][0]["data"], [total])


def case_errors(a, _):
    for what, method, path, body, status, part in (
        ("model", "POST", "/v2/models/none/infer", json_inputs(), 404, "none"),
        ("version", "POST", "/v2/models/simple/versions/9/infer", json_inputs(), 404, "9"),
        ("method", "DELETE", "/v2/models/simple", None, 405, ""),
        ("no JSON", "POST", "/v2/models/simple/infer", b"{", 400, ""),
        ("name", "POST", "/v2/models/simple/infer",
         {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1, 1], "data": [1]}]}, 400, "X"),
        ("too few elements", "POST", "/v2/models/scores/infer",
         {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1]}]}, 400, "x"),
        ("type", "POST", "/v2/models/scores/infer",
         {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1, 3], "data": [1, 2, 3]}]}, 400, "INT32"),
        ("deadline", "POST", "/v2/models/simple/infer", json_inputs(parameters={"timeout": 1}), 504, ""),
        ("no sequence", "POST", "/v2/models/adding/infer",
         {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1, 1], "data": [1]}]}, 400, "correlation ID"),
    ):
        got, _, text = ask(a, method, path, body)
        check(f"status, {what}: {text[:200]}", got, status)
        if status != 405:
            contains(what, json.loads(text)["error"], part)


def case_shared_memory(a, _):
    with region(192) as (key, path):
        with open(path, "r+b") as f:
            f.write(ONES.tobytes() + TWOS.tobytes())
        asked(a, "POST", "/v2/systemsharedmemory/region/r/register", {"key": key, "offset": 0, "byte_size": 192})
        try:
            def part(offset):
                return {"shared_memory_region": "r", "shared_memory_offset": offset, "shared_memory_byte_size": 64}
            r = asked(a, "POST", "/v2/models/simple/infer", {
                "inputs": [
                    {"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "parameters": part(0)},
                    {"name": "INPUT1", "datatype": "INT32", "shape": [1, 16], "parameters": part(64)}],
                "outputs": [{"name": "OUTPUT0", "parameters": part(128)}]})
            check("data beside the region", "data" in r["outputs"][0], False)
            with open(path, "rb") as f:
                check("sum", np.frombuffer(f.read()[128:], np.int32), (ONES + TWOS).flatten())
            contains("status", [x["name"] for x in asked(a, "GET", "/v2/systemsharedmemory/status")], "r")
        finally:
            asked(a, "POST", "/v2/systemsharedmemory/region/r/unregister", b"")
        check("status", asked(a, "GET", "/v2/systemsharedmemory/status"), [])


def case_generate(a, _):
    r = asked(a, "POST", "/v2/models/strings/generate", {"INPUT0": "hello"}, JSON)
    check("generated", r["OUTPUT0"], "hello")
    status, headers, text = ask(a, "POST", "/v2/models/strings/generate_stream", {"INPUT0": "hello"}, JSON)
    check("stream", status, 200)
    contains("type", headers["Content-Type"], "text/event-stream")
    contains("event", text, b"data: {")


def case_gevent(a, _):
    host, port = a.rsplit(":", 1)
    client = HTTPClient(host, int(port), concurrency=4, connection_timeout=30, network_timeout=30)
    text = json.dumps(json_inputs())

    def one(_):
        r = client.post("/v2/models/simple/infer", body=text, headers=JSON)
        return r.status_code, json.loads(bytes(r.read()))["outputs"][0]["data"]

    try:
        for status, data in gevent.pool.Pool(4).map(one, range(40)):
            check("status", status, 200)
            check("sum", np.array(data), (ONES + TWOS).flatten())
    finally:
        client.close()
