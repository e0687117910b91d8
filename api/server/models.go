package server

import (
	"github.com/sluice-serving/sluice/api/oip/pb"
)

// modelStatistics are the counters of one version of a model.
type modelStatistics struct {
	model *Model
	VersionStatistics
}

// version returns an error unless a model has a version.
func (s *Server) version(m *Model, version string) (string, error) {
	if _, ok := m.Pin(version); !ok {
		return "", unknownVersion(m, version)
	}
	return version, nil
}

// statistics returns the counters of one model or, for the name "", of all.
func (s *Server) statistics(name, version string) ([]modelStatistics, error) {
	models := s.service.Models()
	if name != "" {
		m, ok := s.service.Lookup(name)
		if !ok {
			return nil, unknownModel(name)
		}
		if _, err := s.version(m, version); err != nil {
			return nil, err
		}
		models = []*Model{m}
	}
	var out []modelStatistics
	for _, m := range models {
		want, _ := m.Pin(version)
		for _, x := range s.service.Statistics(m) {
			if v, ok := m.Pin(x.Version); version == "" || ok && v == want {
				out = append(out, modelStatistics{m, x})
			}
		}
	}
	return out, nil
}

func duration(count, ns uint64) *pb.StatisticDuration {
	return &pb.StatisticDuration{Count: count, Ns: ns}
}

func (x *modelStatistics) proto() *pb.ModelStatistics {
	out := &pb.ModelStatistics{
		Name: x.model.Name, Version: x.Version, LastInference: uint64(x.LastInference),
		InferenceCount: x.InferenceCount, ExecutionCount: x.ExecutionCount,
		InferenceStats: &pb.InferStatistics{
			Success: duration(x.Success, x.SuccessNS), Fail: duration(x.Fail, x.FailNS),
			Queue:        duration(x.Queue, x.QueueNS),
			ComputeInput: duration(x.Compute, 0), ComputeInfer: duration(x.Compute, x.ComputeNS),
			ComputeOutput: duration(x.Compute, 0),
		},
	}
	for _, b := range x.Batches {
		out.BatchStats = append(out.BatchStats, &pb.InferBatchStatistics{
			BatchSize: b.Size, ComputeInput: duration(b.Count, 0), ComputeInfer: duration(b.Count, b.NS),
			ComputeOutput: duration(b.Count, 0),
		})
	}
	return out
}

// indexEntry is a version of a model in the repository index.
type indexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
}

// index lists the versions of all models, or only those that are ready.
func (s *Server) index(readyOnly bool) []indexEntry {
	out := []indexEntry{}
	for _, m := range s.service.Models() {
		for _, v := range m.Versions {
			e := indexEntry{Name: m.Name, Version: v.Version, State: "READY"}
			if !s.modelReady(m, v.Version) {
				if readyOnly {
					continue
				}
				e.State, e.Reason = "UNAVAILABLE", "not loaded"
			}
			out = append(out, e)
		}
	}
	return out
}
