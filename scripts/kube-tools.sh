#!/usr/bin/env bash
# Builds the control plane that the tests on a cluster run on (tools/kube: API server, etcd, scheduler, controllers,
# kubectl, simulated nodes) and prints the folder that holds it. The folder is named by what went into it: once built,
# this takes no time. Cold it takes about ten minutes on two cores, 5 GB of disk and 2 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
# These flags are part of the build cache's key; the operator's tests use the same, so that compiled packages are shared.
export CGO_ENABLED=0 GOFLAGS='-p=2 -mod=readonly -buildvcs=false'
key=$({ cat tools/kube/go.mod tools/kube/go.sum scripts/kube-tools.sh && $go version; } | sha256sum | cut -c1-16)
out=$PWD/.tools/kube-$key
if [ ! -e "$out/complete" ]; then
  echo "building Kubernetes' control plane into ${out#"$PWD/"}, once; this takes about ten minutes" >&2
  mkdir -p "$out"
  cd tools/kube
  version=$($go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  at=k8s.io/component-base/version
  # The one linked first shares its packages with the others, so they come one after another.
  for tool in k8s.io/kubernetes/cmd/kube-apiserver go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kubectl \
    k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kube-controller-manager sigs.k8s.io/kwok/cmd/kwok; do
    name=${tool##*/}
    [ "$tool" != go.etcd.io/etcd/server/v3 ] || name=etcd
    $go build -ldflags "-s -w -X $at.gitVersion=$version -X $at.gitMajor=$major -X $at.gitMinor=$minor" \
      -o "$out/$name" "$tool"
  done
  touch "$out/complete"
fi
echo "$out"
