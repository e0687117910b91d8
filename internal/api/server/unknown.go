package server

import "github.com/sluice-serving/sluice/internal/api/oip"

// unknownModel is worded as Triton words it: existing clients look at its beginning.
func unknownModel(name string) error {
	return oip.Errorf(oip.NotFound, "", "Request for unknown model: '%.200s' is not found", name)
}

// unknownVersion is worded as Triton words it, and says which versions there are.
func unknownVersion(m *Model, version string) error {
	return oip.Errorf(oip.NotFound, "", "Request for unknown model: '%s' version %.40s is not found: use %s, or leave "+
		"the version out", m.Name, version, versions(m))
}
