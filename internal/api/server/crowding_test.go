package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// waiting has queries of the tenant shop wait until let is called. Each of them is told to entered.
func (x *tenanted) waiting(t *testing.T) (entered chan struct{}, let func()) {
	release := make(chan struct{})
	let = sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	entered = make(chan struct{}, 100)
	x.p.infer = func(_ context.Context, q *dataplane.Request) (*dataplane.Response, error) {
		if q.Tenant == 1 {
			entered <- struct{}{}
			<-release
		}
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}}, nil
	}
	return entered, let
}

// asked is the answer to a query over HTTP.
type asked struct {
	code  int
	retry string
	text  string
}

// over sends a query of a tenant over a connection of its own. One of shop stays open.
func (x *tenanted) over(t *testing.T, who string) asked {
	c := &http.Transport{}
	t.Cleanup(c.CloseIdleConnections)
	r, err := http.NewRequest(http.MethodPost, "http://"+x.HTTPAddr()+model+"/infer", strings.NewReader(two))
	if err != nil {
		return asked{text: err.Error()}
	}
	r.Header.Set("Authorization", "Bearer "+x.key[who])
	r.Close = who != "shop"
	resp, err := c.RoundTrip(r)
	if err != nil {
		return asked{text: err.Error()}
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return asked{resp.StatusCode, resp.Header.Get("Retry-After"), string(b)}
}

// Queries of one tenant that wait do not hold the connections of another from the same address, as behind an ingress.
// What it may not have is refused at once, and connections of refused queries make room.
func TestWaitingQueriesOfATenantLeaveConnections(t *testing.T) {
	x := startTenantedWith(t, server.Config{Connections: 64, ConnectionsEach: 16}, shops...)
	entered, let := x.waiting(t)
	var all sync.WaitGroup
	wait := func() {
		all.Go(func() {
			if got := x.over(t, "shop"); got.code != 200 {
				t.Errorf("a query that was taken: %+v", got)
			}
		})
		<-entered
	}
	for range 14 { // of 16, an eighth is kept
		wait()
	}
	// That a connection makes room is known a moment after its client has the answer.
	over := func(who string) (got asked) {
		waitFor(t, func() bool { got = x.over(t, who); return got.code != 503 })
		return got
	}
	for range 40 {
		if got := over("shop"); got.code != 429 || got.retry == "" || !strings.Contains(got.text, "tenant shop") {
			t.Fatalf("a query beyond the part: %+v", got)
		}
		if got := over("lab"); got.code != 200 {
			t.Fatalf("a query of the other: %+v", got)
		}
	}
	let()
	all.Wait()
	waitFor(t, func() bool { return x.over(t, "shop").code == 200 })
}

// Nor do they hold the calls of a connection over gRPC that both use.
func TestWaitingCallsOfATenantLeaveCalls(t *testing.T) {
	x := startTenantedWith(t, server.Config{Streams: 8}, shops...)
	entered, let := x.waiting(t)
	client := x.client(t)
	var all sync.WaitGroup
	for range 7 {
		all.Go(func() {
			if _, err := client.ModelInfer(x.as("shop"), inferMessage()); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	for range 10 {
		if _, err := client.ModelInfer(x.as("shop"), inferMessage()); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("a call beyond the part: %v", err)
		}
		if _, err := client.ModelInfer(x.as("lab"), inferMessage()); err != nil {
			t.Fatalf("a call of the other: %v", err)
		}
	}
	let()
	all.Wait()
	if _, err := client.ModelInfer(x.as("shop"), inferMessage()); err != nil {
		t.Error(err)
	}
}

// Nor the memory of requests.
func TestWaitingQueriesOfATenantLeaveMemory(t *testing.T) {
	const items = 1 << 16 // of 8 bytes
	x := startTenantedWith(t, server.Config{Memory: 9 << 18, Items: items}, shops...)
	x.p.model.MaxBatch = items
	entered, let := x.waiting(t)
	client := x.client(t)
	message := func(n int64) []tensor.Tensor {
		return []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{n, 2}, Data: make([]byte, 8*n)}}
	}
	large, small := oip.EncodeRequest("digits/v1", "", "", message(items), nil),
		oip.EncodeRequest("digits/v1", "", "", message(items/8), nil)
	var all sync.WaitGroup
	for range 3 { // half a MiB each
		all.Go(func() {
			if _, err := client.ModelInfer(x.as("shop"), large); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	for range 10 {
		if _, err := client.ModelInfer(x.as("shop"), large); status.Code(err) != codes.Unavailable ||
			!strings.Contains(err.Error(), "more than its part") {
			t.Fatalf("beyond the part: %v", err)
		}
		if _, err := client.ModelInfer(x.as("lab"), small); err != nil {
			t.Fatalf("of the other: %v", err)
		}
	}
	let()
	all.Wait()
	if _, err := client.ModelInfer(x.as("shop"), large); err != nil {
		t.Error(err)
	}
}
