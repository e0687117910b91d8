package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// TestLargeTensorsAreCopiedOnceAtMost counts the bytes that an HTTP request with a tensor of 8 MiB and an answer with
// another make a server allocate between the socket and the runtime. What a copy of a tensor needs must be allocated:
// one for the input, none for the output, which is sent from where the runtime left it.
func TestLargeTensorsAreCopiedOnceAtMost(t *testing.T) {
	const size = 8 << 20
	s := start(t, server.Config{})
	s.p.model.Inputs[0].Shape = []int64{-1, size / 4}
	out := tensor.Tensor{Name: "y", DType: tensor.FP32, Shape: []int64{1, size / 4}, Data: make([]byte, size)}
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		if at := uintptr(unsafe.Pointer(&r.Inputs[0].Data[0])); at%8 != 0 {
			t.Errorf("the input is at %x, which is no multiple of eight: runtimes copy it", at)
		}
		return &dataplane.Response{Outputs: []tensor.Tensor{out}}, nil
	}
	in := []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: out.Shape, Data: make([]byte, size)}}

	body, head, err := oip.EncodeRESTRequest(&oip.RESTRequest{Inputs: in, BinaryOutputs: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	overHTTP := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTPAddr()+
			"/v2/models/digits%2Fv1/infer", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(oip.HeaderLength, strconv.Itoa(head))
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if n, err := io.Copy(io.Discard, a.Body); err != nil || n < size {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	const times = 8
	overHTTP()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		overHTTP()
	}
	runtime.ReadMemStats(&after)
	if got := float64(after.TotalAlloc-before.TotalAlloc) / times / size; got > 1.3 {
		t.Errorf("a request with one tensor, answered with another, allocates %.2f times a tensor's size", got)
	}
}
