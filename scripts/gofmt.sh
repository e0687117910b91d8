#!/usr/bin/env bash
# gofmt.sh fails when a file of ours is not formatted, and names it.
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(find . \( -name node_modules -o -name '.?*' -o -name testdata \) -prune -o -name '*.go' -print0 | xargs -0 -r gofmt -l)
if [ -n "$files" ]; then
  printf 'gofmt: not formatted; run gofmt -w on\n%s\n' "$files" >&2
  exit 1
fi
