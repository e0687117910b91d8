package server

import (
	"errors"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
)

// Kinds of reasons why a model is not served; see telemetry.FailedModel.
const (
	failedDefinition = "definition"
	failedRuntime    = "runtime"
	failedPlacement  = "placement"
)

// failedKind is the kind of an error of the catalog.
func failedKind(err error) string {
	var known *oip.Error
	if errors.As(err, &known) {
		switch known.Code {
		case oip.Unavailable:
			return failedPlacement
		case oip.Invalid, oip.NotFound, oip.Unsupported, oip.TooLarge:
			return failedDefinition
		}
	}
	return failedRuntime
}

// failedModels lists the models that are not served since they could not be loaded.
func (s *service) failedModels() (out []telemetry.FailedModel) {
	for _, m := range s.Models() {
		for _, x := range m.All() {
			kind := x.FailedKind
			if x.Failed == "" {
				if !s.isBroken(x) {
					continue
				}
				kind = failedRuntime
			}
			for _, v := range x.Versions {
				out = append(out, telemetry.FailedModel{Model: x.Name, Version: v.Version, Kind: kind})
			}
		}
	}
	return out
}
