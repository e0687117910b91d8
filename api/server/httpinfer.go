package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// postInfer answers an inference request.
func (s *Server) postInfer(w http.ResponseWriter, r *http.Request) error {
	m, version, err := s.pathModel(r)
	if err != nil {
		return err
	}
	headerLength, err := headerLength(r)
	if err != nil {
		return err
	}
	holds := s.memory.begin()
	defer holds.release()
	body, err := s.body(w, r, holds)
	if err != nil {
		return err
	}
	if err := holds.decoded(body, headerLength, &s.config.Message); err != nil {
		return err
	}
	req, err := oip.DecodeREST(body, headerLength, s.config.Message, func() (tensor.Spec, bool, error) {
		if len(m.Inputs) != 1 {
			return tensor.Spec{}, false, oip.Errorf(oip.Invalid, oip.HeaderLength,
				"is 0, which only models with one input take; model %q has %d", m.Name, len(m.Inputs))
		}
		if m.Inputs[0].DType == tensor.Bytes { // the body becomes an element with a length before it, a copy
			if err := holds.take(int64(len(body)) + 4); err != nil {
				return tensor.Spec{}, false, err
			}
		}
		return m.Inputs[0], m.Batched, nil
	}, s.regions.reader(s.config.MaxRequest, holds))
	if err != nil {
		return err
	}
	query, err := newRequest(m, version, req.Inputs, req.Params, s.config.Items)
	if err != nil {
		return err
	}
	if err := s.checkWanted(m, req.Outputs); err != nil {
		return err
	}
	req.Inputs = nil // large tensors are freed as soon as no stage needs them
	answer, err := s.infer(r.Context(), query)
	if err != nil {
		return err
	}
	outputs, shared, err := s.deliver(m, answer.Outputs, req.Outputs, holds)
	if err != nil {
		return err
	}
	v, _ := m.Version(answer.Variant)
	out, length, err := oip.EncodeREST(&oip.RESTResponse{
		ModelName: m.Name, ModelVersion: v.Version, ID: req.ID, Outputs: outputs, Shared: shared,
		Params: append([]oip.Param{{Name: "variant", Value: v.Name}, {Name: "accuracy", Value: answer.Accuracy},
			{Name: "queue_us", Value: answer.Queue.Microseconds()},
			{Name: "batch_size", Value: int64(answer.BatchSize)}, {
				Name: "query_id", Value: int64(answer.Query),
			}}, stageTimings(answer.Stages)...),
	}, req)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if length != oip.NoBinary {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(oip.HeaderLength, strconv.Itoa(length))
	}
	writeCompressed(w, r, out)
	return nil
}

// headerLength reads the header with the length of the JSON.
func headerLength(r *http.Request) (int, error) {
	v := r.Header.Get(oip.HeaderLength)
	if v == "" {
		return oip.NoBinary, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || n < 0 {
		return 0, oip.Errorf(oip.Invalid, oip.HeaderLength, "is %.40q, want a whole number, at least 0", v)
	}
	return n, nil
}
