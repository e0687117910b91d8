#!/usr/bin/env bash
# clients-grpc.sh builds the published example clients of Triton in Go and JavaScript from the published messages, and
# runs them, unmodified, against `sluice serve`.
#
# It needs checkouts of two public repositories of triton-inference-server, of which nothing is kept here: TRITON_CLIENT
# (client) and TRITON_COMMON (common, for the messages). A bare repository does, too. It also needs protoc (Debian:
# protobuf-compiler), and node with npm. What is missing is named: the part that needs it is left out, or fails where
# CLIENTS_MUST_RUN is set.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "clients: not run: $*" >&2
  [ -z "${CLIENTS_MUST_RUN:-}" ] || exit 1
}
for v in TRITON_CLIENT TRITON_COMMON; do
  [ -d "${!v:-}" ] || { skip "$v names no checkout (see the head of this script)"; exit 0; }
done

work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT

# copy REPOSITORY FOLDER TO copies a folder of a checkout or of a bare repository.
copy() {
  mkdir -p "$3"
  if [ -d "$1/$2" ]; then
    cp -r "$1/$2/." "$3/"
  else
    git -C "$1" archive HEAD "$2" | tar -x -C "$3" --strip-components "$(tr -cd / <<<"$2/" | wc -c)"
  fi
}
copy "$TRITON_COMMON" protobuf "$work/proto"
go run ./test/clients "$work/models" simple
go build -o "$work/sluice" ./cmd/sluice
"$work/sluice" serve "$work/models" --http 127.0.0.1:0 --grpc 127.0.0.1:18001 --admin off >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 240); do
  grep -q 'msg=serving\|sluice serves' "$work/server.log" && break
  kill -0 $server 2>/dev/null || {
    cat "$work/server.log"
    exit 1
  }
  sleep 0.25
done

failed=0
passed() { echo "clients: $1 passed"; }
fails() {
  echo "clients: $1 failed"
  tail -20 "$2"
  failed=1
}

if command -v protoc >/dev/null; then
  copy "$TRITON_CLIENT" src/grpc_generated/go "$work/go"
  mkdir -p "$work/go/common"
  cp -r "$work/proto" "$work/go/common/protobuf"
  # The plugins: that for messages at the version that this module uses.
  GOBIN=$work/bin go install google.golang.org/protobuf/cmd/protoc-gen-go
  GOBIN=$work/bin GOFLAGS=-mod=mod go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
  if (
    cd "$work/go"
    PATH=$work/bin:$PATH bash ./gen_go_stubs.sh
    go run grpc_simple_client.go -u 127.0.0.1:18001
  ) >"$work/go.log" 2>&1; then passed Go; else fails Go "$work/go.log"; fi
else
  skip "the Go client needs protoc"
fi

if command -v npm >/dev/null; then
  copy "$TRITON_CLIENT" src/grpc_generated/javascript "$work/js"
  cp -r "$work/proto" "$work/js/proto"
  if (
    cd "$work/js"
    npm ci --ignore-scripts --no-audit --no-fund
    node client.js 127.0.0.1 18001
  ) >"$work/js.log" 2>&1; then passed JavaScript; else fails JavaScript "$work/js.log"; fi
else
  skip "the JavaScript client needs node and npm"
fi
exit $failed
