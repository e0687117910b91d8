package config

import (
	_ "embed"
	"slices"
)

//go:embed template.yaml
var template []byte

// Template returns a sluice.yaml with every setting there is, each with a remark.
func Template() []byte { return slices.Clone(template) }
