#!/usr/bin/env bash
# release.sh VERSION [OUT]: makes the files of a release in out/release and publishes nothing: archives, packages for Debian
# and Red Hat, images, the chart, bills of materials, notes and SHA256SUMS. The same commit gives the same bytes. What is
# not committed is not in it.
# RELEASE_PLATFORMS are the kinds of machine, RELEASE_PARTS what is made beside the archives: packages, images, chart.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
version=${1:-}
out=$(realpath -m "${2:-out/release}")
platforms=${RELEASE_PLATFORMS-linux/amd64 linux/arm64 darwin/arm64 darwin/amd64}
parts=${RELEASE_PARTS-packages images chart}
# Later versions need modules that not every module proxy has.
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1
oldest_glibc=2.28 # that of ONNX Runtime's library
module=$($go list -m)

say() { echo "release: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# checked stops what would make a wrong or a second release of one version.
checked() {
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] ||
    die "say which version to make, such as make release VERSION=0.1.0 (it is '$version')"
  notes >/dev/null
  local tagged
  if tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}") && [ "$tagged" != "$(git rev-parse HEAD)" ]; then
    die "v$version is a tag of another commit, $tagged: raise the version, or check that commit out"
  fi
  [ -z "$(git status --porcelain --untracked-files=no)" ] || say "not in it: what is not committed"
}

# notes prints what CHANGELOG.md says of the version.
notes() {
  local text
  text=$(awk -v head="## [$version]" 'index($0, head) == 1 { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
  [ -n "${text//[[:space:]]/}" ] || die "CHANGELOG.md has no section '## [$version]' with words: write it first"
  printf '# sluice %s\n%s\n' "$version" "$text"
}

# built builds the program for a platform into a file. Programs for Linux are bound to old versions of glibc.
built() {
  local os=${1%/*} arch=${1#*/} to=$2 cgo=0 cc=cc flags=-O2 link=''
  case $os/$arch in
    linux/amd64) cc=x86_64-linux-gnu-gcc ;;
    linux/arm64) cc=aarch64-linux-gnu-gcc ;;
    "$($go env GOHOSTOS)/$($go env GOHOSTARCH)") cgo=1 ;; # where its C compiler is
  esac
  if [ "$os" = linux ]; then
    command -v $cc >/dev/null || die "$cc is missing: install the Debian package gcc-${cc%-gcc}"
    cgo=1 flags="-O2 -include $tools/glibc.h"
    $cc -O2 -c -o "$work/start-$arch.o" tools/release/start.c
    link="$work/start-$arch.o -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2"
  fi
  CC=$cc CGO_ENABLED=$cgo GOOS=$os GOARCH=$arch CGO_CFLAGS=$flags \
    $go build -trimpath -buildvcs=true -tags netgo,osusergo -o "$to" \
    -ldflags "-s -w -buildid= -X $module/internal/host.version=v$version -extldflags '$link'" ./cmd/sluice
}

# old_enough checks that programs and libraries start with the oldest glibc.
old_enough() {
  local file newest
  for file in "$@"; do
    newest=$(readelf --dyn-syms -W "$file" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n 1)
    [ "$(printf '%s\n' "$newest" $oldest_glibc | sort -V | tail -n 1)" = $oldest_glibc ] ||
      die "$file needs glibc $newest, newer than $oldest_glibc: bind it in tools/release/glibc.h"
  done
}

# licences copies what the modules of the program, Go and ONNX Runtime ask to be handed on.
licences() {
  local to=$1 name dir file
  cp LICENSE "$to/"
  mkdir -p "$to/licences/"{onnxruntime,dashboard,go,highs}
  cp tools/release/onnxruntime.txt "$to/licences/onnxruntime/LICENSE"
  cp tools/release/dashboard.txt "$to/licences/dashboard/LICENSE"
  cp "$($go env GOROOT)/LICENSE" "$to/licences/go/"
  cp internal/runtime/highs/NOTICE "$to/licences/highs/"
  $go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/sluice | sort -u |
    while read -r name dir; do
      mkdir -p "$to/licences/$name"
      for file in "$dir"/{LICEN[CS]E,NOTICE,COPYING,PATENTS}*; do
        [ ! -f "$file" ] || install -m 644 "$file" "$to/licences/$name/"
      done
      ! rmdir "$to/licences/$name" 2>/dev/null || die "module $name has no licence that can be handed on"
    done
}

# laid lays the files of a platform out below a folder: bin, lib/sluice, share. Archives, packages and systems have them so.
laid() {
  local platform=$1 to=$2 shell
  mkdir -p "$to/bin" "$to/share/doc/sluice"
  built "$platform" "$to/bin/sluice"
  case $platform in
    linux/*)
      "$work/host" setup --to "$cache/$platform" --platform "$platform" >/dev/null
      install -D -m 755 "$cache/$platform/libonnxruntime.so.1" "$to/lib/sluice/libonnxruntime.so.1"
      old_enough "$to/bin/sluice" "$to/lib/sluice/libonnxruntime.so.1"
      ;;
  esac
  licences "$to/share/doc/sluice"
  cp CHANGELOG.md README.md "$to/share/doc/sluice/"
  "$work/host" man "$to/share/man/man1" >/dev/null
  for shell in bash/bash-completion/completions/sluice zsh/zsh/site-functions/_sluice \
    fish/fish/vendor_completions.d/sluice.fish; do
    mkdir -p "$to/share/$(dirname "${shell#*/}")"
    "$work/host" completion "${shell%%/*}" >"$to/share/${shell#*/}"
  done
  find "$to" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  chmod -R u=rwX,go=rX "$to"
}

# packed packs a folder of the work folder into an archive, the same bytes each time.
packed() {
  tar -C "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    -cf - "$(basename "$1")" | gzip -n -9 >"$2"
}

packages() {
  local arch=$1 from=$2 kind
  cat >"$work/nfpm-$arch.yaml" <<YAML
name: sluice
arch: $arch
version: $version
version_schema: semver
maintainer: The sluice authors <https://github.com/sluice-serving/sluice>
homepage: https://github.com/sluice-serving/sluice
description: Serves machine-learning models under latency objectives.
license: Apache-2.0
section: net
mtime: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
contents: [{src: $from, dst: /usr, type: tree}]
rpm: {buildhost: release}
overrides:
  deb: {depends: ["libc6 (>= $oldest_glibc)", libstdc++6], recommends: [ca-certificates]}
  rpm: {depends: ["glibc >= $oldest_glibc", libstdc++], recommends: [ca-certificates]}
YAML
  for kind in deb rpm; do
    (cd "$work" && $go run $nfpm package -f "nfpm-$arch.yaml" -p $kind -t "$out/" >/dev/null)
  done
}

images() {
  local arch=$1 from=$2
  GOARCH=$arch SLUICE_VERSION=$version scripts/image.sh "$work/image-$arch" "$from/bin/sluice" \
    "$from/lib/sluice/libonnxruntime.so.1" | sed "s|$| linux/$arch|" >>"$work/images"
  tar -C "$work/image-$arch/oci" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --format=gnu -cf "$out/sluice-image-$version-linux-$arch.tar" .
}

main() {
  checked
  local platform name
  work=$(mktemp -d) cache=$PWD/.cache/onnxruntime
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH GOFLAGS=-mod=readonly
  rm -rf "$out" && mkdir -p "$out"
  trap 'rm -rf "$work"' EXIT
  # A checkout of its own: what is not committed is not in the release, and tags are not in the program's version.
  git clone -q --shared --no-tags --no-checkout . "$work/checkout"
  git -C "$work/checkout" checkout -q --detach "$(git rev-parse HEAD)"
  cd "$work/checkout"
  tools=$PWD/tools/release
  CGO_ENABLED=0 $go build -o "$work/host" ./cmd/sluice
  for platform in $platforms; do
    name=sluice-$version-${platform/\//-}
    say "$name"
    laid "$platform" "$work/$name"
    packed "$work/$name" "$out/$name.tar.gz"
    $go run ./internal/sbom "$work/$name/bin/sluice" package-lock.json "$version" >"$out/$name.cdx.json"
    [[ $platform != linux/* || $parts != *packages* ]] || packages "${platform#*/}" "$work/$name"
    [[ $platform != linux/* || $parts != *images* ]] || images "${platform#*/}" "$work/$name"
  done
  if [[ $parts = *chart* ]]; then
    (cd operator/deploy && CGO_ENABLED=0 $go run -buildvcs=false ./cmd/chart chart "$version" \
      "$out/sluice-chart-$version.tgz" "$out/sluice-chart-$version-oci.tar")
  fi
  notes >"$out/NOTES.md"
  [ ! -f "$work/images" ] || { printf '\nImages:\n\n' && sed 's/^/    /' "$work/images"; } >>"$out/NOTES.md"
  (cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
  say "$(wc -l <"$out/SHA256SUMS") files in $out"
}

main
