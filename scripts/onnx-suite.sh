#!/usr/bin/env bash
# onnx-suite.sh [PATTERN] serves the backend cases of the ONNX standard by one `sluice serve`, without a configuration,
# asks for each by HTTP with binary data, HTTP with JSON, gRPC with raw and gRPC with typed contents, and compares the
# answers with the standard's. It prints how long the server takes until it is ready, and a table. PATTERN is a regular
# expression that names of cases are to match, such as ^node__test_re; without one all are served.
#
# It fails when a model is not served for another reason than ONNX Runtime's or a type that the protocol lacks, when a
# wire answers otherwise than the others, or than the standard where ONNX Runtime does not, and when fewer than WANTED
# cases are answered.
#
#   apt-get install --no-install-recommends libonnx-testdata python3-onnx python3-grpcio python3-protobuf python3-numpy
#
# Without these packages it says so and ends well. PORT is the first of three ports (9540 unless given), KEEP leaves the
# folder with the server's log.
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=${1:-} port=${PORT:-9540}
data=${ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
PYTHON=${PYTHON:-/usr/bin/python3}

skip() {
  echo "onnx-suite: not run: $*" >&2
  exit 0
}
[ -d "$data" ] || skip "$data is missing: install libonnx-testdata"
"$PYTHON" -c 'import google.protobuf, grpc, numpy, onnx' 2>/dev/null ||
  skip "$PYTHON lacks a package (see the head of scripts/onnx-suite.sh)"

work=$(mktemp -d)
server=''
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait
  [ -n "${KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"
}
trap finish EXIT

export PYTHONPATH=test/clients/python PYTHONDONTWRITEBYTECODE=1
go run ./test/clients "$work/messages" messages
go build -o "$work/sluice" ./cmd/sluice
"$PYTHON" -c 'import os, shutil, sys, onnxcases
for case in onnxcases.cases(*sys.argv[2:]):
    os.makedirs(f"{sys.argv[1]}/{case.name}/1")
    shutil.copy(case.path, f"{sys.argv[1]}/{case.name}/1/model.onnx")' "$work/models" "$data" "$pattern"
count=$(find "$work/models" -name model.onnx | wc -l)

begun=$(date +%s%N)
# Nothing of an earlier start is to help: the cache of what was measured is a new one.
XDG_CACHE_HOME=$work/cache "$work/sluice" serve "$work/models" --model-limit 2000 --http "127.0.0.1:$port" \
  --grpc "127.0.0.1:$((port + 1))" --admin "127.0.0.1:$((port + 2))" >"$work/server.log" 2>&1 &
server=$!
until curl -sf "127.0.0.1:$port/v2/health/ready" >/dev/null; do
  if ! kill -0 $server 2>/dev/null; then
    echo "onnx-suite: the server has ended before it was ready:" >&2
    tail -20 "$work/server.log" | cut -c1-500 >&2
    exit 1
  fi
  sleep 0.1
done
ready=$(($(date +%s%N) - begun))
read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ <"/proc/$server/stat"
echo "ready with $count models after $((ready / 1000000)) ms; the server has used" \
  "$(((user + system) * 1000 / $(getconf CLK_TCK))) ms of processor time"

wanted=${WANTED:-$([ -n "$pattern" ] && echo 0 || echo 990)}
status=0
"$PYTHON" test/clients/python/onnxsuite.py "$data" "127.0.0.1:$port" "127.0.0.1:$((port + 1))" "$work/messages" \
  "$wanted" "$pattern" || status=$?
if ! kill -0 $server 2>/dev/null; then
  echo "onnx-suite: the server has ended" >&2
  exit 1
fi
exit $status
