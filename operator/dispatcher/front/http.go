package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// Headers between the pods of a fleet; over gRPC they are metadata.
const (
	// headerPassed is on queries that a pod passes on: they are not passed on again.
	headerPassed = "Sluice-Passed"
	// headerElsewhere is on the answer of a pod that does not serve a query's cell: it has not begun the query.
	headerElsewhere = "Sluice-Elsewhere"
)

// retryAfter is how long clients are told to wait.
const retryAfter = time.Second

// routes are the HTTP paths of the protocol.
func (f *Front) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/models/{model}/{rest...}", f.model)
	mux.HandleFunc("/v2/models/{model}", f.model)
	mux.HandleFunc("/v1/models/{model}/{rest...}", f.model)
	mux.HandleFunc("/v1/models/{model}", func(w http.ResponseWriter, r *http.Request) {
		if at := strings.LastIndexByte(r.PathValue("model"), ':'); at >= 0 && r.Method == http.MethodPost {
			r.SetPathValue("model", r.PathValue("model")[:at]) // a verb follows
		}
		f.model(w, r)
	})
	mux.HandleFunc("POST /v2/repository/models/{model}/{action}", f.model)
	mux.HandleFunc("GET /v2", f.getServer)
	mux.HandleFunc("GET /v2/{$}", f.getServer)
	mux.HandleFunc("GET /v2/health/live", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]bool{"live": true})
	})
	mux.HandleFunc("GET /v2/health/ready", f.getReady)
	mux.HandleFunc("GET /v2/models/stats", f.getStats)
	mux.HandleFunc("POST /v2/repository/index", f.postIndex)
	mux.HandleFunc("GET "+reachedPath, f.getReached)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "there is nothing at "+strconv.Quote(cut(r.URL.Path))+" of a fleet")
	})
	f.proxy = &httputil.ReverseProxy{
		Transport: passing{f}, BufferPool: newBuffers(), ErrorHandler: f.failed,
		ErrorLog: slog.NewLogLogger(f.c.Log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		if err := f.origin(r); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// model answers what is about one model.
func (f *Front) model(w http.ResponseWriter, r *http.Request) {
	passed := r.Header.Get(headerPassed) != ""
	t, err := f.resolve(r.Context(), r.PathValue("model"), passed, "")
	if err != nil {
		f.failed(w, r, err)
		return
	}
	if t.run != nil {
		defer t.done()
		f.metrics.local(t.cell, "http", passed)
		t.run.ServeHTTP(w, r)
		return
	}
	ctx := context.WithValue(r.Context(), targetKey{}, t)
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
}

type targetKey struct{}

// failed answers a query that went nowhere.
func (f *Front) failed(w http.ResponseWriter, r *http.Request, err error) {
	var none *unavailable
	switch {
	case errors.Is(err, errNotFound):
		fail(w, http.StatusNotFound, "there is no model "+strconv.Quote(cut(r.PathValue("model"))))
	case errors.As(err, &none):
		f.metrics.failed("unavailable")
		if none.here {
			w.Header().Set(headerElsewhere, "1")
		}
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, none.Error())
	case r.Context().Err() != nil:
		f.metrics.failed("gone")
		fail(w, oip.Gone.HTTP(), "the client has gone")
	default:
		f.metrics.failed("lost")
		f.c.Log.Warn("a query was lost with the pod that had it", "model", cut(r.PathValue("model")), "error", err)
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "the dispatcher of model "+strconv.Quote(cut(r.PathValue("model")))+
			" was lost before it answered: try again")
	}
}

// passing is a transport to the pods of the fleet.
type passing struct{ f *Front }

// keptBody is the largest body that is kept until the answer begins, in bytes: the query can then be sent to another
// pod if the first had not begun it.
const keptBody = 256 << 10

// RoundTrip implements http.RoundTripper. It sends a query to another pod only where the one before cannot have begun
// it: it could not be reached, or says so.
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	f := p.f
	t := r.Context().Value(targetKey{}).(target)
	kept, err := keep(r)
	if err != nil {
		return nil, err
	}
	model := r.PathValue("model")
	r.Header.Set(headerPassed, "1")
	shownBy(r).put(r, true)
	r.URL.Scheme = f.scheme()
	until := time.Now().Add(f.c.Hold)
	for {
		f.metrics.passed(t.cell, "http")
		r.URL.Host = t.holder.HTTP
		if kept != nil {
			r.Body, _ = r.GetBody()
		}
		answer, err := f.transport.RoundTrip(r)
		if err == nil && answer.Header.Get(headerElsewhere) == "" {
			return answer, nil
		}
		if err != nil && !notSent(err) || r.Body != nil && kept == nil || time.Now().After(until) {
			return answer, err
		}
		if answer != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
			_ = answer.Body.Close()
		}
		next, err := f.resolve(r.Context(), model, false, t.holder.Identity)
		if err != nil {
			return nil, err
		}
		if next.run != nil { // the cell has come to this pod meanwhile
			return p.here(r, next)
		}
		t = next
	}
}

// here has this pod answer a query that it wanted to pass on.
func (p passing) here(r *http.Request, t target) (*http.Response, error) {
	defer t.done()
	p.f.metrics.local(t.cell, "http", false)
	if r.GetBody != nil {
		r.Body, _ = r.GetBody()
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Header.Del(headerPassed)
	r.Header.Del(headerCertificate)
	r.RequestURI = r.URL.RequestURI()
	w := &recorded{header: make(http.Header), status: http.StatusOK}
	t.run.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(w.body.Len()), Request: r}, nil
}

// recorded is an answer in memory.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorded) Header() http.Header         { return w.header }
func (w *recorded) WriteHeader(status int)      { w.status = status }
func (w *recorded) Write(b []byte) (int, error) { return w.body.Write(b) }

// keep reads a body that is small into memory, and returns it; nil where there is none, or it is larger.
func keep(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > keptBody {
		return nil, nil
	}
	b := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, b); err != nil {
		return nil, err
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return b, nil
}

func (f *Front) getServer(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"name": f.c.Server.Name, "version": f.c.Server.Version,
		"extensions": server.Extensions()})
}

func (f *Front) getReady(w http.ResponseWriter, _ *http.Request) {
	if !f.ready() {
		reply(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "error": f.unready()})
		return
	}
	reply(w, http.StatusOK, map[string]bool{"ready": true})
}

// unready says why the fleet is not ready.
func (f *Front) unready() string {
	switch {
	case f.leaving.Load():
		return "this dispatcher is stopping"
	case !f.table.Known():
		return "this dispatcher does not know the cells of its fleet yet"
	}
	return "a cell has no dispatcher"
}

// cut shortens what a client sent for a message.
func cut(s string) string { return s[:min(len(s), 200)] }

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, oip.ErrorBody("internal error")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(oip.ErrorBody(text))
}
