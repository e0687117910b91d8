package test

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echo is a configuration that answers what it is asked.
const echo = `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - name: echo
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
`

// oneQuery is a query of it.
const oneQuery = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`

// answered sends a request on a new connection and returns the status and the body; 0 where nothing answers.
func answered(method, url, body string) (int, string) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// untilStatus asks until a status is answered.
func untilStatus(t *testing.T, url string, status int) {
	t.Helper()
	got, body := 0, ""
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(10 * time.Millisecond) {
		if got, body = answered(http.MethodGet, url, ""); got == status {
			return
		}
	}
	t.Fatalf("%s: %d %s, want %d", url, got, body, status)
}

// After SIGTERM a server says that it is not ready while it still answers on new connections, so that load balancers
// notice. A second signal has it go on at once.
func TestReadinessTurnsFalseBeforeSilence(t *testing.T) {
	file := write(t, t.TempDir(), "sluice.yaml", echo+"server: {not_ready: 1h, grpc: \"off\", admin: \"off\", "+
		"http: \"127.0.0.1:0\"}\n")
	c := serve(t, "-f", file)
	url := c.url()
	untilStatus(t, url+"/v2/health/ready", 200)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, url+"/v2/health/ready", 503)
	for range 20 {
		if code, body := answered(http.MethodPost, url+"/v2/models/echo/infer", oneQuery); code != 200 {
			t.Errorf("a query while not ready: %d %s", code, body)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after a second signal: %v", err)
	}
}
