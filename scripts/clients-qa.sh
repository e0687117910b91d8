#!/usr/bin/env bash
# clients-qa.sh runs QA cases of Triton (its repository's folders qa/L0_*), unmodified, against `sluice serve`, and
# prints a table: folder, case, result. docs/qa.md says which cases are not run, and why.
#
# It needs the checkouts and the packages that scripts/clients.sh names, and python3-requests. Models that are made when
# Triton's container is built are made by test/clients. Where a model's backend is to take its time, a server of
# test/clients stands in for it, with sluice in front.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

skip() {
  echo "clients-qa: not run: $*" >&2
  exit 0
}
export PYTHON=${PYTHON:-/usr/bin/python3}
for v in TRITON_CLIENT TRITON_SERVER TRITON_COMMON; do
  [ -d "${!v:-}" ] || skip "$v names no checkout (see the head of scripts/clients.sh)"
done
"$PYTHON" -c 'import grpc, grpc_tools, numpy, gevent, geventhttpclient, aiohttp, rapidjson, requests' 2>/dev/null ||
  skip "$PYTHON lacks a package (see the head of scripts/clients.sh)"

work=$(mktemp -d)
server='' standin=''
finish() {
  for p in $server $standin; do
    kill "$p" 2>/dev/null || true
  done
  [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap finish EXIT
scripts/client-library.sh "$work/py"
# numpy knows no bfloat16, and Debian has no package that does; no case here uses it.
printf 'import numpy\nbfloat16 = numpy.void\n' >"$work/py/ml_dtypes.py"
mkdir -p "$work/qa" "$work/out" "$work/base"
cp -r "$TRITON_SERVER"/qa/{common,L0_*} "$work/qa/"
go build -o "$work/clients" ./test/clients
go build -o "$work/sluice" ./cmd/sluice
"$work/clients" "$work/base" qa
cp -r "$TRITON_SERVER"/docs/examples/model_repository/simple* "$work/base/"
"$work/clients" "$work/examples"

# serve starts a server in place of the one before.
serve() {
  if [ -n "$server" ]; then
    kill "$server" && kill "$server" || true # the second one ends the time in which it is not ready
    wait "$server" || true
  fi
  (cd "$root" && exec "$work/sluice" serve "$@" --name triton) >"$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 240); do
    curl -sf localhost:8000/v2/health/ready >/dev/null && return
    kill -0 $server 2>/dev/null || break
    sleep 0.25
  done
  echo "clients-qa: the server does not start:" >&2
  cat "$work/server.log" >&2
  exit 1
}

# slowly starts a server of models that take a time: an app for each further argument, NAME KEYS, as YAML.
slowly() {
  [ -z "$standin" ] || kill "$standin" 2>/dev/null || true
  "$work/clients" identity 127.0.0.1:9009 "$1" &
  standin=$!
  shift
  {
    echo 'version: 1'
    echo 'device_types: [{name: any}]'
    echo 'workers: [{name: there, backend: {kind: openinference, address: "127.0.0.1:9009"}}]'
    echo 'system: {router: fcfs, batcher: greedy, options: {learn: true}}'
    echo 'apps:'
    local app
    for app in "$@"; do
      echo "  - {name: ${app%% *}, slo: {latency: 60s}, ${app#* }}"
    done
  } >"$work/slow.yaml"
  serve -f "$work/slow.yaml"
}

# repository makes a repository of models of test/clients.
repository() {
  rm -rf "$work/models"
  mkdir "$work/models"
  local m
  for m in "$@"; do
    cp -r "$work/base/$m" "$work/models/"
  done
}

passed=0 failed=0
# try runs a case: folder, file, name; arguments in place of a name begin with -.
try() {
  local dir=$1 file=$2 name=$3 log result
  shift 2
  log=$work/out/$dir.$(tr -c 'A-Za-z0-9\n' _ <<<"$*").log
  if (cd "$work/qa/$dir" && PYTHONPATH=$work/py timeout 120 "$PYTHON" "$file" "$@") >"$log" 2>&1; then
    passed=$((passed + 1)) result=passes
  else
    failed=$((failed + 1))
    result="FAILS: $(grep -E '^[A-Za-z_.]*(Error|Exception|Exit)\b|^AssertionError' "$log" | tail -1 | cut -c1-200)"
  fi
  printf '%-24s %-70s %s\n' "$dir" "$*" "$result"
}
# tries runs all cases of a class: folder, file, class, names.
tries() {
  local dir=$1 file=$2 class=$3 n
  shift 3
  for n in "$@"; do
    try "$dir" "$file" "$class.$n"
  done
}

# Queue policies: each case has a configuration of its own.
queue_case() {
  repository custom_zero_1_float32
  cp -r "$TRITON_SERVER/qa/L0_model_queue/ensemble_zero_1_float32" "$work/models/"
  mkdir -p "$work/models/ensemble_zero_1_float32/1"
  echo "dynamic_batching { $2 }" >>"$work/models/custom_zero_1_float32/config.pbtxt"
  serve "$work/models"
  try L0_model_queue model_queue_test.py "ModelQueueTest.$1"
}
some='preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 10000000'
if [[ ${1:-queue} == queue ]]; then
  queue_case test_policy_delay "$some
    default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 }"
  queue_case test_policy_reject "$some default_queue_policy { default_timeout_microseconds: 100000 }"
  queue_case test_timeout_override "$some
    default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 1000000 }"
  queue_case test_priority_levels "$some priority_levels: 2 default_priority_level: 2"
  queue_case test_max_priority_levels "$some
    priority_levels: 18446744073709551615 default_priority_level: 4294967296"
  queue_case test_priority_with_policy "preferred_batch_size: [ 4, 8, 32 ] max_queue_delay_microseconds: 10000000
    priority_levels: 2 default_priority_level: 2 default_queue_policy { timeout_action: DELAY
    allow_timeout_override: true default_timeout_microseconds: 11000000 } priority_queue_policy { key: 2
    value { timeout_action: REJECT allow_timeout_override: true default_timeout_microseconds: 11000000 } }"
  slowly 5s 'custom_zero_1_float32 late: serve-late, queue: {levels: [{limit: 8}]},
      variants: [{name: custom_zero_1_float32, max_batch: 32}]' 'ensemble_zero_1_float32 late: serve-late,
      queue: {levels: [{limit: 8}]}, variants: [{name: e, model: custom_zero_1_float32, max_batch: 32}]'
  try L0_model_queue model_queue_test.py ModelQueueTest.test_max_queue_size
  slowly 10s 'dynamic_batch late: serve-late, queue: {levels: [{timeout: 1s}]},
      variants: [{name: dynamic_batch, max_batch: 1}]'
  try L0_batcher queue_timeout_test.py TestMaxQueueDelayTimeout.test_default_queue_policy_timeout_prompt_response
fi

# Clients that give up.
if [[ ${1:-timeouts} == timeouts ]]; then
  slowly 3s 'custom_identity_int32 variants: [{name: custom_identity_int32, max_batch: 1024}]'
  tries L0_client_timeout client_infer_timeout_test.py ClientInferTimeoutTest test_grpc_infer test_grpc_async_infer \
    test_grpc_stream_infer test_http_infer test_http_async_infer
  slowly 10s 'custom_identity_int32 variants: [{name: custom_identity_int32, max_batch: 1024}]'
  tries L0_request_cancellation grpc_cancellation_test.py GrpcCancellationTest test_grpc_async_infer \
    test_grpc_stream_infer test_aio_grpc_async_infer test_aio_grpc_stream_infer
  slowly 6s 'dynamic_batch variants: [{name: dynamic_batch, max_batch: 2}]' \
    'ensemble_model variants: [{name: ensemble_model, max_batch: 1}]'
  tries L0_request_cancellation scheduler_test.py TestScheduler test_dynamic_batch_scheduler_request_cancellation \
    test_ensemble_scheduler_request_cancellation
fi

# What comes in and goes out.
if [[ ${1:-data} == data ]]; then
  repository onnx_zero_1_float32 onnx_zero_1_float16 onnx_zero_1_object onnx_zero_1_object_1_element \
    onnx_zero_3_float32 onnx_nobatch_zero_1_object identity_fp32 identity_bytes string_identity pt_identity \
    input_all_required onnx_scalar_1dim onnx_scalar_2dim simple
  cp -r "$work/base/onnx_zero_1_float32" "$work/models/onnx_zero_1_float32_queue"
  echo 'dynamic_batching { max_queue_delay_microseconds: 1000000 preferred_batch_size: [ 8 ]
    default_queue_policy { max_queue_size: 1 } }' >>"$work/models/onnx_zero_1_float32_queue/config.pbtxt"
  serve "$work/models" --shared-memory / --clients-control-models
  tries L0_http http_test.py HttpTest test_raw_binary test_raw_binary_longer test_byte test_byte_too_many_elements \
    test_multi_variable_dimensions test_multi_inputs test_content_encoding_chunked_manually \
    test_content_encoding_unsupported_client test_descriptive_status_code test_buffer_size_overflow
  tries L0_scalar_io scalar_test.py ScalarIOTest test_scalar_io
  try L0_nullchar_string nullchar_string_client.py -m onnx_nobatch_zero_1_object -i http
  try L0_nullchar_string nullchar_string_client.py -m onnx_nobatch_zero_1_object -i grpc -u localhost:8001
  for CLIENT_TYPE in http grpc; do
    export CLIENT_TYPE
    tries L0_parameters class_count_test.py ClassificationParameterTest test_classificattion \
      test_classificattion_unsupported_data_type test_classification_output_tensor_too_large
  done
  tries L0_input_validation input_validation_test.py InputValTest test_input_validation_required_empty \
    test_input_validation_required_missing
  tries L0_input_validation input_validation_test.py InputShapeTest test_input_shape_validation
  tries L0_grpc python_unit_test.py GrpcTest test_duplicate_output_names_rejected
fi

# Every call of the clients on asyncio. They count the models: 8 of Triton's examples over gRPC, 7 over HTTP. Loading is
# to be refused because the repository is polled.
if [[ ${1:-aio} == aio ]]; then
  cp -r "$TRITON_SERVER/docs/examples/model_repository" "$work/repository"
  for m in densenet_onnx inception_onnx; do
    [ ! -d "$work/repository/$m" ] || cp -r "$work/examples/densenet_onnx/1" "$work/repository/$m/"
  done
  serve "$work/repository" --model-control-mode poll --clients-control-models --shared-memory /
  try L0_grpc python_grpc_aio_test.py -q
  rm -r "$work/repository/inception_onnx"
  serve "$work/repository" --model-control-mode poll --clients-control-models --shared-memory /
  try L0_http python_http_aio_test.py -q
fi
echo "$passed passed, $failed failed"
