package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// restMessage is a request and the answer that a bare handler gives to it, in JSON alone or with binary tensors.
type restMessage struct {
	request, answer  []byte
	header, answered string // the lengths of the JSON; "" for JSON alone
}

func restMessages(tb testing.TB, binary bool) (m restMessage) {
	in := tensor.Tensor{Name: "input", DType: tensor.FP32, Shape: []int64{1, 16}, Data: make([]byte, 64)}
	ask := &oip.RESTRequest{Inputs: []tensor.Tensor{in}, BinaryOutputs: binary}
	length := func(n int) string {
		if n == oip.NoBinary {
			return ""
		}
		return strconv.Itoa(n)
	}
	body, n, err := oip.EncodeRESTRequest(ask, binary)
	if err != nil {
		tb.Fatal(err)
	}
	m.request, m.header = body, length(n)
	if body, n, err = oip.EncodeREST(&oip.RESTResponse{ModelName: "app", ModelVersion: "1",
		Outputs: []tensor.Tensor{in}, Params: []oip.Param{{Name: "variant", Value: "model"},
			{Name: "accuracy", Value: 0.9}, {Name: "queue_us", Value: int64(1)},
			{Name: "batch_size", Value: int64(1)}, {Name: "query_id", Value: int64(100000)}}}, ask); err != nil {
		tb.Fatal(err)
	}
	m.answer, m.answered = body, length(n)
	return m
}

// startBareHTTP starts a net/http server whose handler reads the request and writes an answer that was prepared: it
// decodes and encodes nothing.
func startBareHTTP(tb testing.TB, m restMessage) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/models/{model}/infer", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			tb.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if m.answered != "" {
			w.Header().Set(oip.HeaderLength, m.answered)
		}
		_, _ = w.Write(m.answer)
	})
	s := httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// caller is an HTTP client that costs little beside the server: one connection, one request that is always the same.
type caller struct {
	c   net.Conn
	in  *bufio.Reader
	out []byte
}

func callers(tb testing.TB, address string, m restMessage, n int) []*caller {
	head := "POST /v2/models/app/infer HTTP/1.1\r\nHost: " + address + "\r\nContent-Type: application/json\r\n"
	if m.header != "" {
		head += oip.HeaderLength + ": " + m.header + "\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(len(m.request)) + "\r\n\r\n"
	var out []*caller
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		out = append(out, &caller{c: c, in: bufio.NewReader(c), out: append([]byte(head), m.request...)})
	}
	return out
}

// call sends the request and reads its answer, which must be 200 and have a Content-Length.
func (c *caller) call(tb testing.TB) bool {
	if _, err := c.c.Write(c.out); err != nil {
		tb.Error(err)
		return false
	}
	left := -1
	for line := 0; ; line++ {
		text, err := c.in.ReadSlice('\n')
		if err != nil {
			tb.Error(err)
			return false
		}
		if line == 0 && !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) {
			tb.Errorf("the answer is %q", text)
			return false
		}
		if value, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if left, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				tb.Error(err)
				return false
			}
		}
		if len(text) <= 2 {
			break
		}
	}
	if _, err := c.in.Discard(left); err != nil {
		tb.Error(err)
		return false
	}
	return true
}

// fireHTTP sends n requests, over all connections at once, and returns how long it took.
func fireHTTP(tb testing.TB, to []*caller, n int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	begun := time.Now()
	for _, c := range to {
		wg.Go(func() {
			for left.Add(-1) >= 0 && c.call(tb) {
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}

// BenchmarkHTTP is BenchmarkGRPC over HTTP, at 64 connections, with tensors in JSON and in binary form.
func BenchmarkHTTP(b *testing.B) {
	for _, form := range []struct {
		name   string
		binary bool
	}{{"json", false}, {"binary", true}} {
		b.Run(form.name, func(b *testing.B) {
			m := restMessages(b, form.binary)
			_, address := startSluice(b, "sluice")
			base, whole := callers(b, startBareHTTP(b, m), m, 64), callers(b, address, m, 64)
			fireHTTP(b, base, 2000)
			fireHTTP(b, whole, 2000)
			b.ReportAllocs()
			b.ResetTimer()
			var tb, tw time.Duration
			turn := max(b.N/10, 1)
			n := 0
			for ; n < b.N; n += turn {
				tb += fireHTTP(b, base, turn)
				tw += fireHTTP(b, whole, turn)
			}
			b.ReportMetric(float64(n)/tb.Seconds(), "bare-req/s")
			b.ReportMetric(float64(n)/tw.Seconds(), "sluice-req/s")
			b.ReportMetric(tb.Seconds()/tw.Seconds(), "ratio")
		})
	}
}
