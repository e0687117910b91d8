package server

import "net/http"

type jsonDuration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

type jsonBatch struct {
	BatchSize     uint64       `json:"batch_size"`
	ComputeInput  jsonDuration `json:"compute_input"`
	ComputeInfer  jsonDuration `json:"compute_infer"`
	ComputeOutput jsonDuration `json:"compute_output"`
}

type jsonStats struct {
	Name           string                  `json:"name"`
	Version        string                  `json:"version"`
	LastInference  int64                   `json:"last_inference"`
	InferenceCount uint64                  `json:"inference_count"`
	ExecutionCount uint64                  `json:"execution_count"`
	InferenceStats map[string]jsonDuration `json:"inference_stats"`
	BatchStats     []jsonBatch             `json:"batch_stats"`
}

func (s *Server) getStats(w http.ResponseWriter, r *http.Request) error {
	return s.stats(w, r.PathValue("model"), r.PathValue("version"))
}

func (s *Server) getAllStats(w http.ResponseWriter, _ *http.Request) error { return s.stats(w, "", "") }

func (s *Server) stats(w http.ResponseWriter, name, version string) error {
	list, err := s.statistics(name, version)
	if err != nil {
		return err
	}
	out := make([]jsonStats, len(list))
	for k, x := range list {
		out[k] = jsonStats{
			Name: x.name(), Version: x.Version, LastInference: x.LastInference, InferenceCount: x.InferenceCount,
			ExecutionCount: x.ExecutionCount,
			InferenceStats: map[string]jsonDuration{
				"success": {x.Success, x.SuccessNS}, "fail": {x.Fail, x.FailNS}, "queue": {x.Queue, x.QueueNS},
				"compute_input": {x.Compute, 0}, "compute_infer": {x.Compute, x.ComputeNS},
				"compute_output": {x.Compute, 0}, "cache_hit": {}, "cache_miss": {},
			},
			BatchStats: []jsonBatch{},
		}
		for _, b := range x.Batches {
			out[k].BatchStats = append(out[k].BatchStats, jsonBatch{
				b.Size, jsonDuration{b.Count, 0}, jsonDuration{b.Count, b.NS}, jsonDuration{b.Count, 0},
			})
		}
	}
	return reply(w, map[string]any{"model_stats": out})
}
