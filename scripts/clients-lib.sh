# clients-lib.sh is what scripts/clients.sh and scripts/clients-qa.sh share. They source it, in the root of the repository.
# It sets root and work, a folder that goes at the end.
root=$PWD
script=$(basename "$0" .sh)
export PYTHON=${PYTHON:-/usr/bin/python3}

skip() {
  echo "$script: not run: $*" >&2
  exit 0
}

# needs skips the script unless the checkouts are there and Python has the modules.
needs() {
  local v
  for v in TRITON_CLIENT TRITON_SERVER TRITON_COMMON; do
    [ -d "${!v:-}" ] || skip "$v names no checkout (see the head of scripts/clients.sh)"
  done
  "$PYTHON" -c "import $1" 2>/dev/null || skip "$PYTHON lacks a package (see the head of scripts/clients.sh)"
  work=$(mktemp -d)
  server='' standin=''
  trap finish EXIT
}

# finish ends what was started; KEEP leaves the folder.
finish() {
  local p
  for p in $server $standin; do
    kill "$p" 2>/dev/null || true
  done
  [ -n "${KEEP:-}" ] || rm -rf "$work"
}

# serve starts a server in place of the one before, from where its libraries are, and waits until it is ready.
serve() {
  if [ -n "$server" ]; then
    kill "$server" && kill "$server" || true # the second one ends the time in which it is not ready
    wait "$server" || true
  fi
  (cd "$root" && exec "$work/sluice" serve "$@" --name triton) >"$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 240); do
    curl -sf localhost:8000/v2/health/ready >/dev/null && return
    kill -0 $server 2>/dev/null || break
    sleep 0.25
  done
  echo "$script: the server does not start:" >&2
  cat "$work/server.log" >&2
  exit 1
}
