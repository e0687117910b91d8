#!/usr/bin/env bash
# image.sh [OUT [PROGRAM LIBRARY]]: builds sluice's container image into out/image, without a daemon or a registry: `oci`
# (an OCI layout, for skopeo, crane or podman) and image.tar (for docker load). It prints the image's digest. Two runs give
# the same bytes. PROGRAM is one that was built before, for the machine of GOARCH, and LIBRARY its ONNX Runtime.
# SLUICE_VERSION is the version of a release. SLUICE_IMAGE_FLAGS are further flags of go build; by default the folder of the checkout is kept out of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
flags=${SLUICE_IMAGE_FLAGS--trimpath}
version=${SLUICE_VERSION:-}
absolute() { realpath -m "$1"; }
out=$(absolute "${1:-out/image}")
mkdir -p "$out"
arch=${GOARCH:-$($go env GOHOSTARCH)}
if [ $# -gt 1 ]; then
  program=$(absolute "$2") library=$(absolute "$3")
else
  scripts/setup.sh
  program=$out/sluice
  library=$PWD/node_modules/onnxruntime-node/bin/napi-v6/linux/${arch/amd64/x64}/libonnxruntime.so.1
  module=$($go list -m)
  # shellcheck disable=SC2086 # flags are several words
  CGO_ENABLED=1 $go build $flags -buildvcs=false -ldflags "-s -w -buildid= -X $module/internal/host.version=${version:+v$version}" -o "$program" \
    ./cmd/sluice
fi
# Where Debian's compilers for another kind of machine have its libraries.
sysroot=
case $arch in "$($go env GOHOSTARCH)") ;; arm64) sysroot=/usr/aarch64-linux-gnu ;; *) sysroot=/usr/x86_64-linux-gnu ;; esac
cd operator
# shellcheck disable=SC2086
CGO_ENABLED=0 GOARCH=$arch $go build $flags -buildvcs=false -ldflags "-s -w -buildid= -X main.release=${version:+v$version}" \
  -o "$out/sluice-operator" ./cmd/sluice-operator
cd deploy
CGO_ENABLED=0 GOARCH='' $go run -buildvcs=false ./cmd/image -o "$out" -sluice "$program" \
  -operator "$out/sluice-operator" -onnxruntime "$library" -sysroot "$sysroot" -version "${version:-dev}"
