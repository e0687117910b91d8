package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// postInfer answers an inference request.
func (s *Server) postInfer(w http.ResponseWriter, r *http.Request) error {
	m, version, err := s.pathModel(r)
	if err != nil {
		return err
	}
	if m.Decoupled() {
		return errDecoupled
	}
	headerLength, err := headerLength(r)
	if err != nil {
		return err
	}
	holds := s.memory.Begin(tenantOf(r.Context()))
	defer holds.Release()
	body, err := s.body(w, r, holds)
	if err != nil {
		return err
	}
	if err := holds.Decoded(body, headerLength, &s.config.Message); err != nil {
		return err
	}
	req, err := oip.DecodeREST(body, headerLength, s.config.Message, func() (tensor.Spec, bool, error) {
		if len(m.Inputs) != 1 {
			return tensor.Spec{}, false, oip.Errorf(oip.Invalid, oip.HeaderLength, "is 0: Raw request must only have "+
				"1 input (found 1) to be deduced but got %d inputs in '%s' model configuration", len(m.Inputs), m.Name)
		}
		if m.Inputs[0].DType == tensor.Bytes { // the body becomes an element with a length before it, a copy
			if err := holds.Take(int64(len(body)) + 4); err != nil {
				return tensor.Spec{}, false, err
			}
		}
		return m.Inputs[0], m.shownBatched(), nil
	}, s.regions.Reader(s.config.MaxRequest, holds))
	if err = namingInputs(m, err); err != nil {
		return err
	}
	query, err := newRequest(m, version, req.Inputs, req.Params, s.config.Items)
	if err != nil {
		return err
	}
	if err := s.wantOutputs(m, query, req.Outputs); err != nil {
		return err
	}
	req.Inputs = nil // large tensors are freed as soon as no stage needs them
	m, answer, err := s.infer(r.Context(), m, query)
	if err != nil {
		return err
	}
	outputs, shared, err := s.deliver(m, answer.Outputs, req.Outputs, query.Outputs, holds)
	if err != nil {
		return err
	}
	v, _ := m.Version(answer.Variant)
	head := answerHeads.Get().(*answerHead)
	defer answerHeads.Put(head)
	head.params = append(head.params[:0], oip.Param{Name: "variant", Value: v.Name},
		oip.Param{Name: "accuracy", Value: answer.Accuracy},
		oip.Param{Name: "queue_us", Value: answer.Queue.Microseconds()},
		oip.Param{Name: "batch_size", Value: int64(answer.BatchSize)},
		oip.Param{Name: "query_id", Value: int64(answer.Query)})
	if answer.Calibrated {
		head.params = append(head.params, oip.Param{Name: "confidence", Value: float64(answer.Confidence)})
	}
	if len(answer.Stages) > 0 {
		head.params = append(head.params, stageTimings(answer.Stages)...)
	}
	out, blocks, err := oip.AppendREST(head.json[:0], &oip.RESTResponse{
		ModelName: m.Name, ModelVersion: v.Version, ID: req.ID, Outputs: outputs, Shared: shared, Params: head.params,
	}, req)
	if err != nil {
		return err
	}
	head.keep(out)
	h := w.Header()
	h["Content-Type"] = contentJSON
	if blocks != nil {
		h["Content-Type"] = contentBinary
		h.Set(oip.HeaderLength, strconv.Itoa(len(out)))
	}
	writeAnswer(w, r, out, blocks)
	return nil
}

// Values of Content-Type. They are shared by all answers: net/http copies them.
var (
	contentJSON   = []string{"application/json"}
	contentBinary = []string{"application/octet-stream"}
)

// answerHead is memory for the JSON of an answer, used again by later ones.
type answerHead struct {
	json   []byte
	params []oip.Param
}

// keptHead is the largest JSON of an answer whose memory is kept, in bytes.
const keptHead = 64 << 10

var answerHeads = sync.Pool{New: func() any { return &answerHead{json: make([]byte, 0, 1024)} }}

func (h *answerHead) keep(b []byte) {
	if cap(b) <= keptHead {
		h.json = b[:0]
	}
}

// within has a handler work for as long as the client waits, if a header says so. The time counts from here on, so that
// it includes that of reading the request.
func within(h func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		text := r.Header.Get(oip.HeaderTimeout)
		if text == "" {
			return h(w, r)
		}
		d, err := oip.ParseTimeout(text)
		if err != nil {
			return err
		}
		ctx, done := context.WithTimeout(r.Context(), d)
		defer done()
		return h(w, r.WithContext(ctx))
	}
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
