#!/usr/bin/env bash
# need.sh TOOL...: succeeds when every tool is there, else prints one line per missing tool that names its Debian package.
set -u

missing=0
lack() {
  echo "sluice: $1" >&2
  missing=1
}

for tool in "$@"; do
  case $tool in
    go)
      if ! command -v go >/dev/null 2>&1; then
        lack "go is missing: install the Debian package golang-go (1.21 or newer, from bookworm-backports on Debian 12), or Go from https://go.dev/dl"
        continue
      fi
      # From 1.21 on, go fetches the toolchain that go.mod asks for. An older one stops at a line it does not understand.
      version=$(cd / && go env GOVERSION 2>/dev/null)
      minor=${version#go1.}
      minor=${minor%%[!0-9]*}
      if [ -n "$minor" ] && [ "$minor" -lt 21 ]; then
        lack "$version is too old: install the Debian package golang-go 1.21 or newer (bookworm-backports on Debian 12), or Go from https://go.dev/dl"
      fi
      ;;
    gcc)
      # cgo takes whatever CC names.
      command -v "${CC:-gcc}" >/dev/null 2>&1 ||
        lack "${CC:-gcc} is missing: install the Debian package gcc (with libc6-dev); ONNX Runtime is bound through cgo"
      ;;
    npm)
      command -v npm >/dev/null 2>&1 ||
        lack "npm is missing: install the Debian package npm; ONNX Runtime comes from its registry (or set SLUICE_ONNXRUNTIME to an installed library)"
      ;;
    *)
      command -v "$tool" >/dev/null 2>&1 || lack "$tool is missing: install the Debian package $tool"
      ;;
  esac
done
exit $missing
