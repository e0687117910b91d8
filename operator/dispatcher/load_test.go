package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// outcome is what became of a query.
type outcome int

const (
	served    outcome = iota
	retryable         // an answer that says to try again
	broken            // the connection broke after the query was sent, at the pod that the client had connected to
	failed            // anything else
	outcomes
)

func (o outcome) String() string { return [...]string{"served", "retryable", "broken", "failed"}[o] }

// load sends queries to all replicas that are ready, as a Service spreads connections, half of them over HTTP and half
// over gRPC. A client that cannot connect takes another replica, as it would behind a Service.
type load struct {
	t      *testing.T
	f      *fleet
	apps   []string
	rate   int
	counts [outcomes]atomic.Int64
	slow   atomic.Int64 // that took more than a second
	open   atomic.Int64 // that have no answer yet
	// skipped are those that were not sent because too many were open: this machine was too slow, or the fleet was.
	skipped atomic.Int64
	most    atomic.Int64 // ns
	mu      sync.Mutex
	errors  map[string]int
	conns   map[string]*grpc.ClientConn
	client  *http.Client
	ready   atomic.Pointer[[]*replica]
	stop    context.CancelFunc
	done    sync.WaitGroup
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

// mostOpen is the most queries that are sent before others are answered.
const mostOpen = 4000

// startLoad sends rate queries/s to the apps in turn until Stop.
func startLoad(t *testing.T, f *fleet, rate int, apps ...string) *load {
	t.Helper()
	l := &load{t: t, f: f, apps: apps, rate: rate, errors: make(map[string]int),
		conns: make(map[string]*grpc.ClientConn),
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			MaxIdleConnsPerHost: 128, MaxConnsPerHost: 128, DisableCompression: true,
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.look()
	l.done.Go(func() { l.follow(ctx) })
	l.done.Go(func() { l.send(ctx) })
	t.Cleanup(func() { l.end() })
	return l
}

// look reads which replicas are ready.
func (l *load) look() {
	var out []*replica
	for _, r := range l.f.live() {
		if r.ready() {
			out = append(out, r)
		}
	}
	l.ready.Store(&out)
}

func (l *load) follow(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.look()
		}
	}
}

// send paces the queries.
func (l *load) send(ctx context.Context) {
	began, n := time.Now(), 0
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * float64(l.rate)); n < due; n++ {
			if l.open.Load() >= mostOpen {
				l.skipped.Add(1)
				continue
			}
			l.open.Add(1)
			k := n
			running.Go(func() {
				defer l.open.Add(-1)
				l.query(k)
			})
		}
	}
}

// query sends one query and counts what becomes of it.
func (l *load) query(k int) {
	app, began := l.apps[k%len(l.apps)], time.Now()
	var out outcome
	var why error
	for try := range 20 {
		list := *l.ready.Load()
		if len(list) == 0 {
			time.Sleep(50 * time.Millisecond) // as a client without endpoints
			continue
		}
		r := list[(k/len(l.apps)+try)%len(list)]
		var refused bool
		if k/2%2 == 0 {
			out, refused, why = l.overHTTP(r, app)
		} else {
			out, refused, why = l.overGRPC(r, app)
		}
		if !refused {
			break
		}
		out = failed
	}
	l.counts[out].Add(1)
	took := time.Since(began)
	if took > time.Second {
		l.slow.Add(1)
	}
	for {
		was := l.most.Load()
		if int64(took) <= was || l.most.CompareAndSwap(was, int64(took)) {
			break
		}
	}
	if out != served && why != nil {
		text := addresses.ReplaceAllString(why.Error(), "ADDRESS")
		l.mu.Lock()
		l.errors[fmt.Sprintf("%v: %.160s", out, text)]++
		l.mu.Unlock()
	}
}

func (l *load) overHTTP(r *replica, app string) (out outcome, refused bool, why error) {
	a, err := l.client.Post("http://"+r.http+"/v2/models/"+app+"/infer", "application/json",
		strings.NewReader(question))
	if err != nil {
		var op *net.OpError
		return broken, errors.As(err, &op) && op.Op == "dial", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return broken, false, err
	case a.StatusCode == http.StatusOK:
		return served, false, nil
	case a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		return retryable, false, errors.New(string(b))
	}
	return failed, false, fmt.Errorf("HTTP %d: %s", a.StatusCode, b)
}

func (l *load) conn(address string) *grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.conns[address]; c != nil {
		return c
	}
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Error(err)
	}
	l.conns[address] = c
	return c
}

func (l *load) overGRPC(r *replica, app string) (out outcome, refused bool, why error) {
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	_, err := pb.NewGRPCInferenceServiceClient(l.conn(r.grpc)).ModelInfer(ctx, grpcQuestion(app))
	if err == nil {
		return served, false, nil
	}
	s := status.Convert(err)
	switch {
	case s.Code() != codes.Unavailable:
		return failed, false, err
	case strings.Contains(s.Message(), "try again"):
		return retryable, false, err
	case strings.Contains(s.Message(), "refused"), strings.Contains(s.Message(), "connection closed before"):
		return broken, true, err
	}
	return broken, false, err
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = make(map[string]*grpc.ClientConn)
	l.client.CloseIdleConnections()
}

// finish ends the load, waits for its answers and says what became of the queries.
func (l *load) finish(what string) {
	l.t.Helper()
	l.end()
	total := int64(0)
	for k := range l.counts {
		total += l.counts[k].Load()
	}
	var why []string
	for text, n := range l.errors {
		why = append(why, fmt.Sprintf("%d x %s", n, text))
	}
	slices.Sort(why)
	l.t.Logf("%s: %d queries, %d served, %d told to try again, %d broken with their connection, %d failed; %d not "+
		"sent; %d took more than 1 s, the longest %v%s", what, total, l.counts[served].Load(),
		l.counts[retryable].Load(),
		l.counts[broken].Load(), l.counts[failed].Load(), l.skipped.Load(), l.slow.Load(),
		time.Duration(l.most.Load()).Round(time.Millisecond), strings.Join(append([]string{""}, why...), "\n\t"))
	if total == 0 {
		l.t.Error("no query was sent")
	}
	if n := l.counts[failed].Load(); n > 0 {
		l.t.Errorf("%d queries failed", n)
	}
}

// lost fails the test where queries were lost.
func (l *load) noneLost() {
	l.t.Helper()
	if n := l.counts[retryable].Load() + l.counts[broken].Load(); n > 0 {
		l.t.Errorf("%d queries were lost", n)
	}
}
