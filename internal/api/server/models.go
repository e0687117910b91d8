package server

import (
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// modelStatistics are the counters of one version of a model.
type modelStatistics struct {
	model *Model
	VersionStatistics
}

// model returns a model in the version that a client names; "" leaves the choice to the system.
func (s *Server) model(name, version string) (*Model, error) {
	m, ok := s.service.Lookup(name)
	if !ok {
		return nil, unknownModel(name)
	}
	x, ok := m.withVersion(version)
	if !ok {
		return nil, unknownVersion(m, version)
	}
	return x, nil
}

// usable is model for a caller that needs more than a name: it fails for a model that cannot be served.
func (s *Server) usable(name, version string) (*Model, error) {
	m, err := s.model(name, version)
	if err == nil && m.Failed != "" {
		err = oip.Errorf(oip.Unavailable, "", "Request for unknown model: '%s' has no available versions: %s", m.Name,
			m.Failed)
	}
	if err == nil && m.Unloaded {
		err = oip.Errorf(oip.Unavailable, "", "model '%s' is unloaded: load it first", m.Name)
	}
	return m, err
}

// statistics returns the counters of one model or, for the name "", of all.
func (s *Server) statistics(name, version string) ([]modelStatistics, error) {
	models := s.service.Models()
	if name != "" {
		m, err := s.model(name, version)
		if err != nil {
			return nil, err
		}
		models = []*Model{m}
		if whole, _ := s.service.Lookup(name); version == "" {
			models = []*Model{whole}
		}
	}
	if version == "" {
		var all []*Model
		for _, m := range models {
			all = append(all, m.All()...)
		}
		models = all
	}
	var out []modelStatistics
	for _, m := range models {
		if m.Failed != "" || m.Unloaded {
			continue
		}
		want, _ := m.Pin(version)
		for _, x := range s.service.Statistics(m) {
			if v, ok := m.Pin(x.Version); version == "" || x.Model != "" || ok && v == want {
				out = append(out, modelStatistics{m, x})
			}
		}
	}
	return out, nil
}

// name is the model that the counters are of.
func (x *modelStatistics) name() string {
	if x.Model != "" {
		return x.Model
	}
	return x.model.Name
}

func duration(count, ns uint64) *pb.StatisticDuration {
	return &pb.StatisticDuration{Count: count, Ns: ns}
}

func (x *modelStatistics) proto() *pb.ModelStatistics {
	out := &pb.ModelStatistics{
		Name: x.name(), Version: x.Version, LastInference: uint64(x.LastInference),
		InferenceCount: x.InferenceCount, ExecutionCount: x.ExecutionCount,
		InferenceStats: &pb.InferStatistics{
			Success: duration(x.Success, x.SuccessNS), Fail: duration(x.Fail, x.FailNS),
			Queue:        duration(x.Queue, x.QueueNS),
			ComputeInput: duration(x.Compute, 0), ComputeInfer: duration(x.Compute, x.ComputeNS),
			ComputeOutput: duration(x.Compute, 0), CacheHit: duration(0, 0), CacheMiss: duration(0, 0),
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
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// index lists the versions of all models, or only those that are ready.
func (s *Server) index(readyOnly bool) []indexEntry {
	out := []indexEntry{}
	for _, m := range s.service.Models() {
		for _, v := range m.allVersions() {
			e := indexEntry{Name: m.Name, Version: v.Version, State: "READY"}
			if x, _ := m.withVersion(v.Version); !s.modelReady(x, v.Version) {
				if readyOnly {
					continue
				}
				e.State, e.Reason = "UNAVAILABLE", s.service.Reason(x, v.Version)
			}
			out = append(out, e)
		}
	}
	if !readyOnly {
		for _, name := range s.service.Unused() {
			out = append(out, indexEntry{Name: name})
		}
	}
	return out
}
