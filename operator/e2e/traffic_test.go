package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/serving/workload"
)

// outcome is what became of a query.
type outcome uint8

const (
	answered outcome = iota
	dropped          // an error that says that it would be too late
	again            // an error that says to try again
	broken           // the connection broke, at the pod that the client was connected to, before there was an answer
	lost             // anything else
)

var outcomeNames = [...]string{"answered", "dropped as late", "told to try again", "broken", "lost"}

// record is a query that was sent.
type record struct {
	at, took time.Duration // since the beginning of the traffic; to its end
	app      int
	out      outcome
}

// traffic sends queries to the addresses behind the Service, half of them over HTTP and half over gRPC. Unlike a load
// it tries none again, and keeps what became of each.
type traffic struct {
	t     *testing.T
	c     *caller
	apps  []string
	begun time.Time
	stop  context.CancelFunc
	done  sync.WaitGroup
	http  *http.Client
	open  atomic.Int64

	mu      sync.Mutex
	records []record
	flying  map[time.Duration]bool // when what has no answer yet was sent
	why     map[string]int
	conns   map[string]*grpc.ClientConn
	unsent  int // since too many had no answer yet
}

// mostOpen bounds the queries without an answer: a client that waits for more is not able to send on time.
const mostOpen = 8000

// mostConnections bounds those over HTTP to one address: dispatchers bound those from one address, too.
const mostConnections = 256

// addresses are left out of errors that are counted.
var addresses = regexp.MustCompile(`[0-9]+(\.[0-9]+){3}(:[0-9]+)?`)

// send begins to send what a source says, until its end.
func send(t *testing.T, c *caller, src workload.Source, apps ...string) *traffic {
	t.Helper()
	x := &traffic{t: t, c: c, apps: apps, begun: time.Now(), why: make(map[string]int),
		flying: make(map[time.Duration]bool),
		conns:  make(map[string]*grpc.ClientConn),
		http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: mostConnections,
			MaxConnsPerHost: mostConnections, DisableCompression: true,
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}}
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	x.done.Go(func() {
		for ctx.Err() == nil {
			_ = c.look(ctx) // without the API server the addresses stay
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	x.done.Go(func() { x.pace(ctx, src) })
	t.Cleanup(x.end)
	return x
}

// pace sends queries at their times.
func (x *traffic) pace(ctx context.Context, src workload.Source) {
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	n := 0
	for next, more := src.Next(); more; next, more = src.Next() {
		for time.Since(x.begun) < time.Duration(next.At) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		if n++; x.open.Load() >= mostOpen {
			x.mu.Lock()
			x.unsent++
			x.mu.Unlock()
			continue
		}
		x.open.Add(1)
		app, http := int(next.App), n%2 == 0
		all.Go(func() {
			defer x.open.Add(-1)
			x.one(app, http)
		})
	}
}

// one sends a query and keeps what becomes of it.
func (x *traffic) one(app int, overHTTP bool) {
	at := time.Since(x.begun)
	x.mu.Lock()
	for x.flying[at] {
		at++
	}
	x.flying[at] = true
	x.mu.Unlock()
	out, why := lost, errors.New("the Service has no ready address, or none can be reached")
	for range 100 {
		address, err := x.c.address()
		if err != nil {
			time.Sleep(50 * time.Millisecond) // as a client waits whose connection is not taken
			continue
		}
		var refused bool
		if overHTTP {
			out, refused, why = x.overHTTP(address, x.apps[app])
		} else {
			out, refused, why = x.overGRPC(address, x.apps[app])
		}
		if !refused {
			break
		}
		out = lost
	}
	took := time.Since(x.begun) - at
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.flying, at)
	x.records = append(x.records, record{at, took, app, out})
	if out != answered && why != nil {
		text := addresses.ReplaceAllString(why.Error(), "ADDRESS")
		x.why[fmt.Sprintf("%s: %.200s", outcomeNames[out], text)]++
	}
}

const question = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`

func (x *traffic) overHTTP(address, app string) (out outcome, refused bool, why error) {
	a, err := x.http.Post("http://"+net.JoinHostPort(address, "8000")+"/v2/models/"+app+"/infer", "application/json",
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
		return answered, false, nil
	case a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		return again, false, errors.New(string(b))
	case a.StatusCode == http.StatusGatewayTimeout:
		return dropped, false, nil
	}
	return lost, false, fmt.Errorf("HTTP %d: %s", a.StatusCode, b)
}

func (x *traffic) conn(address string) (*grpc.ClientConn, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := fmt.Sprint(address, rand.IntN(4)) // a connection is sent to from few goroutines at a time
	if c := x.conns[key]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, "8001"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		x.conns[key] = c
	}
	return c, err
}

func (x *traffic) overGRPC(address, app string) (out outcome, refused bool, why error) {
	c, err := x.conn(address)
	if err != nil {
		return lost, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var trailer metadata.MD
	_, err = pb.NewGRPCInferenceServiceClient(c).ModelInfer(ctx, &pb.ModelInferRequest{ModelName: app,
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}}},
		RawInputContents: [][]byte{make([]byte, 8)}}, grpc.Trailer(&trailer))
	if err == nil {
		return answered, false, nil
	}
	s := status.Convert(err)
	switch text := s.Message(); {
	case s.Code() == codes.DeadlineExceeded && ctx.Err() == nil:
		return dropped, false, nil
	case s.Code() != codes.Unavailable:
		return lost, false, err
	case len(trailer.Get("retry-after-ms")) > 0, strings.Contains(text, "try again"):
		return again, false, err
	case strings.Contains(text, "while dialing"), strings.Contains(text, "before any data was sent"),
		strings.Contains(text, "connection closed before"):
		return broken, true, err
	}
	return broken, false, err
}

// end sends no more and waits for what is under way.
func (x *traffic) end() {
	x.stop()
	x.done.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.conns {
		_ = c.Close()
	}
	x.conns = make(map[string]*grpc.ClientConn)
	x.http.CloseIdleConnections()
}

// ended waits until what was sent before a time has ended: at the latest when its client gives up.
func (x *traffic) ended(before time.Duration) {
	cluster.Eventually(x.t, "what was sent has ended", func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		for at := range x.flying {
			if at < before {
				return fmt.Errorf("a query that was sent at %v has no answer", at)
			}
		}
		return nil
	})
}

// tally is what became of the queries of a span.
type tally struct {
	sent, violations int // violations were late or not answered
	count            [len(outcomeNames)]int
	longest          time.Duration
}

// between counts the queries that were sent in a span.
func (x *traffic) between(from, until time.Duration, slo time.Duration) (out tally) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.records {
		if r.at < from || r.at >= until {
			continue
		}
		out.sent++
		out.count[r.out]++
		if r.out != answered || r.took > slo {
			out.violations++
		}
		out.longest = max(out.longest, r.took)
	}
	return out
}

func (t tally) share() float64 { return 100 * float64(t.violations) / float64(max(t.sent, 1)) }
