#!/usr/bin/env bash
# Builds sluice's container image into out/image, without a daemon or a registry: `oci` (an OCI layout, for skopeo, crane
# or podman) and image.tar (for docker load). It prints the image's digest. Two runs give the same bytes.
# SLUICE_IMAGE_FLAGS are further flags of go build; by default the folder of the checkout is kept out of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
flags=${SLUICE_IMAGE_FLAGS--trimpath}
out=${1:-out/image}
[[ $out = /* ]] || out=$PWD/$out
mkdir -p "$out"
scripts/setup.sh
case $(uname -m) in aarch64) arch=arm64 ;; *) arch=x64 ;; esac
# shellcheck disable=SC2086 # flags are several words
CGO_ENABLED=1 $go build $flags -buildvcs=false -ldflags '-s -w -buildid=' -o "$out/sluice" ./cmd/sluice
cd operator
# shellcheck disable=SC2086
CGO_ENABLED=0 $go build $flags -buildvcs=false -ldflags '-s -w -buildid=' -o "$out/sluice-operator" ./cmd/sluice-operator
cd deploy
CGO_ENABLED=0 $go run -buildvcs=false ./cmd/image -o "$out" -sluice "$out/sluice" -operator "$out/sluice-operator" \
  -onnxruntime "../../node_modules/onnxruntime-node/bin/napi-v6/linux/$arch/libonnxruntime.so.1" \
  -version "${SLUICE_VERSION:-dev}"
