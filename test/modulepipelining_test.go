package test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// Scrooge pipelines the CPU work of a module with its model's (§3.6). Here that work is a stage of its own: on a
// machine of its own, or on cores of its own, it goes on while the model runs. Four clients ask a pipeline of `resize`
// and a convolution: with both on one core they take turns, with a core for each they overlap. Answers are the same.
//
//	go test -v -run TestModulePipelining ./test        (SLUICE_LONG=1 for 5 s each)
func TestModulePipelining(t *testing.T) {
	needsONNX(t)
	lasts := time.Duration(longtest.Of(300, 5000)) * time.Millisecond
	dir := t.TempDir()
	weights := make([]float32, 12*3*3*3)
	for k := range weights {
		weights[k] = float32(k%7) / 100
	}
	g := onnxmodel.NewGraph("conv").Input("image", onnxmodel.Float32, onnxmodel.Symbolic, 3, 256, 256).
		Initializer("w", weights, 12, 3, 3, 3).
		Node("Conv", []string{"image", "w"}, []string{"c"}).
		Node("GlobalAveragePool", []string{"c"}, []string{"y"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 12, 1, 1)
	if err := g.Write(filepath.Join(dir, "models", "conv", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	body := new(bytes.Buffer)
	fmt.Fprint(body, `{"inputs":[{"name":"image","datatype":"FP32","shape":[1,3,8,8],"data":[0`)
	for k := 1; k < 3*8*8; k++ {
		fmt.Fprintf(body, ",%d", k%11)
	}
	fmt.Fprint(body, "]}]}")
	var rates [2]float64
	var answers [2]string
	for k, workers := range []string{"a", "b"} { // of the model
		write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: core, cores: 1}]
workers: [{name: a}, {name: b}]
models: {repository: models}
system: {router: fcfs, batcher: single}
server: {http: "127.0.0.1:0", grpc: "off", admin: "off", not_ready: 0s}
apps:
  - name: app
    slo: {latency: 10s}
    inputs: [{name: image, datatype: FP32, shape: [-1, 3, -1, -1]}]
    stages:
      - {name: pre, function: resize, with: {height: 256, width: 256, layout: nchw}, next: [{to: model}]}
      - {name: model, variants: [{model: conv}]}
placement: [{worker: a, stage: pre}, {worker: %s, stage: model}]
`, workers)
		s := serve(t, "-f", filepath.Join(dir, "sluice.yaml"))
		ask := func(parameters string) (string, error) {
			text := strings.Replace(body.String(), "{", "{"+parameters, 1)
			r, err := http.Post(s.url()+"/v2/models/app/infer", "application/json", strings.NewReader(text))
			if err != nil {
				return "", err
			}
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if err == nil && r.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", r.Status, b)
			}
			return string(b), err
		}
		until(t, func() bool { _, err := ask(""); return err == nil })
		var err error
		if answers[k], err = ask(""); err != nil {
			t.Fatal(err)
		}
		timed, err := ask(`"parameters":{"stage_timings":true},`)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(regexp.MustCompile(`stage\.\w+\.run_us":\d+`).FindAllString(timed, -1))
		var n atomic.Int64
		var all sync.WaitGroup
		begun := time.Now()
		for range 4 {
			all.Go(func() {
				for time.Since(begun) < lasts {
					if _, err := ask(""); err != nil {
						t.Error(err)
						return
					}
					n.Add(1)
				}
			})
		}
		all.Wait()
		rates[k] = float64(n.Load()) / time.Since(begun).Seconds()
		_ = s.Process.Kill()
		_ = s.Wait()
	}
	t.Logf("taking turns %.0f queries/s, side by side %.0f: %.2f times", rates[0], rates[1], rates[1]/rates[0])
	if answers[0] != answers[1] {
		t.Errorf("%s\nand %s", answers[0], answers[1])
	}
}
