#!/usr/bin/env bash
# Vets and tests the operator's modules on a real control plane, which is built first where it is not there yet. Root and
# iproute2 are needed: pods' addresses become addresses of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
KUBEBUILDER_ASSETS=$(scripts/kube-tools.sh)
# The control plane was built with these: its compiled packages are ours.
export KUBEBUILDER_ASSETS SLUICE_CLUSTER=must CGO_ENABLED=0 GOFLAGS=-buildvcs=false
for module in operator operator/deploy; do
  (cd "$module" && $go vet ./... && $go test -timeout 30m "$@" ./...)
done
