package functions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/routes"
)

// Limits of the handler.
const (
	maxDeployment = 64 << 10         // bytes of a deployment
	maxEvents     = 1000             // in one answer
	readTimeout   = 30 * time.Second // of a client that sends a model
)

// Handler serves the admin port. A model has at most largest bytes. It looks at no caller: its server does.
func Handler(m *Manager, largest int64) http.Handler {
	h := &handler{m: m, largest: largest}
	mux := new(routes.Mux)
	mux.HandleFunc("PUT "+PathModels+"{sum}", jsonHandler(h.putModel))
	mux.HandleFunc("HEAD "+PathModels+"{sum}", jsonHandler(h.hasModel))
	mux.HandleFunc("GET "+PathFunctions+"{$}", jsonHandler(func(http.ResponseWriter, *http.Request) (any, error) {
		return m.List(), nil
	}))
	get := func(_ http.ResponseWriter, r *http.Request) (any, error) {
		return m.Get(r.PathValue("name"))
	}
	mux.HandleFunc("GET "+PathFunctions+"{name}", jsonHandler(get))
	mux.HandleFunc("PUT "+PathFunctions+"{name}", jsonHandler(h.deploy))
	mux.HandleFunc("DELETE "+PathFunctions+"{name}", jsonHandler(h.delete))
	mux.HandleFunc("DELETE "+PathFunctions+"{name}/deployment", jsonHandler(h.cancel))
	mux.HandleFunc("GET "+PathFunctions+"{name}/logs", jsonHandler(h.logs))
	return mux
}

type handler struct {
	m       *Manager
	largest int64
}

// jsonHandler returns a handler that writes the result of do as JSON, or its error.
func jsonHandler(do func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(w, r)
		Reply(w, v, err)
	}
}

// Reply answers with v as JSON, or with an error.
func Reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		var b []byte
		if b, err = json.Marshal(v); err == nil {
			_, _ = w.Write(append(b, '\n'))
			return
		}
	}
	e := &oip.Error{Code: oip.Internal, Text: err.Error()}
	if known := (*oip.Error)(nil); errors.As(err, &known) {
		e = known
	}
	w.WriteHeader(e.Code.HTTP())
	_, _ = w.Write(oip.ErrorBody(e.Error()))
}

// deadlineReader is a body that may arrive slowly: every single read has a deadline of readTimeout.
type deadlineReader struct {
	io.Reader
	c *http.ResponseController
}

func (a deadlineReader) Read(p []byte) (int, error) {
	_ = a.c.SetReadDeadline(time.Now().Add(readTimeout))
	return a.Reader.Read(p)
}

func (h *handler) putModel(w http.ResponseWriter, r *http.Request) (any, error) {
	sum := r.PathValue("sum")
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return nil, oip.Errorf(oip.Invalid, "sum", "%.80q is no SHA-256 sum in hexadecimal", sum)
	}
	if r.ContentLength > h.largest {
		return nil, oip.Errorf(oip.TooLarge, "",
			"the model has %d bytes, the limit of this server (server.limits.model) is %d", r.ContentLength, h.largest)
	}
	if err := h.m.PutModel(sum, deadlineReader{r.Body, http.NewResponseController(w)}, h.largest); err != nil {
		return nil, err
	}
	return map[string]string{"model_sha256": sum}, nil
}

func (h *handler) hasModel(_ http.ResponseWriter, r *http.Request) (any, error) {
	if !h.m.HasModel(r.PathValue("sum")) {
		return nil, oip.Errorf(oip.NotFound, "sum", "there is no such model")
	}
	return nil, nil
}

func (h *handler) deploy(w http.ResponseWriter, r *http.Request) (any, error) {
	// A browser does not send this type for a page of another site without asking this server first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, oip.Errorf(oip.Invalid, "Content-Type", "want application/json")
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDeployment))
	in.DisallowUnknownFields()
	var d Deployment
	err := in.Decode(&d)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, oip.Errorf(oip.TooLarge, "", "a deployment has at most %d bytes", maxDeployment)
	}
	if err != nil {
		return nil, oip.Errorf(oip.Invalid, "", "the body is no deployment: %v", err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // all is read, and the answer may take long
	name := r.PathValue("name")
	if strings.EqualFold(strings.TrimSpace(r.Header.Get("Prefer")), "respond-async") { // RFC 7240, section 4.1
		return h.inBackground(w, r, name, &d)
	}
	if err := h.m.Deploy(r.Context(), name, &d); err != nil {
		return nil, err
	}
	return h.m.Get(name)
}

// inBackground begins a deployment that goes on without the client, and answers 202 with how far it is.
func (h *handler) inBackground(w http.ResponseWriter, r *http.Request, name string, d *Deployment) (any, error) {
	if err := d.check(name); err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context()) // it ends with its timeout, Cancel or Close
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.m.deployAfter(ctx, name, d, func() { close(begun) }) }()
	select {
	case <-begun:
	case err := <-ended:
		if err != nil {
			return nil, err
		}
	}
	s, err := h.m.Get(name)
	if err != nil {
		return nil, err // it failed at once
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	return s, nil
}

// cancel ends the deployment of a function. What was deployed before stays.
func (h *handler) cancel(_ http.ResponseWriter, r *http.Request) (any, error) {
	name := r.PathValue("name")
	was, err := h.m.Cancel(r.Context(), name)
	if err == nil && !was {
		err = oip.Errorf(oip.NotFound, "name", "no deployment of %.80q is under way", name)
	}
	return struct{}{}, err
}

func (h *handler) delete(_ http.ResponseWriter, r *http.Request) (any, error) {
	return struct{}{}, h.m.Delete(r.Context(), r.PathValue("name"))
}

func (h *handler) logs(_ http.ResponseWriter, r *http.Request) (any, error) {
	number := func(name string, otherwise, most uint64) (uint64, error) {
		v := r.URL.Query().Get(name)
		if v == "" {
			return otherwise, nil
		}
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return 0, oip.Errorf(oip.Invalid, name, "is %.40q, want a whole number of at least 0", v)
		}
		return min(n, most), nil
	}
	after, err := number("after", 0, 1<<63)
	if err != nil {
		return nil, err
	}
	limit, err := number("limit", 100, maxEvents)
	if err != nil {
		return nil, err
	}
	out, err := h.m.Logs(r.PathValue("name"), after, int(limit))
	if out == nil {
		out = []Event{}
	}
	return out, err
}
