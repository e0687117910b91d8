package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/routes"
	"github.com/sluice-serving/sluice/tensor"
)

// MetricsPath is the pattern of metrics.
const MetricsPath = "GET /metrics"

// routes are the HTTP paths of the protocol and of Triton's extensions. Query strings are ignored, because some clients
// add them.
func (s *Server) routes() http.Handler {
	mux := &s.public
	get := func(path string, h func(http.ResponseWriter, *http.Request) error) {
		s.handle(mux, http.MethodGet, path, h)
	}
	post := func(path string, h func(http.ResponseWriter, *http.Request) error) {
		s.handle(mux, http.MethodPost, path, h)
	}
	get("/v2", s.getServer)
	get("/v2/{$}", s.getServer)
	get("/v2/health/live", func(w http.ResponseWriter, _ *http.Request) error {
		return reply(w, map[string]bool{"live": true})
	})
	get("/v2/health/ready", func(w http.ResponseWriter, _ *http.Request) error {
		return readiness(w, s.Ready(), s.unready)
	})
	get("/v2/models/stats", s.getAllStats)
	for _, p := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		get(p, s.getModel)
		get(p+"/ready", s.getReady)
		get(p+"/config", s.getConfig)
		get(p+"/stats", s.getStats)
		post(p+"/infer", within(s.postInfer))
		post(p+"/generate", within(s.postGenerate))
		post(p+"/generate_stream", within(s.postGenerateStream))
	}
	post("/v2/repository/index", s.postIndex)
	post("/v2/repository/models/{model}/load", s.postLoad)
	post("/v2/repository/models/{model}/unload", s.postUnload)
	s.regionRoutes(get, post)
	s.settingRoutes(mux)
	s.v1Routes(mux, get)
	if h := s.config.AdminHandlers[MetricsPath]; h != nil && s.config.PublicMetrics {
		mux.Handle(MetricsPath, h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, oip.Errorf(oip.NotFound, "", "there is nothing at %.200q", r.URL.Path))
	})
	h := s.allowOrigins(s.config.shielded(s.entry(mux)))
	if wrap := s.config.WrapHTTP; wrap != nil {
		h = wrap(h)
	}
	return h
}

// handle mounts one method of one path.
func (s *Server) handle(mux *routes.Mux, method, path string, h func(http.ResponseWriter, *http.Request) error) {
	mux.HandleFunc(path, s.only(method, h))
}

// only answers requests of one method, and others with 405.
func (s *Server) only(method string, h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", method)
			writeError(w, http.StatusMethodNotAllowed, "use "+method+" here")
			return
		}
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// fail answers with an error: a status and {"error": "..."}.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e, retry := clientError(err)
	setRetry(w.Header(), retry)
	if r.Context().Err() != nil && e.Code == oip.Internal {
		e.Code = oip.Gone
	}
	if left := (*unreadError)(nil); errors.As(err, &left) {
		s.failUnread(w, r, e)
		return
	}
	writeError(w, e.Code.HTTP(), e.Error())
}

func writeError(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del(oip.HeaderLength)
	w.WriteHeader(status)
	_, _ = w.Write(oip.ErrorBody(text))
}

func reply(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
	return nil
}

// readiness answers 200 or, as KServe and load balancers expect it, 503.
func readiness(w http.ResponseWriter, ready bool, why func() string) error {
	if !ready {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		b, err := json.Marshal(map[string]any{"ready": false, "error": why()})
		if err == nil {
			_, _ = w.Write(b)
		}
		return err
	}
	return reply(w, map[string]bool{"ready": true})
}

// pathModel finds the model and checks the version that a path names.
func (s *Server) pathModel(r *http.Request) (*Model, string, error) {
	version := r.PathValue("version")
	m, err := s.usable(r.PathValue("model"), version)
	return m, version, err
}

func (s *Server) getServer(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{"name": s.config.Name, "version": s.config.Version,
		"extensions": s.config.extensions()})
}

// jsonTensor is a tensor in metadata.
type jsonTensor struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

func jsonTensors(specs []tensor.Spec) []jsonTensor {
	out := make([]jsonTensor, len(specs))
	for k, t := range specs {
		out[k] = jsonTensor{t.Name, t.DType.String(), append([]int64{}, t.Shape...)} // clients expect a list
	}
	return out
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	m, _, err := s.pathModel(r)
	if err != nil {
		return err
	}
	var versions []string
	for _, v := range m.allVersions() {
		versions = append(versions, v.Version)
	}
	return reply(w, map[string]any{
		"name": m.Name, "versions": versions, "platform": m.Platform, "inputs": jsonTensors(m.Inputs),
		"outputs": jsonTensors(m.Outputs),
	})
}

func (s *Server) getReady(w http.ResponseWriter, r *http.Request) error {
	version := r.PathValue("version")
	m, err := s.model(r.PathValue("model"), version)
	if err != nil {
		return err
	}
	return readiness(w, s.modelReady(m, version), func() string { return "not ready" })
}

func (s *Server) getConfig(w http.ResponseWriter, r *http.Request) error {
	m, _, err := s.pathModel(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(appendProto(nil, m.config().ProtoReflect()))
	return nil
}

func (s *Server) postIndex(w http.ResponseWriter, r *http.Request) error {
	var ask struct {
		Ready bool `json:"ready"`
	}
	err := s.withBody(w, r, func(body []byte) error {
		if len(body) > 0 {
			if err := json.Unmarshal(body, &ask); err != nil {
				return oip.Errorf(oip.Invalid, "", "the request is not the JSON that is wanted: %v", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, s.index(ask.Ready))
}
