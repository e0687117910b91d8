package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// steps returns the steps of an ensemble, with the steps of another ensemble in the place of one that runs it, and adds
// those ensembles to the app. outer are the ensembles that it is in, itself the last. Tensors that an inner ensemble
// keeps to itself get names that no other step uses.
func (im *importer) steps(a *App, of []*pb.ModelEnsembling_Step, outer []string) (out []*pb.ModelEnsembling_Step,
	err error) {
	for k, s := range of {
		m, err := im.member(s.ModelName)
		if err != nil {
			return nil, fmt.Errorf("step[%d]: %w", k, err)
		}
		if m.Config.EnsembleScheduling == nil {
			if out = append(out, s); len(out) > maxStages {
				return nil, fmt.Errorf("ensemble_scheduling has more than %d steps", maxStages)
			}
			continue
		}
		if slices.Contains(outer, s.ModelName) {
			return nil, fmt.Errorf("step[%d]: ensemble %q runs itself: %s", k, s.ModelName,
				strings.Join(append(outer, s.ModelName), " > "))
		}
		if err := m.fits(s); err != nil {
			return nil, fmt.Errorf("step[%d]: %w", k, err)
		}
		if !slices.Contains(a.Ensembles, s.ModelName) {
			a.Ensembles = append(a.Ensembles, s.ModelName)
		}
		inner, err := im.steps(a, m.Config.EnsembleScheduling.Step, append(slices.Clone(outer), s.ModelName))
		if err != nil {
			return nil, fmt.Errorf("step[%d]: ensemble %q: %w", k, s.ModelName, err)
		}
		if len(inner) == 0 {
			return nil, fmt.Errorf("step[%d]: ensemble %q has no step", k, s.ModelName)
		}
		own := fmt.Sprintf("%s[%d].", strings.Join(outer, "."), k)
		for _, x := range inner {
			out = append(out, &pb.ModelEnsembling_Step{
				ModelName: x.ModelName, ModelVersion: x.ModelVersion,
				InputMap:  outside(x.InputMap, s, own),
				OutputMap: outside(x.OutputMap, s, own),
			})
		}
		if len(out) > maxStages {
			return nil, fmt.Errorf("ensemble_scheduling has more than %d steps", maxStages)
		}
	}
	return out, nil
}

// outside returns a map of an inner ensemble's step with the names that its tensors have outside.
func outside(inner map[string]string, s *pb.ModelEnsembling_Step, own string) map[string]string {
	out := maps.Clone(inner)
	for port, name := range out {
		switch in, isInput := s.InputMap[name]; {
		case isInput:
			out[port] = in
		case s.OutputMap[name] != "":
			out[port] = s.OutputMap[name]
		default:
			out[port] = own + name
		}
	}
	return out
}
