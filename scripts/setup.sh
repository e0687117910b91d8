#!/usr/bin/env bash
# setup.sh fetches the packages of package-lock.json into node_modules, once, and verifies them: ONNX Runtime, and HiGHS,
# which is in the program already and is there for `make upgrade-highs`.
#
# npm checks the packages against the lock file; internal/runtime/native/native.sha256 then pins the very files we load, so that neither a
# registry nor a half-written folder can slip another library in. No script of any package is run.
#
# SLUICE_ONNXRUNTIME=/path/to/libonnxruntime.so uses a library that is already installed: then npm is optional.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=node_modules/.sluice-stamp
say() { echo "setup: $*" >&2; }
die() {
  say "$*"
  exit 1
}

if command -v sha256sum >/dev/null 2>&1; then
  sha256() { sha256sum "$@"; }
else
  sha256() { shasum -a 256 "$@"; }
fi

case $(uname -s)/$(uname -m) in
  Linux/x86_64) platform=linux/x64 ;;
  Linux/aarch64) platform=linux/arm64 ;;
  Darwin/arm64) platform=darwin/arm64 ;;
  *) platform=none ;;
esac

own=${SLUICE_ONNXRUNTIME:-}
if [ -n "$own" ] && [ ! -f "$own" ]; then
  die "SLUICE_ONNXRUNTIME=$own is no file: name an installed ONNX Runtime library, or unset it to fetch one"
fi
if [ $platform = none ] && [ -z "$own" ]; then
  die "npm has no ONNX Runtime for $(uname -s)/$(uname -m): install one and set SLUICE_ONNXRUNTIME to its path"
fi

# verified succeeds when every file that this machine loads has the pinned checksum.
verified() {
  local sum file
  while read -r sum file; do
    case $file in
      */napi-v6/$platform/*) ;; # ours
      */napi-v6/*) continue ;;
    esac
    if [ ! -f "$file" ]; then
      wrong="$file is missing"
      return 1
    fi
    if [ "$(sha256 "$file" | cut -d' ' -f1)" != "$sum" ]; then
      wrong="$file has another checksum than internal/runtime/native/native.sha256"
      return 1
    fi
  done <internal/runtime/native/native.sha256
}

current="$(sha256 package-lock.json | cut -d' ' -f1) $platform"
is_current() { [ -f $stamp ] && [ "$(cat $stamp)" = "$current" ] && verified; }

is_current && exit 0

# Two makes at once must not fetch over each other. The lock is the folder's own, and goes with the process.
if command -v flock >/dev/null 2>&1; then
  exec 9<package-lock.json
  flock 9
  is_current && exit 0
fi

if ! scripts/need.sh npm; then
  [ -n "$own" ] || exit 1
  say "ONNX Runtime is $own; going on without npm"
  exit 0
fi

say "fetching ONNX Runtime and HiGHS from the npm registry (about 115 MB, once)"
rm -f $stamp
if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
  [ -n "$own" ] || die "npm ci failed (see above): check the network, or set SLUICE_ONNXRUNTIME to an installed library"
  say "npm ci failed (see above); ONNX Runtime is $own; going on with it"
  exit 0
fi

# onnxruntime-node carries the libraries of all platforms; only this machine's is of use.
for dir in node_modules/onnxruntime-node/bin/napi-v6/*/*/; do
  case $dir in
    */napi-v6/$platform/) ;;
    *) rm -rf "$dir" ;;
  esac
done

verified || die "$wrong: what npm delivered is not what this checkout was made for; remove node_modules and try again"
echo "$current" >$stamp
say "ready: $(du -sh node_modules | cut -f1) in node_modules"
