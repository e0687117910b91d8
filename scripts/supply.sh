#!/usr/bin/env bash
# supply.sh vulnerabilities|licences|reproducible: what the program is made of and built from. Tools are where `make`
# builds them, from the Go module proxy.
set -euo pipefail
cd "$(dirname "$0")/.."

vulnerabilities() {
  local said status=0
  said=$(.tools/govulncheck-"$1" ./... 2>&1) || status=$?
  if [ "$status" -ne 0 ] && grep -q 'fetching vulnerabilities' <<<"$said"; then
    # Nothing is known then, good or bad. A change is not held up by a database that cannot be reached.
    echo "sluice: SKIPPED: the vulnerability database cannot be reached from here: $(tail -n 1 <<<"$said")" >&2
    return 0
  fi
  echo "$said"
  return "$status"
}

# Two modules whose licences the tool does not know are taken as they are: svgo is under CC BY 4.0, freetype under the
# FreeType License (the GPL is its alternative). Their code is that of plots and is not changed here.
licences() {
  GOROOT=$(go env GOROOT) .tools/go-licenses-"$1" check ./cmd/sluice --ignore github.com/sluice-serving/sluice \
    --ignore github.com/ajstarks/svgo --ignore github.com/golang/freetype \
    --disallowed_types=forbidden,restricted,unknown 2> >(grep -v 'contains non-Go code\|^/.*\.s$' >&2)
}

# Two builds of one commit, in two folders and without the cache of the other, are the same bytes.
reproducible() {
  local dir
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' RETURN
  CGO_ENABLED=${CGO_ENABLED:-1} go build -trimpath -buildvcs=false -o "$dir/first" ./cmd/sluice
  mkdir "$dir/elsewhere"
  git ls-files -z --cached --others --exclude-standard | xargs -0 tar cf - | tar xf - -C "$dir/elsewhere"
  (cd "$dir/elsewhere" && GOCACHE="$dir/cache" go build -trimpath -buildvcs=false -o "$dir/second" ./cmd/sluice)
  if ! cmp "$dir/first" "$dir/second"; then
    echo "sluice: two builds of the same files differ: something of the machine or the time is in the program" >&2
    return 1
  fi
  sha256sum "$dir/first" | sed 's| .*|  sluice, built twice|'
}

"$@"
