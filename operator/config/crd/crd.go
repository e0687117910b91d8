// Package crd holds the definitions of sluice's resources, as `make crds` writes them from operator/api.
package crd

import "embed"

// Files are the definitions, a YAML file each.
//
//go:embed sluice.dev_*.yaml
var Files embed.FS
