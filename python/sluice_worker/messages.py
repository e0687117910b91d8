"""The messages of the Open Inference Protocol v2 over gRPC that a worker takes part in: names and numbers of fields.

They are those of internal/api/oip/pb/open_inference.proto; a test of sluice compares the two.
"""

from __future__ import annotations

from typing import Dict, Tuple

from .wire import Field, Table

PARAMETER: Table = {
    1: Field("bool_param", "bool"),
    2: Field("int64_param", "int"),
    3: Field("string_param", "text"),
    4: Field("double_param", "double"),
    5: Field("uint64_param", "uint"),
}

CONTENTS: Table = {
    1: Field("bool_contents", "bool", True),
    2: Field("int_contents", "int", True),
    3: Field("int64_contents", "int", True),
    4: Field("uint_contents", "uint", True),
    5: Field("uint64_contents", "uint", True),
    6: Field("fp32_contents", "float", True),
    7: Field("fp64_contents", "double", True),
    8: Field("bytes_contents", "bytes", True),
}

_TENSOR: Table = {
    1: Field("name", "text"),
    2: Field("datatype", "text"),
    3: Field("shape", "int", True),
    4: Field("parameters", "map", message=PARAMETER),
    5: Field("contents", "message", message=CONTENTS),
}

_METADATA: Table = {1: Field("name", "text"), 2: Field("datatype", "text"), 3: Field("shape", "int", True)}
_NAMED: Table = {1: Field("name", "text"), 2: Field("version", "text")}
_REGION: Table = {
    1: Field("name", "text"),
    2: Field("key", "text"),
    3: Field("offset", "uint"),
    4: Field("byte_size", "uint"),
}

INFER_REQUEST: Table = {
    1: Field("model_name", "text"),
    2: Field("model_version", "text"),
    3: Field("id", "text"),
    4: Field("parameters", "map", message=PARAMETER),
    5: Field("inputs", "message", True, _TENSOR),
    6: Field(
        "outputs",
        "message",
        True,
        {1: Field("name", "text"), 2: Field("parameters", "map", message=PARAMETER)},
    ),
    7: Field("raw_input_contents", "bytes", True),
}

INFER_RESPONSE: Table = {
    1: Field("model_name", "text"),
    2: Field("model_version", "text"),
    3: Field("id", "text"),
    4: Field("parameters", "map", message=PARAMETER),
    5: Field("outputs", "message", True, _TENSOR),
    6: Field("raw_output_contents", "bytes", True),
}

#: Request and response of each method.
METHODS: Dict[str, Tuple[Table, Table]] = {
    "ServerLive": ({}, {1: Field("live", "bool")}),
    "ServerReady": ({}, {1: Field("ready", "bool")}),
    "ModelReady": (_NAMED, {1: Field("ready", "bool")}),
    "ServerMetadata": (
        {},
        {1: Field("name", "text"), 2: Field("version", "text"), 3: Field("extensions", "text", True)},
    ),
    "ModelMetadata": (
        _NAMED,
        {
            1: Field("name", "text"),
            2: Field("versions", "text", True),
            3: Field("platform", "text"),
            4: Field("inputs", "message", True, _METADATA),
            5: Field("outputs", "message", True, _METADATA),
        },
    ),
    "ModelInfer": (INFER_REQUEST, INFER_RESPONSE),
    # Of a model's configuration what callers look at: its name and its largest batch.
    "ModelConfig": (
        _NAMED,
        {1: Field("config", "message", message={1: Field("name", "text"), 4: Field("max_batch_size", "int")})},
    ),
    "SystemSharedMemoryStatus": (
        {1: Field("name", "text")},
        {1: Field("regions", "map", message=_REGION)},
    ),
    "SystemSharedMemoryRegister": (_REGION, {}),
    "SystemSharedMemoryUnregister": ({1: Field("name", "text")}, {}),
}
