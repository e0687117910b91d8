package dispatcher_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// node is a worker: the main program's `sluice node`, with ONNX Runtime, on the model of these tests.
func startNode(t *testing.T, models string) (address string) {
	t.Helper()
	path := os.Getenv("SLUICE_PROGRAM")
	if path == "" {
		path = filepath.Join(t.TempDir(), "sluice")
		build := exec.Command("go", "build", "-o", path, "./cmd/sluice")
		build.Dir = cluster.Root()
		build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=") // it runs models itself
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building sluice: %v\n%s", err, out)
		}
		t.Setenv("SLUICE_PROGRAM", path)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	c := exec.Command(path, "node", "--grpc", address, "--load", "*", models)
	c.Dir = cluster.Root()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&said, lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-read
		_ = c.Wait()
		if t.Failed() {
			t.Logf("log of the worker at %s:\n%s", address, said.String())
		}
	})
	return address
}

// realCell is a cell whose workers are servers of the protocol that hold a real model.
func realCell(addresses ...string) string {
	return fmt.Sprintf(`version: 1
device_types: [{name: d, price_per_hour: 1, cores: 1}]
workers: [{name: w, count: %d, backend: {kind: openinference, addresses: [%s]}}]
profiles: [profile.json]
apps:
  - name: sums
    slo: {latency: 500ms}
    late: serve-late
    demand: 100
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    outputs: [{name: y, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: sums, accuracy: 0.9, max_batch: 8}]
`, len(addresses), strings.Join(addresses, ", "))
}

// realProfile is what the cell believes of the model.
func realProfile() string {
	var points []string
	for _, batch := range []int{1, 2, 4, 8} {
		points = append(points, fmt.Sprintf(`{"variant": "sums", "device_type": "d", "batch": %d, "concurrency": 1, `+
			`"samples": 99, "mean_us": %d, "stddev_us": 50, "p50_us": %[2]d, "p90_us": %[2]d, "p95_us": %[2]d, `+
			`"p99_us": %[2]d, "interpolated": false}`, batch, 2000+200*batch))
	}
	return `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [` + strings.Join(points, ",\n") + "]}"
}

// TestRealModels has the replica that serves a real model killed under load: another one goes on with the workers,
// which keep their models.
func TestRealModels(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	models := t.TempDir()
	g := onnxmodel.NewGraph("sums").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 4).
		Initializer("w", []float32{1, 0, 0, 1, 1, 0, 0, 1}, 4, 2).
		Node("MatMul", []string{"x", "w"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	path := filepath.Join(models, "sums", "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, c)
	f.setFiles(0, map[string]string{"sluice.yaml": realCell(startNode(t, models), startNode(t, models)),
		"profile.json": realProfile()})
	f.setCell(1, fakeCell(1, "a1"))
	f.start("d0", nil)
	f.start("d1", nil)
	held := f.served(2, 1, "sums", "a1")
	if _, body := f.live()[0].infer("sums"); !strings.Contains(body, "[4,6]") && !strings.Contains(body, "4.0,6.0") {
		t.Errorf("the model answers %s", body)
	}
	l := startLoad(t, f, 200, "sums")
	run(2 * time.Second)
	began := time.Now()
	f.named(held[0]).kill()
	f.served(2, 2, "sums", "a1")
	t.Logf("the model is served again %v after the kill", time.Since(began).Round(10*time.Millisecond))
	run(2 * time.Second)
	l.finish("the replica of a real model killed")
	if lost := l.counts[retryable].Load() + l.counts[broken].Load(); lost > 100 {
		t.Errorf("%d queries were lost, more than a process can have had at that moment", lost)
	}
}
