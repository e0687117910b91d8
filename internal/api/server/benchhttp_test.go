package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
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

// startBareHTTP starts a net/http server that does nothing. A decoding one takes and returns the same messages, by
// encoding/json, as the bare gRPC handler does by its generated code. Another reads the request and writes an answer
// that was prepared.
func startBareHTTP(tb testing.TB, m restMessage, decodes bool) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/models/{model}/infer", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			tb.Error(err)
		}
		answer, length := m.answer, m.answered
		if decodes {
			if answer, length, err = echoREST(body, r.Header.Get(oip.HeaderLength)); err != nil {
				tb.Error(err)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if length != "" {
			w.Header().Set(oip.HeaderLength, length)
		}
		_, _ = w.Write(answer)
	})
	s := httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

type plainTensor struct {
	Name       string         `json:"name"`
	Datatype   string         `json:"datatype"`
	Shape      []int64        `json:"shape"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Data       []float32      `json:"data,omitempty"`
}

type plainMessage struct {
	Name       string         `json:"model_name,omitempty"`
	Version    string         `json:"model_version,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Inputs     []plainTensor  `json:"inputs,omitempty"`
	Outputs    []plainTensor  `json:"outputs,omitempty"`
}

// echoREST answers a request with its input. length is that of the JSON, "" without binary tensors.
func echoREST(body []byte, length string) (answer []byte, answered string, err error) {
	head, blocks := body, []byte(nil)
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil {
			return nil, "", err
		}
		head, blocks = body[:n], body[n:]
	}
	var in plainMessage
	if err := json.Unmarshal(head, &in); err != nil {
		return nil, "", err
	}
	answer, err = json.Marshal(plainMessage{Name: "app", Version: "1", Outputs: in.Inputs, Parameters: map[string]any{
		"variant": "model", "accuracy": 0.9, "queue_us": 1, "batch_size": 1, "query_id": 1}})
	if length != "" {
		answered = strconv.Itoa(len(answer))
	}
	return append(answer, blocks...), answered, err
}

// caller sends one request, always the same, and reads its answer, which must be 200. It returns false where it fails.
type caller func(testing.TB) bool

// usualCallers are n callers that share a client of net/http, as internal/measure/loadgen and programs in Go have it.
func usualCallers(tb testing.TB, address string, m restMessage, n int) (out []caller) {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	tb.Cleanup(c.CloseIdleConnections)
	for range n {
		out = append(out, func(tb testing.TB) bool {
			r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "http://"+address+
				"/v2/models/app/infer", bytes.NewReader(m.request))
			if err != nil {
				tb.Error(err)
				return false
			}
			r.Header.Set("Content-Type", "application/json")
			if m.header != "" {
				r.Header.Set(oip.HeaderLength, m.header)
			}
			a, err := c.Do(r)
			if err != nil {
				tb.Error(err)
				return false
			}
			_, err = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			if err != nil || a.StatusCode != http.StatusOK {
				tb.Errorf("the answer is %s, %v", a.Status, err)
				return false
			}
			return true
		})
	}
	return out
}

// leanCallers are n callers that cost little beside the server: each writes the bytes of its request to a connection of
// its own, and skips those of the answer.
func leanCallers(tb testing.TB, address string, m restMessage, n int) (out []caller) {
	request := "POST /v2/models/app/infer HTTP/1.1\r\nHost: " + address + "\r\nContent-Type: application/json\r\n"
	if m.header != "" {
		request += oip.HeaderLength + ": " + m.header + "\r\n"
	}
	request += "Content-Length: " + strconv.Itoa(len(m.request)) + "\r\n\r\n" + string(m.request)
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		in, bytes := bufio.NewReader(c), []byte(request)
		out = append(out, func(tb testing.TB) bool {
			_, err := c.Write(bytes)
			if err == nil {
				err = skipAnswer(in)
			}
			if err != nil {
				tb.Error(err)
			}
			return err == nil
		})
	}
	return out
}

// skipAnswer reads an answer of a known length.
func skipAnswer(in *bufio.Reader) error {
	left := -1
	for line := 0; ; line++ {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line == 0 && !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("the answer is %q", text)
		}
		if value, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if left, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(text) <= 2 {
			break
		}
	}
	_, err := in.Discard(left)
	return err
}

// fireHTTP sends n requests, with all callers at once, and returns how long it took.
func fireHTTP(tb testing.TB, to []caller, n int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	begun := time.Now()
	for _, call := range to {
		wg.Go(func() {
			for left.Add(-1) >= 0 && call(tb) {
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}

// BenchmarkHTTP is BenchmarkGRPC over HTTP, with 64 callers, with tensors in JSON and in binary form. As there, the
// bare handler takes and returns messages, and the client's work is on both sides of the ratio. Those called prepared
// compare with a handler that decodes nothing, those called lean have a client that does next to nothing.
func BenchmarkHTTP(b *testing.B) {
	type callers func(testing.TB, string, restMessage, int) []caller
	for _, c := range []struct {
		name            string
		binary, decodes bool
		callers         callers
	}{
		{"json", false, true, usualCallers}, {"binary", true, true, usualCallers},
		{"json-prepared", false, false, usualCallers}, {"binary-prepared", true, false, usualCallers},
		{"json-prepared-lean", false, false, leanCallers}, {"binary-prepared-lean", true, false, leanCallers},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := restMessages(b, c.binary)
			_, address := startBoth(b, "sluice")
			base := c.callers(b, startBareHTTP(b, m, c.decodes), m, 64)
			whole := c.callers(b, address, m, 64)
			compare(b, func(n int) time.Duration { return fireHTTP(b, base, n) },
				func(n int) time.Duration { return fireHTTP(b, whole, n) })
		})
	}
}
