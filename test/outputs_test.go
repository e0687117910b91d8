package test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// A model whose outputs are together more than an answer takes is served: the log says so, clients get those that they
// name, and 413 with the key that sets the limit for all. The limit is a flag of serve.
func TestModelWithLargeOutputs(t *testing.T) {
	needsONNX(t)
	const outputs, width = 12, 16 << 10 // 64 KiB each
	for name, declared := range map[string]int64{"known": width, "open": onnxmodel.Symbolic} {
		dir := t.TempDir()
		g := onnxmodel.NewGraph("large").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 4).
			InitializerInt64("times", []int64{1, width / 4}, 2)
		for k := range outputs {
			y := fmt.Sprint("y", k)
			g.Node("Tile", []string{"x", "times"}, []string{y}).
				Output(y, onnxmodel.Float32, onnxmodel.Symbolic, declared)
		}
		if err := g.Write(filepath.Join(dir, "large.onnx")); err != nil {
			t.Fatal(err)
		}
		server := serveWith(t, func(c *exec.Cmd) { c.Env = append(c.Env, "XDG_CACHE_HOME="+dir) },
			filepath.Join(dir, "large.onnx"), "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off",
			"--output-limit", "200KiB")
		call := func(names ...string) (int, string) {
			asks := ""
			for _, n := range names {
				asks += fmt.Sprintf(`,{"name":%q}`, n)
			}
			if asks != "" {
				asks = `"outputs":[` + asks[1:] + `],`
			}
			return postTo(t, server.url()+"/v2/models/large/infer", fmt.Sprintf(
				`{%s"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`, asks))
		}
		until(t, func() bool { status, _ := call("y3"); return status == http.StatusOK })
		if status, body := call("y7", "y2", "y11"); status != http.StatusOK ||
			strings.Count(body, `"shape":[1,16384]`) != 3 {
			t.Errorf("%s: three outputs: %d %.300s", name, status, body)
		}
		for _, names := range [][]string{nil, {"y1", "y2", "y3", "y4"}} {
			status, body := call(names...)
			if status != http.StatusRequestEntityTooLarge || !strings.Contains(body, "server.limits.output") {
				t.Errorf("%s: outputs %q: %d %.300s", name, names, status, body)
			}
		}
		if known := strings.Contains(server.said.String(), "bytes=786432 limit=204800"); known != (name == "known") {
			t.Errorf("%s: the log: %s", name, server.said.String())
		}
	}
}
