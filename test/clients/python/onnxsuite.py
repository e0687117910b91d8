"""Asks a server for the backend cases of the ONNX standard by every wire, and counts those that it answers as the
standard does.

    onnxsuite.py DATA HTTP_ADDRESS GRPC_ADDRESS MESSAGES WANTED [PATTERN]

DATA is the folder of libonnx-testdata; MESSAGES is what `go run ./test/clients FILE messages` writes. The server has
each case as a model of its name. The exit status is 1 when a model is refused for a reason of our own, when an answer
is wrong that is right by another wire, when one is wrong that ONNX Runtime gives as the standard does, when fewer than
WANTED cases are answered by HTTP, or when the server ends.
"""

import collections
import json
import re
import sys

import numpy as np

from fourwires import GRPC, HTTP, Refused, Unwritable
from onnxcases import cases

# Words of ONNX Runtime, and of a server for what its protocol has no type for.
RUNTIME = re.compile(r"Error (loading|creating|running|getting)|onnxruntime|Non-zero status code|INVALID_GRAPH")
TYPES = re.compile(r"of type .*, which the Open Inference Protocol cannot carry")
UNFIT = re.compile(r"shape is .* model .* takes")
# What is between the runtime and us is ours, although the runtime says it.
OURS = re.compile(r"pre-allocated|shape verification failed")


# Cases to which ONNX Runtime by itself gives other values than the standard, the first two by chance. The test
# TestStandardsCases of internal/runtime/onnx compares our answers with its own.
OTHERWISE = re.compile(r"bernoulli|training_dropout|FLOAT_to_STRING|test_dft|maxunpool_export|align_corners")


def differs(got, want):
    """Returns how an output differs from what the standard has, or an empty text."""
    datatype, values = got
    if datatype != want.datatype:
        return f"type {datatype} for {want.datatype}"
    if values.shape != want.values.shape:
        return f"shape {list(values.shape)} for {list(want.values.shape)}"
    if want.datatype in ("FP16", "BF16", "FP32", "FP64"):
        relative = 1e-2 if want.datatype == "BF16" else 1e-3  # BF16 is rounded in other ways
        same = np.allclose(values.astype(np.float64), want.values.astype(np.float64), relative, 1e-4, equal_nan=True)
    else:
        same = np.array_equal(values, want.values)
    return "" if same else "values"


def answer(wire, case, inputs, outputs):
    """Asks by a wire. Returns a word for what came of it, and the reason where it is not "equal"."""
    try:
        got = wire(case.name, inputs)
    except Unwritable as e:
        return "unwritable", str(e)
    except Refused as e:
        return "refused", str(e)
    for want in outputs:
        if want.name not in got:
            return "differs", f"output {want.name!r} is missing"
        if how := differs(got[want.name], want):
            return "differs", f"output {want.name!r}: {how}"
    return "equal", ""


def reasons(http):
    """Returns why the server does not serve models, by model."""
    _, index = http.ask("POST", "/v2/repository/index", b"")
    return {e["name"]: e["reason"] for e in json.loads(index) if e.get("reason")}


def kind(reason):
    """Returns whose reason it is not to answer."""
    if TYPES.search(reason):
        return "types that the protocol lacks"
    if UNFIT.search(reason):
        return "inputs of a case that its own model does not allow"
    return "words of ONNX Runtime" if RUNTIME.search(reason) and not OURS.search(reason) else "ours"


def shortened(reason):
    """Leaves out of a reason what differs from model to model."""
    for begin in ("Status Message: ", "temporary session: ", "of the model file is ", "model _: "):
        reason = re.sub(r"(/[\w.-]+)+/model\.onnx", "_", reason)
        reason = reason.rsplit(begin, 1)[-1]
    return re.sub(r'"[^"]*"', "_", reason)[:140]


def main():
    data, http_address, grpc_address, messages, wanted = sys.argv[1:6]
    found = cases(data, *sys.argv[6:7])
    http, grpc = HTTP(http_address), GRPC(grpc_address, messages)
    wires = {"HTTP binary": http.binary, "HTTP JSON": http.json, "gRPC raw": grpc.raw, "gRPC typed": grpc.typed}
    why = reasons(http)
    counts = {name: collections.Counter() for name in wires}
    refused, wrong = collections.defaultdict(list), []
    for case in found:
        tensors = case.tensors()
        if tensors is None or case.name in why:
            reason = why.get(case.name, "ours: it is served, and the protocol cannot carry it")
            refused[kind(reason)].append((case.name, reason))
            continue
        came = {name: answer(wire, case, *tensors) for name, wire in wires.items()}
        for name, (word, _) in came.items():
            counts[name][word] += 1
        word, reason = came["HTTP binary"]
        if word == "refused":
            refused[kind(reason)].append((case.name, reason))
        elif word == "differs":
            wrong.append((case.name, "every wire", reason))
        for name, (other, reason) in came.items():
            if other not in (word, "unwritable"):
                wrong.append((case.name, name, reason))
    report(len(found), counts, refused, wrong)
    ours = refused.get("ours", [])
    wrong = [w for w in wrong if w[1] != "every wire" or not OTHERWISE.search(w[0])]
    served = counts["HTTP binary"].total() - counts["HTTP binary"]["refused"]
    sys.exit(1 if ours or wrong or served < int(wanted) else 0)


def report(total, counts, refused, wrong):
    """Prints what came out."""
    print(f"{'wire':<12} {'asked':>6} {'served':>7} {'equal':>6} {'no form':>8}")
    for name, n in counts.items():
        asked = n.total() - n["unwritable"]
        print(f"{name:<12} {asked:>6} {asked - n['refused']:>7} {n['equal']:>6} {n['unwritable']:>8}")
    print(f"\nof {total} models not served:")
    for whose, list_ in sorted(refused.items()):
        print(f"  {len(list_):>4}  {whose}")
        alike = collections.defaultdict(list)
        for name, reason in list_:
            alike[shortened(reason)].append(name)
        for reason, names in sorted(alike.items(), key=lambda x: -len(x[1])):
            print(f"        {len(names):>4}  {reason.strip()}  ({names[0]})")
    print("\nanswers that differ from the standard's:" if wrong else "\nno answer differs from the standard's")
    for name, wire, reason in wrong:
        print(f"  {name} by {wire}: {reason[:200]}")


if __name__ == "__main__":
    main()
