#!/usr/bin/env bash
# clients-qa.sh runs QA cases of Triton (its repository's folders qa/L0_*), unmodified, against `sluice serve`, and
# prints a table: folder, case, result. docs/qa.md says which cases are not run, and why.
#
# It needs the checkouts and the packages that scripts/clients.sh names, and python3-requests. Models that are made when
# Triton's container is built are made by test/clients. Where a model's backend is to take its time, a server of
# test/clients stands in for it, with sluice in front.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/clients-lib.sh
needs "grpc, grpc_tools, numpy, gevent, geventhttpclient, aiohttp, rapidjson, requests"
scripts/client-library.sh "$work/py"
# numpy knows no bfloat16, and Debian has no package that does; no case here uses it.
printf 'import numpy\n\n\nclass bfloat16(numpy.void):\n    pass\n' >"$work/py/ml_dtypes.py"
mkdir -p "$work/qa" "$work/out" "$work/base"
cp -r "$TRITON_SERVER"/qa/{common,L0_*} "$work/qa/"
go build -o "$work/clients" ./test/clients
go build -o "$work/sluice" ./cmd/sluice
"$work/clients" "$work/base" qa
cp -r "$TRITON_SERVER"/docs/examples/model_repository/simple* "$work/base/"
"$work/clients" "$work/examples"

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

# Models that Triton's own scripts make, with Debian's python3-onnx. Steps of ensembles that are of Triton's identity
# backend get models of test/clients in their place.
if [[ ${1:-generated} == generated ]] && "$PYTHON" -c 'import onnx' 2>/dev/null; then
  # made SCRIPT FOLDER
  made() {
    (cd "$work/qa/common" && PYTHONPATH=$work/py "$PYTHON" "gen_qa_$1.py" "${@:3}" --onnx_opset=11 \
      --models_dir="$work/made/$2") >"$work/out/made.$2.log" 2>&1
  }
  made models models --onnx
  made models models --ensemble
  made identity_models identity --onnx
  made identity_models identity --ensemble
  made sequence_models sequence --onnx
  made implicit_models states --onnx
  made implicit_models zeros --onnx --initial-state zero
  made ort_scalar_models scalar
  cp -r "$TRITON_SERVER"/qa/ensemble_models/* "$work/base"/custom_{,nobatch_}zero_1_float32 "$work/made/models/"
  rm -rf "$work"/made/models/*{bf16,libtorch,plan}*
  for m in models identity; do
    "$work/clients" "$work/made/$m" nops
    for d in "$work/made/$m"/*/; do
      mkdir -p "$d/1"
    done
  done
  export BACKENDS=onnx CPU_ONLY=1 ENSEMBLES=1 NO_BATCHING=0 MODEL_INSTANCES=1 BATCHER_TYPE=FIXED IMPLICIT_STATE=0 \
    INITIAL_STATE_FILE=0 INITIAL_STATE_ZERO=0 USE_SINGLE_BUFFER=0
  serve "$work/made/scalar"
  try L0_scalar_io scalar_test.py -q
  serve "$work/made/identity"
  try L0_infer_zero infer_zero_test.py -q
  serve "$work/made/models" --shared-memory /
  try L0_client_nobatch client_test.py -q
  try L0_infer infer_test.py -q
  TEST_SYSTEM_SHARED_MEMORY=1 try L0_infer infer_test.py -q InferTest
  repository simple
  serve "$work/models" --clients-control-models
  try L0_logging logging_endpoint_test.py -q
  try L0_input_validation input_validation_test.py ModelNameValidationTest
  for CLIENT_TYPE in http grpc; do
    export CLIENT_TYPE
    serve "$work/models"
    tries L0_shared_memory shared_memory_test.py SharedMemoryTest test_client_shm_disabled_by_default
    for n in test_register_reset_and_get test_register_invalid_shm_key test_register_out_of_bound \
      test_register_reserved_names test_infer_integer_overflow test_infer_offset_out_of_bound test_mixed_raw_shm \
      test_unregister_after_inference test_unregister_after_register test_unregisterall; do
      grep -q "def $n(" "$work/qa/L0_shared_memory/shared_memory_test.py" || continue
      serve "$work/models" --shared-memory /
      tries L0_shared_memory shared_memory_test.py SharedMemoryTest "$n"
    done
  done
  export ENSEMBLES=0
  for n in test_simple_sequence test_length1_sequence test_batch_size test_no_sequence_start test_no_sequence_start2 \
    test_no_sequence_end test_no_correlation_id; do
    serve "$work/made/sequence"
    tries L0_sequence_batcher sequence_batcher_test.py SequenceBatcherTest "$n"
    serve "$work/made/states"
    IMPLICIT_STATE=1 tries L0_sequence_batcher sequence_batcher_test.py SequenceBatcherTest "$n"
  done
  serve "$work/made/zeros"
  IMPLICIT_STATE=1 INITIAL_STATE_ZERO=1 tries L0_sequence_batcher sequence_batcher_test.py SequenceBatcherTest \
    test_simple_sequence
  one=onnx_nobatch_sequence_int32
  mkdir "$work/made/shown"
  cp -r "$work/made/states/$one" "$work/made/shown/"
  cp -r "$work/made/states/$one" "$work/made/shown/${one}_output"
  sed -i "s/^name:.*/name: \"${one}_output\"/" "$work/made/shown/${one}_output/config.pbtxt"
  echo 'output { name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: [ 1 ] }' >>"$work/made/shown/${one}_output/config.pbtxt"
  serve "$work/made/shown"
  tries L0_implicit_state implicit_state.py ImplicitStateTest test_request_output_not_allowed test_request_output
fi
echo "$passed passed, $failed failed"
