package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// errDecoupled is the error for a request over HTTP that can have only one answer.
var errDecoupled = oip.Errorf(oip.Unsupported, "", "HTTP end point doesn't support models with decoupled transaction "+
	"policy: use generate_stream, or ModelStreamInfer over gRPC")

// generation is a request of Triton's generate extension.
type generation struct {
	server *Server
	model  *Model
	id     string
	query  *dataplane.Request
	holds  *memory.Claim
}

// generation reads a request. The body's memory belongs to its claim.
func (s *Server) generation(w http.ResponseWriter, r *http.Request, holds *memory.Claim) (*generation, error) {
	m, version, err := s.pathModel(r)
	if err != nil {
		return nil, err
	}
	body, err := s.body(w, r, holds)
	if err != nil {
		return nil, err
	}
	// The body is held twice: as it came, and as an inference request.
	if err := holds.Take(int64(len(body))); err != nil {
		return nil, err
	}
	if m.Inputs == nil {
		return nil, oip.Errorf(oip.Unsupported, "", "model '%s' cannot be asked to generate: its inputs are not known",
			m.Name)
	}
	body, err = oip.GenerateBody(body, m.Inputs, m.shownBatched(), s.config.Message)
	if err != nil {
		return nil, err
	}
	if err := holds.Decoded(body, oip.NoBinary, &s.config.Message); err != nil {
		return nil, err
	}
	req, err := oip.DecodeREST(body, oip.NoBinary, s.config.Message, nil, nil)
	if err != nil {
		return nil, err
	}
	query, err := newRequest(m, version, req.Inputs, req.Params, s.config.Items)
	return &generation{server: s, model: m, id: req.ID, query: query, holds: holds}, err
}

// encode writes one answer.
func (g *generation) encode(outputs []tensor.Tensor, answer *dataplane.Response) ([]byte, error) {
	if err := g.holds.Answer(outputs); err != nil {
		return nil, err
	}
	out := &oip.RESTResponse{ModelName: g.model.Name, ID: g.id, Outputs: outputs}
	if answer != nil {
		v, _ := g.model.Version(answer.Variant)
		out.ModelVersion = v.Version
	} else if len(g.model.Versions) > 0 {
		out.ModelVersion = g.model.Versions[len(g.model.Versions)-1].Version
	}
	return oip.GenerateAnswer(out)
}

// postGenerate answers with one JSON object.
func (s *Server) postGenerate(w http.ResponseWriter, r *http.Request) error {
	holds := s.memory.Begin(tenantOf(r.Context()))
	defer holds.Release()
	g, err := s.generation(w, r, holds)
	if err != nil {
		return err
	}
	if g.model.Decoupled() {
		return oip.Errorf(oip.Invalid, "", "generate expects model to produce exactly 1 response, use generate stream "+
			"for models that generate various number of responses")
	}
	by, answer, err := s.infer(r.Context(), g.model, g.query)
	if err != nil {
		return err
	}
	g.model = by
	out, err := g.encode(answer.Outputs, answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
	return nil
}

// postGenerateStream answers with events, one for each answer of the model, as soon as it is there. An error before the
// first is an answer of its own; a later one is an event.
func (s *Server) postGenerateStream(w http.ResponseWriter, r *http.Request) error {
	holds := s.memory.Begin(tenantOf(r.Context()))
	defer holds.Release()
	g, err := s.generation(w, r, holds)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	begun := false
	send := func(text []byte) {
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			w.Header().Set("Cache-Control", "no-cache")
			begun = true
		}
		_, _ = w.Write([]byte("data: "))
		_, _ = w.Write(text)
		_, _ = w.Write([]byte("\n\n"))
		_ = http.NewResponseController(w).Flush()
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	var failed error
	event := func(outputs []tensor.Tensor, answer *dataplane.Response) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return
		}
		out, err := g.encode(outputs, answer)
		if err != nil {
			failed = err
			stop()
			return
		}
		send(out)
		holds.Give(tensor.TotalBytes(outputs))
	}
	if g.model.Decoupled() {
		g.query.Partial = func(outputs []tensor.Tensor) { event(outputs, nil) }
	}
	by, answer, err := s.infer(ctx, g.model, g.query)
	g.model = by
	if err == nil && len(answer.Outputs) > 0 {
		event(answer.Outputs, answer)
	}
	mu.Lock()
	defer mu.Unlock()
	if failed != nil {
		err = failed
	}
	if err == nil || !begun {
		return err
	}
	e, _ := clientError(err)
	text, _ := json.Marshal(map[string]string{"error": e.Error()})
	send(text)
	return nil
}
