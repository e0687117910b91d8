package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// faults are what goes wrong on the way of a process to the API server. The zero value is none.
type faults struct {
	cut    bool          // nothing gets through, either way
	slow   time.Duration // before and after each call, at most
	lost   float64       // share of calls that are done and whose answer does not arrive
	busy   float64       // share that is answered with 429
	broken bool          // deletions of pods fail
}

// link is a process's way to the API server: the transport of its clients. It has the process's clock differ from that
// of all others, in that it changes the times in what the process reads and writes.
type link struct {
	api  *apiServer
	fast atomic.Int64 // nanoseconds by which the process's clock is

	mu      sync.Mutex
	rand    *rand.Rand
	faults  faults
	changed chan struct{} // closed when the faults change, or watches are to end
	dead    bool          // the process was killed
	round   int           // of watches: those of an earlier one end
}

// patience is after how long a client gives a silent connection up, as client-go's keep-alive does.
const patience = 45 * time.Second

func newLink(api *apiServer, seed uint64) *link {
	return &link{api: api, rand: rand.New(rand.NewPCG(seed, 1)), changed: make(chan struct{})}
}

// config is that of a client over the link.
func (l *link) config() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: l, QPS: 200, Burst: 400,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON,
			AcceptContentTypes: runtime.ContentTypeJSON}}
}

// times are points of time in JSON.
var times = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// moved has all points of time in a text be later.
func moved(text []byte, by time.Duration) []byte {
	if by == 0 {
		return text
	}
	return times.ReplaceAllFunc(text, func(b []byte) []byte {
		t, err := time.Parse(time.RFC3339Nano, string(b))
		if err != nil {
			return b
		}
		layout := time.RFC3339
		if _, part, ok := bytes.Cut(b, []byte(".")); ok {
			layout = "2006-01-02T15:04:05." + strings.Repeat("0", len(part)-1) + "Z07:00"
		}
		return t.Add(by).AppendFormat(nil, layout)
	})
}

// read is what the process reads of a text by its clock.
func (l *link) read(text []byte) []byte { return moved(text, -time.Duration(l.fast.Load())) }

func (l *link) set(f faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = f
	l.wake()
}

// unwatch ends all watches, as an API server does that is restarted.
func (l *link) unwatch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	l.wake()
}

// kill ends the process's connections for good.
func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.wake()
}

// wake has those who wait look again. mu is held.
func (l *link) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// state is the link's at this moment.
type state struct {
	faults
	changed <-chan struct{}
	dead    bool
	round   int
}

func (l *link) now() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return state{l.faults, l.changed, l.dead, l.round}
}

func (l *link) chance(share float64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return share > 0 && l.rand.Float64() < share
}

func (l *link) delay(ctx context.Context, most time.Duration) error {
	if most <= 0 {
		return ctx.Err()
	}
	l.mu.Lock()
	d := time.Duration(l.rand.Int64N(int64(most)))
	l.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var (
	errCut  = errors.New("http2: client connection lost")
	errDead = errors.New("the process was killed")
)

// through waits while the link is cut.
func (l *link) through(ctx context.Context) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		x := l.now()
		switch {
		case x.dead:
			return errDead
		case !x.cut:
			return nil
		}
		select {
		case <-x.changed:
		case <-limit.C:
			return errCut
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if r.Body != nil {
		defer r.Body.Close()
		written, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(ctx)
		r.Body = io.NopCloser(bytes.NewReader(moved(written, time.Duration(l.fast.Load()))))
	}
	x := l.now()
	if err := errors.Join(l.through(ctx), l.delay(ctx, x.slow)); err != nil {
		return nil, err
	}
	if r.URL.Query().Get("watch") == "true" {
		return l.watch(r)
	}
	code, out := 0, any(nil)
	switch c, _ := parse(r.URL.Path); {
	case l.chance(x.busy):
		code, out = http.StatusTooManyRequests, status(apierrors.NewTooManyRequests("too many requests", 1))
	case x.broken && r.Method == http.MethodDelete && c.of != nil && c.of.plural == "pods":
		code, out = http.StatusInternalServerError, status(apierrors.NewInternalError(errors.New("no deletion today")))
	default:
		code, out = l.api.serve(r)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if l.chance(x.lost) {
		if err := l.delay(ctx, 2*time.Second); err != nil {
			return nil, err
		}
		return nil, errCut
	}
	if err := errors.Join(l.delay(ctx, x.slow), l.through(ctx)); err != nil {
		return nil, err
	}
	answer := response(r, code, io.NopCloser(bytes.NewReader(l.read(body))))
	if code == http.StatusTooManyRequests {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}

func response(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
		ContentLength: -1, Request: r}
}

// watch begins to tell of changes.
func (l *link) watch(r *http.Request) (*http.Response, error) {
	c, ok := parse(r.URL.Path)
	if !ok {
		return response(r, http.StatusNotFound, http.NoBody), nil
	}
	c.query = r.URL.Query()
	from, initial := l.api.from(&c)
	if initial == nil && from < l.api.since() {
		b, err := json.Marshal(status(apierrors.NewResourceExpired("too old resource version")))
		if err != nil {
			return nil, err
		}
		return response(r, http.StatusGone, io.NopCloser(bytes.NewReader(b))), nil
	}
	w := &watch{l: l, c: c, ctx: r.Context(), at: from, round: l.now().round, begun: time.Now(),
		closed: make(chan struct{})}
	w.life = time.Hour
	if s, err := strconv.Atoi(first(c.query["timeoutSeconds"])); err == nil {
		w.life = time.Duration(s) * time.Second
	}
	for _, o := range initial {
		w.add("ADDED", o)
	}
	if initial != nil {
		w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return response(r, http.StatusOK, w), nil
}

// since is the version from which on changes are known.
func (s *apiServer) since() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.oldest
}

// from is where a watch begins, with the objects that it asks for first; nil for none.
func (s *apiServer) from(c *call) (uint64, []client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["WATCH "+c.of.plural]++
	version, err := strconv.ParseUint(first(c.query["resourceVersion"]), 10, 64)
	if first(c.query["sendInitialEvents"]) != "true" {
		if err != nil || version == 0 {
			return s.version, nil
		}
		return version, nil
	}
	out := []client.Object{}
	for _, o := range s.objects[c.of] {
		if c.selected(o) {
			out = append(out, o)
		}
	}
	return s.version, out
}

// watch is the body of an answer that tells of changes until somebody ends it.
type watch struct {
	l      *link
	c      call
	ctx    context.Context
	at     uint64
	round  int
	begun  time.Time
	life   time.Duration
	buffer bytes.Buffer
	once   sync.Once
	closed chan struct{}
}

func (w *watch) add(kind string, o any) {
	b, err := json.Marshal(map[string]any{"type": kind, "object": o})
	must(err)
	w.buffer.Write(append(w.l.read(b), '\n'))
}

func (w *watch) bookmark(annotations map[string]string) {
	w.add("BOOKMARK", map[string]any{"kind": w.c.of.gvk.Kind, "apiVersion": w.c.of.gvk.GroupVersion().String(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(w.at, 10), "annotations": annotations}})
}

// Read implements io.Reader.
func (w *watch) Read(p []byte) (int, error) {
	limit := time.NewTimer(w.life - time.Since(w.begun))
	defer limit.Stop()
	var lost <-chan time.Time
	for {
		x := w.l.now()
		if x.dead {
			return 0, errDead
		}
		if !x.cut {
			lost = nil
			if x.round != w.round {
				return 0, io.EOF
			}
			more := w.news()
			if w.buffer.Len() > 0 {
				return w.buffer.Read(p)
			}
			select {
			case <-more:
				_ = w.l.delay(w.ctx, min(x.slow, time.Second))
				continue
			case <-x.changed:
				continue
			case <-limit.C:
				return 0, io.EOF
			case <-w.ctx.Done():
				return 0, w.ctx.Err()
			case <-w.closed:
				return 0, io.ErrClosedPipe
			}
		}
		if lost == nil {
			lost = time.After(patience)
		}
		select {
		case <-x.changed:
		case <-lost:
			return 0, errCut
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		case <-w.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

// news writes what has changed, and returns what is closed when there is more.
func (w *watch) news() <-chan struct{} {
	s := w.l.api
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.at < s.oldest {
		w.add("ERROR", status(apierrors.NewResourceExpired("too old resource version")))
		w.at = s.version
		return s.more
	}
	first := len(s.log)
	for first > 0 && s.log[first-1].version > w.at {
		first--
	}
	for _, e := range s.log[first:] {
		if e.of != w.c.of {
			continue
		}
		was, is := w.c.selected(e.before), e.kind != "DELETED" && w.c.selected(e.object)
		switch {
		case is && was:
			w.add("MODIFIED", e.object)
		case is:
			w.add("ADDED", e.object)
		case was:
			w.add("DELETED", e.object)
		}
	}
	w.at = s.version
	return s.more
}

// Close implements io.Closer.
func (w *watch) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}
