#!/bin/bash
# ready-times.sh REPOSITORY [ARGS]: how long `sluice serve` takes until a repository of models is ready, with a
# configuration and without measurements of an earlier run: seconds, and processor seconds. ARGS go to `serve`.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$(realpath "$1"); shift
program=$PWD/bin/sluice port=${PORT:-9480} folder=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
library=$(ls node_modules/onnxruntime-node/bin/*/linux/*/libonnxruntime.so.1 2>/dev/null | head -1 || true)
SLUICE_ONNXRUNTIME=${SLUICE_ONNXRUNTIME:-$(realpath "$library")}
export XDG_CACHE_HOME=$folder SLUICE_ONNXRUNTIME
cd "$folder"
"$program" config init --no-measure "$repository" > sluice.yaml 2> notes.txt
begun=$(date +%s.%N)
"$program" serve -f sluice.yaml --http "127.0.0.1:$port" --grpc off --admin off "$@" > serve.log 2>&1 &
pid=$!
until curl -sf -o /dev/null "http://127.0.0.1:$port/v2/health/ready"; do
  kill -0 "$pid" 2>/dev/null || { tail -5 serve.log; exit 1; }
  sleep 0.05
done
ended=$(date +%s.%N)
read -r user system < <(cut -d' ' -f14,15 "/proc/$pid/stat")
models=$(sed '1,/^apps:/d' sluice.yaml | grep -c '^  - name:')
broken=$(grep -c 'is not served' serve.log || true)
awk -v a="$begun" -v b="$ended" -v ticks=$((user + system)) -v hz="$(getconf CLK_TCK)" \
  'BEGIN { printf "ready after %.1f s, %.1f processor seconds", b - a, ticks / hz }'
echo ": $models models, $broken of them left out"
