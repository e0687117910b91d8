#!/usr/bin/env bash
# web.sh builds the dashboard's page from web/src into web/dist, where its sources have changed since the last build.
#
# The built page is committed, so that go build needs no npm; web/dist/sources.sum tells what it was built from.
# --check builds it anew elsewhere and fails unless every byte is as committed. --force builds it whatever the sum says.
set -euo pipefail
cd "$(dirname "$0")/../web"

say() { echo "web: $*" >&2; }
if command -v sha256sum >/dev/null 2>&1; then
  sha256() { sha256sum "$@"; }
else
  sha256() { shasum -a 256 "$@"; }
fi

# sources prints the checksum of everything that the page is built from.
sources() {
  find index.html package.json package-lock.json tsconfig.json vite.config.ts public src -type f | LC_ALL=C sort |
    while read -r file; do
      sha256 "$file"
    done | sha256 | cut -d' ' -f1
}

now=$(sources)
if [ "${1:-}" = "" ] && [ -f dist/sources.sum ] && [ "$(cat dist/sources.sum)" = "$now" ]; then
  exit 0
fi
../scripts/need.sh npm

# fetched tells whether the packages are those of the lock file.
stamp=node_modules/.sluice-stamp
lock=$(sha256 package-lock.json | cut -d' ' -f1)
if [ ! -f $stamp ] || [ "$(cat $stamp)" != "$lock" ]; then
  say "fetching the page's packages from the npm registry (about 85 MB, once)"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  echo "$lock" >$stamp
fi

out=dist
[ "${1:-}" = "--check" ] && out=$(mktemp -d)
node_modules/.bin/tsc --noEmit
node_modules/.bin/vite build --logLevel warn --outDir "$out" --emptyOutDir
echo "$now" >"$out/sources.sum"
if [ "${1:-}" = "--check" ]; then
  if ! diff -r "$out" dist >&2; then
    say "web/dist is not what web/src builds: run make web and commit it"
    exit 1
  fi
  rm -rf "$out"
fi
say "web/dist is built from web/src"
