package server_test

import (
	"context"
	"net/http"
	"strconv"
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

// Requests that wait hold their part of the budget. What would exceed it is refused at once, over both protocols, and
// taken again once they are answered.
func TestRequestsShareOneMemoryBudget(t *testing.T) {
	const items = 1 << 16 // of 8 bytes
	s := start(t, server.Config{Memory: 2 << 20, Items: items})
	s.p.model.MaxBatch = items
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let) // where the test fails, the server can end
	entered := make(chan struct{}, 8)
	s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		entered <- struct{}{}
		<-release
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}}, nil
	}
	large := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{items, 2}, Data: make([]byte, 8*items)},
	}, nil)
	body, n, err := oip.EncodeRESTRequest(&oip.RESTRequest{Inputs: []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{items, 2}, Data: make([]byte, 8*items)},
	}}, true)
	if err != nil {
		t.Fatal(err)
	}
	overHTTP := func() (int, http.Header, string) {
		return s.do(t, "POST", model+"/infer", string(body), oip.HeaderLength, strconv.Itoa(n))
	}
	var all sync.WaitGroup
	for range 3 { // half a MiB each; a body over HTTP takes half as much again while it grows
		all.Go(func() {
			if _, err := s.client(t).ModelInfer(context.Background(), large); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	code, h, text := overHTTP()
	if code != 503 || !strings.Contains(text, "server.limits.memory") || h.Get("Retry-After") == "" {
		t.Errorf("beyond the budget over HTTP: %d %v %s", code, h, text)
	}
	let()
	all.Wait()
	waitFor(t, func() bool { code, _, _ := overHTTP(); return code == 200 })

	s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.Uint8, Shape: []int64{1, 4 << 20}, Data: make([]byte, 4<<20)},
		}}, nil
	}
	small := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
	}, nil)
	if _, err := s.client(t).ModelInfer(t.Context(), small); status.Code(err) != codes.Unavailable {
		t.Errorf("an answer beyond the budget: %v", err)
	}
	if code, _, text := s.do(t, "POST", model+"/infer", two); code != 503 {
		t.Errorf("an answer beyond the budget over HTTP: %d %s", code, text)
	}
}

// A body that says that it is too large is refused before it is read.
func TestLargeContentLengthIsRefusedAtOnce(t *testing.T) {
	s := start(t, server.Config{MaxRequest: 1 << 16})
	c := silent(t, s.HTTPAddr(), 1)[0]
	head := "POST " + model + "/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
	if _, err := c.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1024)
	n, err := c.Read(b)
	if err != nil || !strings.Contains(string(b[:n]), " 413 ") || !strings.Contains(string(b[:n]),
		"server.limits.request") {
		t.Errorf("%s, %v: want 413 that names the limit", b[:n], err)
	}
}
