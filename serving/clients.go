package serving

import (
	"slices"
	"strconv"
)

// ClientName is the name by which clients call an app: its own, or that of the app of which it is a version.
func (a *App) ClientName() string {
	if a.VersionOf != "" {
		return a.VersionOf
	}
	return a.Name
}

// ClientVersion is the version under which clients see a variant of an app's last stage, as a decimal number: that of
// its directory where such numbers tell the app's variants apart, else its place among them, from 1. An app of several
// stages has places: the versions of its models are not its own. Retired variants do not count beside another one.
func (s *Spec) ClientVersion(v VariantID) string {
	x := &s.Variants[v]
	stage := &s.Stages[x.Stage]
	shown := slices.DeleteFunc(slices.Clone(stage.Variants), func(o VariantID) bool {
		return o != v && s.Variants[o].Retired
	})
	seen := make(map[string]bool, len(shown))
	for _, other := range shown {
		number := s.Variants[other].Version
		if number == "" || seen[number] || len(s.Apps[stage.App].Stages) > 1 {
			return strconv.Itoa(slices.Index(shown, v) + 1)
		}
		seen[number] = true
	}
	return x.Version
}
