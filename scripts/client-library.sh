#!/usr/bin/env bash
# client-library.sh FOLDER puts Triton's client library for Python into a folder, with messages made of the published
# protocol: of the checkouts TRITON_CLIENT and TRITON_COMMON, by the interpreter PYTHON.
set -euo pipefail

mkdir -p "$1"
cp -r "$TRITON_CLIENT"/src/python/library/triton* "$1/"
cd "$1/tritonclient/grpc"
"$PYTHON" -m grpc_tools.protoc -I"$TRITON_COMMON/protobuf" --python_out=. --grpc_python_out=. \
  "$TRITON_COMMON/protobuf/grpc_service.proto" "$TRITON_COMMON/protobuf/model_config.proto"
mv grpc_service_pb2.py service_pb2.py
mv grpc_service_pb2_grpc.py service_pb2_grpc.py
sed -i -E 's/^import ([^ ]*)_pb2 as ([^ ]*)$/from tritonclient.grpc import \1_pb2 as \2/' model_config_pb2.py service_pb2.py
sed -i -E 's/^import grpc_([^ ]*)_pb2 as ([^ ]*)$/from tritonclient.grpc import \1_pb2 as \2/' service_pb2_grpc.py
