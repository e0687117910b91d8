package functions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// endless is a Predictor that answers for a model of a small batch, and never ends for others. It does not heed its
// context, as a runtime within one operator does not.
type endless struct {
	*fixed
	mu      sync.Mutex
	begun   chan string // names of variants whose prediction does not end
	release chan struct{}
}

func (e *endless) Predict(ctx context.Context, s *Subject) (*profiler.File, error) {
	if v := &s.Spec.Variants[s.Variant]; v.MaxBatch == 2 {
		e.begun <- v.Name
		<-e.release
		return nil, errors.New("it ended after all")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fixed.Predict(ctx, s)
}

func newEndless(t *testing.T, r *rig) *endless {
	e := &endless{fixed: r.fixed, begun: make(chan string, 64), release: make(chan struct{})}
	r.m.c.Predictor = e
	<-r.m.underway.turn0() // nobody waits for a turn in these tests
	return e
}

// turn0 lets every measurement wait for nobody.
func (u *underway) turn0() <-chan struct{} {
	u.turn = make(chan struct{}, 64)
	c := make(chan struct{})
	close(c)
	return c
}

// A deployment whose model never ends holds up no other one, ends with its own timeout, by its client's going away, by
// Cancel, by a later one of the same name, and when the manager closes. What was deployed before stays.
func TestDeploymentsDoNotHoldUpEachOther(t *testing.T) {
	r, ctx := newRig(t, t.TempDir()), t.Context()
	e := newEndless(t, r)
	good := model(t, batched("one"))
	never := usual
	never.MaxBatch = 2
	deploy := func(ctx context.Context, name string, d Deployment) chan error {
		out := make(chan error, 1)
		go func() { _, err := r.c.Deploy(ctx, name, good, d); out <- err }()
		return out
	}

	mine, goAway := context.WithCancel(ctx)
	hung := deploy(mine, "hung", never)
	<-e.begun
	if s, err := r.c.Deploy(ctx, "other", good, usual); err != nil || s.Version != 1 {
		t.Fatalf("beside one that never ends: %+v %v", s, err)
	}
	if s, err := r.c.Get(ctx, "hung"); err != nil || s.State != Deploying || s.Deploying == nil ||
		s.Deploying.Until.Sub(s.Deploying.Since) != DefaultTimeout {
		t.Errorf("%+v %v", s, err)
	}
	if list, err := r.c.List(ctx); err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
	goAway()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	soon := never
	soon.TimeoutMS = 20
	_, err := r.c.Deploy(ctx, "other", good, soon)
	<-e.begun
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Status != http.StatusGatewayTimeout ||
		!strings.Contains(refused.Text, "20ms") {
		t.Errorf("after its timeout: %v", err)
	}
	if s, err := r.c.Get(ctx, "other"); err != nil || s.Version != 1 || s.State != Ready || s.Deploying != nil ||
		!strings.Contains(s.LastFailure, "20ms") {
		t.Errorf("the version before: %+v %v", s, err)
	}

	hung = deploy(ctx, "other", never)
	<-e.begun
	if s, err := r.c.Get(ctx, "other"); err != nil || s.Version != 1 || s.Deploying == nil {
		t.Errorf("%+v %v", s, err)
	}
	later := deploy(ctx, "other", never)
	<-e.begun
	if err := <-hung; err == nil || !strings.Contains(err.Error(), "a later deployment") {
		t.Error(err)
	}
	if err := r.c.Cancel(ctx, "other"); err != nil {
		t.Error(err)
	}
	if err := <-later; err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Error(err)
	}
	if err := r.c.Cancel(ctx, "other"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("there is nothing to cancel: %v", err)
	}

	hung = deploy(ctx, "new", never)
	<-e.begun
	if err := r.c.Delete(ctx, "new"); err != nil {
		t.Error(err)
	}
	if err := <-hung; err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Error(err)
	}

	hung = deploy(ctx, "new", never)
	<-e.begun
	r.m.Close()
	if err := <-hung; !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Error(err)
	}
	if _, err := r.c.Deploy(ctx, "new", good, usual); !errors.As(err, &refused) ||
		refused.Status != http.StatusServiceUnavailable {
		t.Error(err)
	}
	close(e.release)
}

// Models that never end, whatever their deployments do, use up what may be measured at a time, and no more.
func TestEndlessMeasurementsAreBounded(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, ctx := newRig(t, t.TempDir()), t.Context()
	e := newEndless(t, r)
	good := model(t, batched("one"))
	never := usual
	never.MaxBatch, never.TimeoutMS = 2, 5
	for len(e.begun) < maxUnderway { // on a busy machine the time of some is over before they begin
		if _, err := r.c.Deploy(ctx, "f", good, never); err == nil {
			t.Fatal("it ended")
		}
	}
	_, err := r.c.Deploy(ctx, "f", good, usual)
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("%d models are being measured: %v", maxUnderway, err)
	}
	close(e.release)
	for range maxUnderway { // all tokens come back
		r.m.underway.measuring <- struct{}{}
	}
	for range maxUnderway {
		<-r.m.underway.measuring
	}
	if _, err := r.c.Deploy(ctx, "f", good, usual); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http/httptest.(*Server).goServe.func1"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

// A client that prefers not to wait is answered at once; what became of it is asked for later.
func TestDeployInBackground(t *testing.T) {
	r, ctx := newRig(t, t.TempDir()), t.Context()
	e := newEndless(t, r)
	if _, err := r.c.Deploy(ctx, "f", model(t, batched("one")), usual); err != nil { // the model is there
		t.Fatal(err)
	}
	s, err := r.c.Get(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, rest string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+r.c.Address+PathFunctions+name,
			strings.NewReader(`{"model_sha256":"`+s.Model+`","latency_ms":50,"percentile":99,`+rest+`}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Prefer", "respond-async")
		w, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		b, err := io.ReadAll(w.Body)
		if err != nil || w.Header.Get("Content-Type") != "application/json" {
			t.Error(w.Header, err)
		}
		return w.StatusCode, string(b)
	}
	code, body := put("hung", `"max_batch":2,"timeout_ms":60000`)
	if code != http.StatusAccepted || !strings.Contains(body, `"state":"deploying"`) {
		t.Errorf("%d %s", code, body)
	}
	<-e.begun
	if code, body = put("hung", `"max_batch":0,"timeout_ms":-1`); code != http.StatusBadRequest {
		t.Errorf("%d %s", code, body)
	}
	if code, body = put("good", `"max_batch":4`); code != http.StatusAccepted {
		t.Errorf("%d %s", code, body)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if s, err := r.c.Get(ctx, "good"); err == nil && s.State == Ready {
			break
		} else if time.Since(begun) > 30*time.Second {
			t.Fatalf("%+v %v", s, err)
		}
	}
	if err := r.c.Cancel(ctx, "hung"); err != nil {
		t.Error(err)
	}
	close(e.release)
	r.m.Close()
}

// A deployment and a change that panic, as a runtime does while a model is measured, fail alone: others go on.
func TestChangesThatPanicFailAlone(t *testing.T) {
	u := newUnderway()
	err := u.run(t.Context(), "f", time.Minute, func(context.Context) error { panic("on purpose") })
	if err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("a deployment that panics: %v", err)
	}
	if err = u.run(t.Context(), "f", time.Minute, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	u.close()
	m := &Manager{changing: make(chan struct{}, 1)}
	err = m.Extend(t.Context(), func(*Extension) error { panic("on purpose") })
	if err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("a change that panics: %v", err)
	}
}
