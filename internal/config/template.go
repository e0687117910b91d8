package config

import (
	_ "embed"
	"slices"
)

//go:embed template.yaml
var template []byte

// Template returns a sluice.yaml with every setting, each with a comment. The slice is the caller's.
func Template() []byte { return slices.Clone(template) }
