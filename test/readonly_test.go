package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// A server whose configuration lies in a folder that cannot be written, with a working directory and a cache that
// cannot be written either, measures its models, serves, and says what it cannot keep. Nobody can make files in /proc,
// not even root.
func TestReadOnlyFolders(t *testing.T) {
	needsONNX(t)
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir := t.TempDir()
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 2).Write(
		filepath.Join(dir, "models", "echo", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "sluice.yaml", `version: 1
device_types: [{name: local, cores: 1}]
workers: [{name: here, device_type: local, backend: {kind: onnx}}]
models: {repository: %s}
apps: [{name: echo, slo: {latency: 1s}, variants: [{name: echo, max_batch: 2}]}]
`, filepath.Join(dir, "models"))
	library, err := native.ONNXRuntime() // it is looked for from the working directory on
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, args := range map[string][]string{
		"file": {"-f", "/proc/self/fd/3"}, "models": {filepath.Join(dir, "models")},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveWith(t, func(c *exec.Cmd) {
				c.Dir = "/proc"
				c.ExtraFiles = []*os.File{f}
				c.Env = append(c.Env, "HOME=/proc", "XDG_CACHE_HOME=/proc/cache",
					native.EnvONNXRuntime+"="+library.Path)
			}, append([]string{"--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off"}, args...)...)
			base := c.url()
			until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
			code, body := answered("POST", base+"/v2/models/echo/infer",
				`{"inputs":[{"name":"input","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`)
			if code != 200 {
				t.Errorf("%d %s", code, body)
			}
			if out := c.said.String(); !strings.Contains(out, "kept") {
				t.Errorf("it does not say what it cannot keep:\n%s", out)
			}
		})
	}
}
