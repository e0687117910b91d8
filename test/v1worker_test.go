package test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// A server is the worker of another one by the protocol v1. What it takes and gives comes from its metadata.
func TestWorkerOfProtocolV1(t *testing.T) {
	needsONNX(t)
	t.Parallel()
	dir := t.TempDir()
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 2).Write(
		filepath.Join(dir, "models", "echo", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	behind := serve(t, "-f", write(t, dir, "behind.yaml", `
version: 1
device_types: [{name: local, cores: 1}]
workers: [{name: here}]
models: {repository: models}
apps: [{name: echo, slo: {latency: 2s}, late: serve-late, variants: [{name: echo, model: echo, max_batch: 4}]}]
server: {http: "127.0.0.1:0", grpc: "off", admin: "off"}
`))
	until(t, func() bool { return get(behind.url()+"/v1/models/echo") == http.StatusOK })
	front := serve(t, "-f", write(t, dir, "front.yaml", `
version: 1
device_types: [{name: remote, cores: 1}]
workers: [{name: w, backend: {kind: openinference, protocol: v1, address: %q}}]
apps: [{name: app, slo: {latency: 2s}, variants: [{name: echo, model: echo, max_batch: 4}]}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
`, strings.TrimPrefix(behind.url(), "http://")))
	url := front.url() + "/v2/models/app/infer"
	until(t, func() bool {
		status, text := postTo(t, url,
			`{"inputs":[{"name":"input","datatype":"FP32","shape":[2,2],"data":[1,2,3.5,4]}]}`)
		return status == http.StatusOK && strings.Contains(text, `"data":[1,2,3.5,4]`)
	})
	status, text := postTo(t, url, `{"inputs":[{"name":"input","datatype":"FP32","shape":[1,3],"data":[1,2,3]}]}`)
	if status != http.StatusBadRequest {
		t.Errorf("a wrong shape: %d %s", status, text)
	}
	_ = behind.Process.Kill()
	_ = behind.Wait()
	status, text = postTo(t, url, `{"inputs":[{"name":"input","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`)
	if status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout {
		t.Errorf("without the server: %d %s", status, text)
	}
}
