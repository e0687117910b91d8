package server

import (
	"compress/gzip"
	"compress/zlib"
	"io"
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
	body, err := s.body(w, r)
	if err != nil {
		return err
	}
	req, err := oip.DecodeREST(body, headerLength, func() (tensor.Spec, bool, error) {
		if len(m.Inputs) != 1 {
			return tensor.Spec{}, false, oip.Errorf(oip.Invalid, oip.HeaderLength,
				"is 0, which only models with one input take; model %q has %d", m.Name, len(m.Inputs))
		}
		return m.Inputs[0], m.Batched, nil
	}, s.regions.reader(s.config.MaxRequest))
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
	answer, err := s.service.Infer(r.Context(), query)
	if err != nil {
		return err
	}
	outputs, shared, err := s.deliver(m, answer.Outputs, req.Outputs)
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

// body reads a request, decompressed and bounded: neither the received nor the decompressed size may exceed the limit.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.config.MaxRequest {
		return nil, &http.MaxBytesError{Limit: s.config.MaxRequest}
	}
	var in io.Reader = http.MaxBytesReader(w, r.Body, s.config.MaxRequest)
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		if n := r.ContentLength; n > 0 && n <= s.config.MaxRequest {
			b := make([]byte, 0, min(n, 1<<20)+1) // a false Content-Length allocates no more than this
			return readInto(b, in)
		}
		return io.ReadAll(in)
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "gzip: %v", err)
		}
		in = z
	case "deflate":
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "deflate (zlib format): %v", err)
		}
		in = z
	default:
		return nil, oip.Errorf(oip.Unsupported, "Content-Encoding", "%.40q is not supported: use gzip, deflate or none",
			r.Header.Get("Content-Encoding"))
	}
	b, err := io.ReadAll(io.LimitReader(in, s.config.MaxRequest+1))
	if large := tooLarge(err); large != nil {
		return nil, large
	}
	if err != nil {
		return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "%v", err)
	}
	if int64(len(b)) > s.config.MaxRequest {
		return nil, oip.Errorf(oip.TooLarge, "", "the request unpacks to more than %d bytes, the limit of this "+
			"server (%s)",
			s.config.MaxRequest, limitKey)
	}
	return b, nil
}

// readInto is io.ReadAll that appends to a buffer.
func readInto(b []byte, in io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := in.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
