package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends a request and returns the status and the body of the answer.
func ask(t *testing.T, method, address, body string, header ...string) (int, string) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(header); k += 2 {
		r.Header.Set(header[k], header[k+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

// Versions are the numbers of directories. Several of a model are served side by side, and the latest answers who names
// none.
func TestVersionsAreTheNumbersOfDirectories(t *testing.T) {
	s := running(t, `
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - name: m
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]
    variants: [{name: m, version: 3}]
  - name: m@1
    version_of: m
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: m-v1, model: m, version: 1}]
server: {http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0"}
`, Options{})
	const one = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[1]}]}`
	const pair = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`
	at := s.HTTPAddr() + "/v2/models/m"
	for _, x := range []struct {
		method, address, body string
		status                int
		want                  string
	}{
		{"GET", at, "", 200, `"versions":["1","3"]`},
		{"GET", at + "/versions/1", "", 200, `"shape":[-1,2]`},
		{"GET", at + "/versions/1/ready", "", 200, `true`},
		{"POST", at + "/infer", one, 200, `"model_name":"m","model_version":"3"`},
		{"POST", at + "/versions/3/infer", one, 200, `"model_version":"3"`},
		{"POST", at + "/versions/1/infer", pair, 200, `"model_name":"m","model_version":"1"`},
		{"POST", at + "/versions/1/infer", one, 400, `takes [-1,2]`},
		{"POST", at + "/versions/2/infer", one, 404, `use 1 (m-v1), 3 (m)`},
		{"GET", s.HTTPAddr() + "/v2/models/m@1", "", 404, `unknown model`},
		{"POST", s.HTTPAddr() + "/v2/repository/index", "", 200,
			`[{"name":"m","version":"1","state":"READY"},{"name":"m","version":"3","state":"READY"}]`},
		{"GET", at + "/versions/1/stats", "", 200, `"version":"1"`},
		{"GET", at + "/stats", "", 200, `"version":"3"`},
		{"GET", s.AdminAddr() + "/metrics", "", 200, `nv_inference_request_success{model="m",version="1"} 1`},
		{"GET", s.AdminAddr() + "/metrics", "", 200, `nv_inference_request_success{model="m",version="3"} 2`},
	} {
		if code, got := ask(t, x.method, x.address, x.body); code != x.status || !strings.Contains(got, x.want) {
			if len(got) > 600 {
				got = got[:600]
			}
			t.Errorf("%s %s: %d %s, want %s", x.method, x.address, code, got, x.want)
		}
	}
}
