#!/usr/bin/env bash
# Shows sluice on a real Kubernetes control plane on this machine, as root; see operator/internal/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
KUBEBUILDER_ASSETS=$(scripts/kube-tools.sh)
export KUBEBUILDER_ASSETS
cd operator
CGO_ENABLED=0 GOFLAGS=-buildvcs=false exec "${GO:-go}" run ./internal/demo
