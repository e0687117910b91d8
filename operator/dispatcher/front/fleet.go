package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What is asked of the fleet as a whole is asked of every cell, and the answers are joined. A cell is asked over HTTP
// also where the client came over gRPC.

const (
	// joinTime bounds how long the cells have to answer.
	joinTime = 3 * time.Second
	// joinBytes bounds the answer of a cell.
	joinBytes = 8 << 20
)

// ask sends a request to every cell and returns their answers by cell; nil for a cell that did not answer. It returns a
// *notAllowed where a cell does not let the caller in: then nothing is told of the others either.
func (f *Front) ask(ctx context.Context, method, path string, body []byte, from shown) (map[int][]byte, error) {
	v := f.table.view.Load()
	ctx, done := context.WithTimeout(ctx, joinTime)
	defer done()
	out := make(map[int][]byte, len(v.places))
	var mu sync.Mutex
	var all sync.WaitGroup
	var refused *notAllowed
	for n, p := range v.places {
		all.Go(func() {
			answer, err := f.askCell(ctx, p, method, path, body, from)
			if err != nil {
				f.c.Log.Debug("a cell did not answer", "cell", n, "path", path, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			out[n] = answer
			_ = errors.As(err, &refused)
		})
	}
	all.Wait()
	if refused != nil {
		return nil, refused
	}
	return out, nil
}

// notAllowed is the answer of a cell that does not let a caller in.
type notAllowed struct {
	status int
	text   string
}

func (e *notAllowed) Error() string { return e.text }

// refuse answers with an error of ask, or else with a status.
func refuse(w http.ResponseWriter, err error, otherwise int) {
	if e, ok := errors.AsType[*notAllowed](err); ok {
		otherwise = e.status
	}
	if otherwise == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	fail(w, otherwise, err.Error())
}

// refusedCall is an error of ask over gRPC, or else one with a code.
func refusedCall(err error, otherwise codes.Code) error {
	if e, ok := errors.AsType[*notAllowed](err); ok {
		otherwise = codes.PermissionDenied
		if e.status == http.StatusUnauthorized {
			otherwise = codes.Unauthenticated
		}
	}
	return status.Error(otherwise, err.Error())
}

// askCell asks one cell.
func (f *Front) askCell(ctx context.Context, p place, method, path string, body []byte, from shown) ([]byte,
	error) {
	address := p.holder.HTTP
	if p.mine {
		address = "localhost"
	}
	switch {
	case address == "":
		return nil, errors.New("nobody holds it")
	case !p.mine && !f.reaches(p.holder):
		return nil, errOtherwise
	}
	r, err := http.NewRequestWithContext(ctx, method, f.scheme()+"://"+address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	from.put(r, !p.mine)
	if p.mine {
		run := f.c.Runs.Use(p.cell)
		if run == nil {
			return nil, errors.New("it is not ready")
		}
		defer run.Done()
		w := &recorded{header: make(http.Header), status: http.StatusOK}
		run.ServeHTTP(w, r)
		return w.body.Bytes(), statusError(w.status, w.body.Bytes())
	}
	r.Header.Set(headerPassed, fmt.Sprint(p.cell))
	answer, err := f.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, joinBytes))
	if err == nil {
		err = statusError(answer.StatusCode, b)
	}
	return b, err
}

func statusError(code int, body []byte) error {
	if code == http.StatusOK {
		return nil
	}
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		var said struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(body, &said); err != nil {
			said.Error = http.StatusText(code)
		}
		return &notAllowed{code, said.Error}
	}
	return fmt.Errorf("it answers %d: %.200s", code, body)
}

// passedCells are the cells that a pod asks this one about: those that are served here.
func (f *Front) passedPlace(r *http.Request) (place, bool) {
	var n int
	if _, err := fmt.Sscan(r.Header.Get(headerPassed), &n); err != nil {
		return place{}, false
	}
	p, ok := f.table.view.Load().places[n]
	p.mine = true // it answers from a run of this process, or not at all
	return p, ok
}

// joined answers with a list that every cell has a part of. lost makes the part of a cell that did not answer; nil
// leaves it out.
func (f *Front) joined(ctx context.Context, method, path string, body []byte, from shown,
	part func([]byte) ([]json.RawMessage, error), lost func(app string) any) ([]json.RawMessage, error) {
	answers, err := f.ask(ctx, method, path, body, from)
	if err != nil {
		return nil, err
	}
	v := f.table.view.Load()
	out, seen := []json.RawMessage{}, make(map[string]int) // where an app is in out
	for _, n := range slices.Sorted(maps.Keys(answers)) {
		if list, err := part(answers[n]); answers[n] != nil && err == nil {
			for _, x := range list {
				var named struct {
					Name string `json:"name"`
				}
				_ = json.Unmarshal(x, &named)
				if at, ok := seen[named.Name]; ok && len(v.apps[named.Name]) > 1 { // several cells have parts of it
					out[at] = merge(out[at], x)
					continue
				}
				seen[named.Name] = len(out)
				out = append(out, x)
			}
		}
	}
	if lost == nil {
		return out, nil
	}
	for _, app := range slices.Sorted(maps.Keys(v.apps)) {
		if _, ok := seen[app]; !ok {
			b, err := json.Marshal(lost(app))
			if err != nil {
				return nil, err
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// index is the repository index of the fleet. Apps whose cell nobody serves are unavailable.
func (f *Front) index(ctx context.Context, body []byte, from shown) ([]json.RawMessage, error) {
	var ask struct {
		Ready bool `json:"ready"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &ask); err != nil {
			return nil, fmt.Errorf("the request is not the JSON that is wanted: %w", err)
		}
	}
	lost := func(app string) any {
		return map[string]string{"name": app, "version": "", "state": "UNAVAILABLE",
			"reason": "its cell has no dispatcher now"}
	}
	if ask.Ready {
		lost = nil
	}
	return f.joined(ctx, http.MethodPost, "/v2/repository/index", body, from, func(b []byte) (out []json.RawMessage,
		err error) {
		return out, json.Unmarshal(b, &out)
	}, lost)
}

// stats are the statistics of all models of the fleet.
func (f *Front) stats(ctx context.Context, from shown) ([]json.RawMessage, error) {
	return f.joined(ctx, http.MethodGet, "/v2/models/stats", nil, from, func(b []byte) ([]json.RawMessage, error) {
		var one struct {
			Stats []json.RawMessage `json:"model_stats"`
		}
		err := json.Unmarshal(b, &one)
		return one.Stats, err
	}, nil)
}

// largestQuestion bounds the body of a question about the fleet, in bytes.
const largestQuestion = 1 << 16

func (f *Front) postIndex(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestQuestion))
	if err != nil {
		fail(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
		return
	}
	if f.answeredHere(w, r, body) {
		return
	}
	list, err := f.index(r.Context(), body, shownBy(r))
	if err != nil {
		refuse(w, err, http.StatusBadRequest)
		return
	}
	reply(w, http.StatusOK, list)
}

func (f *Front) getStats(w http.ResponseWriter, r *http.Request) {
	if f.answeredHere(w, r, nil) {
		return
	}
	list, err := f.stats(r.Context(), shownBy(r))
	if err != nil {
		refuse(w, err, http.StatusInternalServerError)
		return
	}
	reply(w, http.StatusOK, map[string]any{"model_stats": list})
}

// answeredHere answers a question about one cell, from another pod.
func (f *Front) answeredHere(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if r.Header.Get(headerPassed) == "" {
		return false
	}
	p, ok := f.passedPlace(r)
	if !ok {
		fail(w, http.StatusServiceUnavailable, "this dispatcher does not know that cell")
		return true
	}
	b, err := f.askCell(r.Context(), p, r.Method, r.URL.Path, body, shownBy(r))
	if err != nil {
		refuse(w, err, http.StatusServiceUnavailable)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
	return true
}

// reached is when this process last reached the API server.
type reached struct {
	AgoMS int64 `json:"ago_ms"` // negative for never
}

func (f *Front) getReached(w http.ResponseWriter, _ *http.Request) {
	at := f.c.Reached()
	out := reached{-1}
	if !at.IsZero() {
		out.AgoMS = time.Since(at).Milliseconds()
	}
	reply(w, http.StatusOK, out)
}

func parseReached(r io.Reader) (time.Duration, error) {
	var x reached
	if err := json.NewDecoder(io.LimitReader(r, 1<<10)).Decode(&x); err != nil {
		return 0, err
	}
	if x.AgoMS < 0 {
		return 0, errors.New("never")
	}
	return time.Duration(x.AgoMS) * time.Millisecond, nil
}
