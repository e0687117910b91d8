package test

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// A server whose machine lacks memory for large batches answers all queries in smaller ones. Its metrics, its log and
// its explanations say so.
func TestLacksMemory(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: card, accelerators: 1, memory: 1GiB}]
workers: [{name: w, backend: {kind: fake, latency: 20ms, most_items: 2}}]
system: {name: triton-like, timeout: 50ms}
apps:
  - name: echo
    slo: {latency: 30s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]
    variants: [{name: echo, max_batch: 8}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0"}
`)
	server := serve(t, "-f", path)
	const body = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			r, err := http.Post(server.url()+"/v2/models/echo/infer", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
				t.Errorf("status %d: %s", r.StatusCode, text)
			}
		})
	}
	all.Wait()
	get := func(p string) string {
		r, err := http.Get("http://" + server.admin + p)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const series = `sluice_batch_memory_limit{app="echo",device_type="card",variant="echo"} 2`
	if !strings.Contains(get("/metrics"), series) {
		t.Errorf("the metrics lack %s", series)
	}
	if log := server.said.String(); !strings.Contains(log, "lacked memory for a batch of variant") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	told := false
	for q := range 24 {
		told = told || strings.Contains(get(fmt.Sprintf("/debug/explain?query=%d", q+1)),
			"the device lacked memory for it")
	}
	if !told {
		t.Error("no explanation says that a batch lacked memory")
	}
}

// torch returns an interpreter with PyTorch; it skips the test without one.
func torch(t *testing.T) string {
	t.Helper()
	for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import torch").Run() == nil {
			return p
		}
	}
	t.Skip("no interpreter has PyTorch: install python3-torch")
	return ""
}

// The measurement of accelerators goes through, with networks that compute next to nothing on the processor, and what
// it writes can be read.
func TestMeasureAccelerator(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts several interpreters")
	}
	python, out := torch(t), t.TempDir()
	c := exec.Command("../scripts/measure-accelerator.sh", "--tiny", "--out", out)
	c.Env = append(os.Environ(), asProgram+"=1", "SLUICE="+os.Args[0], "PYTHON="+python,
		"SLUICE_NVIDIA_SMI="+filepath.Join(out, "absent"))
	c.WaitDelay = time.Minute
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	f, err := profiler.ReadFile(filepath.Join(out, "cpu", "profile.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Points) != 2*2*2 || len(f.Loads) != 2 || len(f.Memory) != 2 {
		t.Errorf("%d points, %d loads, %d variants with memory", len(f.Points), len(f.Loads), len(f.Memory))
	}
	if rows := table(t, filepath.Join(out, "live", "live.csv")); len(rows) != 1+3 || rows[3][0] != "by-hand" {
		t.Errorf("systems: %q", rows)
	}
	processes := 0
	for _, r := range table(t, filepath.Join(out, "cpu", "rows.csv")) {
		if r[0] == "processes" {
			processes++
		}
	}
	if processes != 2 {
		t.Errorf("%d points of several processes, want 2", processes)
	}
	for _, file := range []string{"cpu/profile.png", "report.md", "devices.json"} {
		if s, err := os.Stat(filepath.Join(out, file)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The architectures have as many weights as published: torchvision's ResNets and EfficientNets, SSD300 without the
// scale of one layer, YOLOv3.
func TestArchitecturesAreThePublishedOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds networks of 100 million weights")
	}
	out, err := exec.Command(torch(t), "-c", `
import sys
sys.path.insert(0, "../scripts/accelerator")
import networks
for name in sys.argv[1:]:
    print(name, sum(p.numel() for p in networks.NETWORKS[name].build().parameters()))
`, "resnet18", "resnet34", "resnet50", "resnet101", "efficientnet-b0", "efficientnet-b2", "ssd300-vgg16",
		"yolov3-416").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	const want = `resnet18 11689512
resnet34 21797672
resnet50 25557032
resnet101 44549160
efficientnet-b0 5288548
efficientnet-b2 9109994
ssd300-vgg16 26284974
yolov3-416 61949149
`
	if string(out) != want {
		t.Errorf("weights:\n%s\nwant\n%s", out, want)
	}
}

func table(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
