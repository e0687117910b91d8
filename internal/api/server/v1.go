package server

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/routes"
)

// v1Routes mounts the protocol v1 of TensorFlow Serving and KServe. The verb of a path stands behind a colon, in the
// segment of the model or of its version.
func (s *Server) v1Routes(mux *routes.Mux, get func(string, func(http.ResponseWriter, *http.Request) error)) {
	get("/{$}", func(w http.ResponseWriter, _ *http.Request) error { // of KServe: whether the server is alive
		return reply(w, map[string]string{"status": "alive"})
	})
	get("/v1/models", s.listV1)
	for _, x := range []struct{ path, segment string }{
		{"/v1/models/{model}", "model"}, {"/v1/models/{model}/versions/{version}", "version"},
	} {
		mux.HandleFunc(x.path, func(w http.ResponseWriter, r *http.Request) {
			name, verb, asked := cutLast(r.PathValue(x.segment), ":")
			h, allow := s.statusV1, http.MethodGet
			if asked && r.Method == http.MethodPost {
				r.SetPathValue(x.segment, name)
				h, allow = within(s.postPredict), http.MethodPost
				if verb != "predict" {
					h = func(http.ResponseWriter, *http.Request) error { return unknownVerb(verb) }
				}
			}
			s.only(allow, h)(w, r)
		})
		get(x.path+"/metadata", s.metadataV1)
	}
}

func cutLast(text, by string) (before, after string, found bool) {
	at := strings.LastIndex(text, by)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(by):], true
}

func unknownVerb(verb string) error {
	return oip.Errorf(oip.Unsupported, "", "%.40q is not offered: the verb of the protocol v1 is predict", verb)
}

// postPredict answers an inference request of the protocol v1.
func (s *Server) postPredict(w http.ResponseWriter, r *http.Request) error {
	m, version, err := s.pathModel(r)
	if err != nil {
		return err
	}
	if m.Decoupled() {
		return errDecoupled
	}
	if m.Inputs == nil {
		return oip.Errorf(oip.Unsupported, "", "model '%s' cannot be asked by the protocol v1: the datatypes of its "+
			"inputs are not known", m.Name)
	}
	holds := s.memory.Begin(tenantOf(r.Context()))
	defer holds.Release()
	body, err := s.body(w, r, holds)
	if err != nil {
		return err
	}
	if err := holds.Decoded(body, oip.NoBinary, &s.config.Message); err != nil {
		return err
	}
	req, err := oip.DecodeV1(body, m.Inputs, m.Optional, s.config.Message)
	if err = namingInputs(m, err); err != nil {
		return err
	}
	query, err := newRequest(m, version, req.Inputs, req.Params, s.config.Items)
	if err != nil {
		return err
	}
	if err := s.wantOutputs(m, query, nil); err != nil {
		return err
	}
	req.Inputs = nil // large tensors are freed as soon as no stage needs them
	_, answer, err := s.infer(r.Context(), m, query)
	if err != nil {
		return err
	}
	if err := holds.Answer(answer.Outputs); err != nil {
		return err
	}
	head := answerHeads.Get().(*answerHead)
	defer answerHeads.Put(head)
	out, err := oip.AppendV1(head.json[:0], answer.Outputs, req.Rows)
	if err != nil {
		return err
	}
	head.keep(out)
	w.Header()["Content-Type"] = contentJSON
	writeAnswer(w, r, out, nil)
	return nil
}

// listV1 lists the models as KServe does.
func (s *Server) listV1(w http.ResponseWriter, _ *http.Request) error {
	list := struct {
		Models []string `json:"models"`
	}{[]string{}}
	for _, m := range s.service.Models() {
		list.Models = append(list.Models, m.Name)
	}
	return reply(w, &list)
}

// metadataV1 answers what a model takes and gives, as TensorFlow Serving does.
func (s *Server) metadataV1(w http.ResponseWriter, r *http.Request) error {
	m, version, err := s.pathModel(r)
	if err != nil {
		return err
	}
	if m.Inputs == nil {
		return oip.Errorf(oip.Unsupported, "", "what model '%s' takes and gives is not known", m.Name)
	}
	return reply(w, oip.NewV1Metadata(m.Name, cmp.Or(version, m.allVersions()[0].Version), m.Inputs, m.Outputs))
}

// statusOfModelV1 is the status of a model: KServe's clients read name, ready and the HTTP status, those of TensorFlow
// Serving the states of the versions.
type statusOfModelV1 struct {
	Name     string              `json:"name"`
	Ready    bool                `json:"ready"`
	Versions []statusOfVersionV1 `json:"model_version_status"`
}

type statusOfVersionV1 struct {
	Version string `json:"version"`
	State   string `json:"state"` // START, LOADING, AVAILABLE, UNLOADING or END
	Status  struct {
		Code string `json:"error_code"`
		Text string `json:"error_message"`
	} `json:"status"`
}

// statusV1 answers 200 when a version of the model is ready, and else 503, as KServe does.
func (s *Server) statusV1(w http.ResponseWriter, r *http.Request) error {
	version := r.PathValue("version")
	m, err := s.model(r.PathValue("model"), version)
	if err != nil {
		return err
	}
	out := statusOfModelV1{Name: m.Name, Ready: s.modelReady(m, version), Versions: []statusOfVersionV1{}}
	pinned, _ := m.pin(version)
	for _, v := range m.allVersions() {
		if version != "" && v.Version != pinned.Version {
			continue
		}
		x := statusOfVersionV1{Version: v.Version, State: "AVAILABLE"}
		x.Status.Code = "OK"
		if of, _ := m.withVersion(v.Version); !s.modelReady(of, v.Version) {
			x.State, x.Status.Code, x.Status.Text = "LOADING", "UNAVAILABLE", s.service.Reason(of, v.Version)
			if of.Unloaded || of.Failed != "" {
				x.State = "END"
			}
		}
		out.Versions = append(out.Versions, x)
	}
	if !out.Ready {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	return reply(w, &out)
}
