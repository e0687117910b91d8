package server

import (
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

// Statistics implements server.Service. The versions of an app are the variants of its last stage. A composed app
// is a model of its own, which comes first; its steps follow under the names of their variants.
func (s *service) Statistics(m *server.Model) []server.VersionStatistics {
	var out []server.VersionStatistics
	spec := s.spec.Load()
	if !serves(spec, m) {
		return nil
	}
	several := spec.Apps[m.App].Composed()
	for _, x := range s.telemetry.Statistics(m.App) {
		one := server.VersionStatistics{LastInference: x.LastMS, InferenceCount: x.InferenceCount,
			ExecutionCount: x.ExecutionCount,
			Success:        x.Success, SuccessNS: x.SuccessNS, Fail: x.Fail, FailNS: x.FailNS, Queue: x.Queue,
			QueueNS: x.QueueNS, Compute: x.Compute, ComputeNS: x.ComputeNS}
		for _, b := range x.Batches {
			one.Batches = append(one.Batches, server.BatchStatistics{Size: b.Size, Count: b.Count, NS: b.NS})
		}
		switch {
		case x.Variant == serving.None:
			one.Version = m.Versions[len(m.Versions)-1].Version
		case several:
			one.Model, one.Version = spec.Variants[x.Variant].Name, spec.Variants[x.Variant].Version
			if one.Version == "" {
				one.Version = "1"
			}
		default:
			v, ok := m.Version(x.Variant)
			if !ok {
				continue
			}
			one.Version = v.Version
		}
		out = append(out, one)
	}
	return out
}
