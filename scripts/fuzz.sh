#!/usr/bin/env bash
# fuzz.sh [PACKAGE...]: runs every Fuzz function of the packages (default: all) for FUZZTIME (default 10s), one at a time.
# Whoever adds a Fuzz function has nothing to register.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ./...
time=${FUZZTIME:-10s}

# Only packages with a Fuzz function in a test file are asked, so that the others need not be linked for it.
packages=$(go list -f '{{$d := .Dir}}{{$p := .ImportPath}}{{range .TestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}' "$@" |
  while read -r pkg file; do
    if [ -n "$file" ] && grep -q '^func Fuzz' "$file"; then echo "$pkg"; fi
  done | sort -u)

built=$(mktemp -d)
log=$built/log
trap 'rm -rf "$built"' EXIT
# What the fuzzer has found interesting is kept where go test keeps it.
cache=$(go env GOCACHE)/fuzz
count=0
for pkg in $packages; do
  # A package is built once for all of its targets, with the instructions that the fuzzer counts.
  go test -c -fuzz '^Fuzz' -o "$built/fuzz.test" "$pkg"
  dir=$(go list -f '{{.Dir}}' "$pkg")
  names=$(cd "$dir" && "$built/fuzz.test" -test.list '^Fuzz')
  for name in $(grep '^Fuzz' <<<"$names" || true); do
    echo "fuzz: $name in $pkg for $time"
    # Go's fuzzer now and then reports its own end of time as a failure ("context deadline exceeded", no input written).
    # That is no finding; it is tried again, and a second time in a row counts.
    for try in 1 2; do
      status=0
      (cd "$dir" && "$built/fuzz.test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$time" \
        -test.fuzzcachedir "$cache/$pkg") 2>&1 | tee "$log" || status=$?
      if [ "$status" -eq 0 ]; then break; fi
      if [ "$try" -eq 1 ] && grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
        echo "fuzz: $name: the fuzzer ended out of time without a finding, once more" >&2
        continue
      fi
      echo "fuzz: $name failed; the input lies in testdata/fuzz/$name of its package: mend the cause and commit the input" >&2
      exit 1
    done
    count=$((count + 1))
  done
done
echo "fuzz: $count targets, no finding"
