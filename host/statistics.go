package host

import "github.com/sluice-serving/sluice/api/server"

// Statistics implements server.Service. The versions of an app are the variants of its last stage; variants of earlier
// stages have no counters.
func (s *service) Statistics(m *server.Model) []server.VersionStatistics {
	var out []server.VersionStatistics
	for _, x := range s.telemetry.Statistics(m.App) {
		v, ok := m.Version(x.Variant)
		if !ok {
			continue
		}
		one := server.VersionStatistics{Version: v.Version, LastInference: x.LastMS, InferenceCount: x.InferenceCount,
			ExecutionCount: x.ExecutionCount,
			Success:        x.Success, SuccessNS: x.SuccessNS, Fail: x.Fail, FailNS: x.FailNS, Queue: x.Queue,
			QueueNS: x.QueueNS, Compute: x.Compute, ComputeNS: x.ComputeNS}
		for _, b := range x.Batches {
			one.Batches = append(one.Batches, server.BatchStatistics{Size: b.Size, Count: b.Count, NS: b.NS})
		}
		out = append(out, one)
	}
	return out
}
