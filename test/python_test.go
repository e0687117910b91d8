package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/internal/heldport"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// needsPython skips a test where no interpreter has the package. Where SLUICE_PYTHON_TESTS is "must", that fails.
func needsPython(t *testing.T, pkg string) {
	t.Helper()
	path := write(t, t.TempDir(), "probe.py", `
import numpy, %s
class Probe:
    inputs = {"x": "FP32[-1]"}
    def infer(self, inputs):
        return inputs
`, pkg)
	if _, err := machines.DescribePython(t.Context(), path, func(string) {}); err != nil {
		if os.Getenv("SLUICE_PYTHON_TESTS") == "must" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// descendants lists the processes below one, as far as the system says.
func descendants(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, f := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(f)
			out = append(append(out, child), descendants(child)...)
		}
	}
	return out
}

// alive reports whether a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// ten is a class of ten lines, with a fault for a test: some inputs end its process or say a secret.
const ten = `
import os
class Sums:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1]"}
    def infer(self, inputs):
        x = inputs["x"]
        if (x == 13).any(): os._exit(9)
        if (x == 14).any(): raise ValueError("the password is hunter2")
        return {"y": x.sum(axis=1)}
`

// A class of ten lines is profiled, served and called. Its process is killed and comes back, a query that ends it fails
// alone, clients read no secret, and after kill -9 of the server nothing is left.
func TestPythonClass(t *testing.T) {
	t.Parallel()
	needsPython(t, "numpy")
	dir := t.TempDir()
	write(t, dir, "sums.py", "%s", ten)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any, cores: 1}]
workers: [{name: w, backend: {kind: python}}]
profiles: [profile.json]
apps:
  - name: sums
    slo: {latency: 2s}
    late: serve-late
    variants: [{python: "sums.py:Sums", max_batch: 8}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
`)
	status, out, errs := run(t.Context(), "profile", "-f", file, "-o", filepath.Join(dir, "profile.json"), "--max-time",
		"10ms", "--precision", "10")
	if status != 0 || !strings.Contains(out, "Sums") {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if status, out, errs := run(t.Context(), "plan", "-f", file, "--demand", "sums=10"); status != 0 {
		t.Errorf("%d %s%s", status, out, errs)
	}
	if status, out, errs := run(t.Context(), "simulate", "-f", file, "--app", "sums", "--request-rate-range", "20",
		"--duration", "1s"); status != 0 {
		t.Errorf("%d %s%s", status, out, errs)
	}
	server := serve(t, "-f", file)
	url := server.url() + "/v2/models/sums/infer"
	call := func(a, b int) (int, string) {
		return postTo(t, url, fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[%d,%d]}]}`,
			a, b))
	}
	answered := func() bool {
		status, text := call(1, 2)
		return status == http.StatusOK && strings.Contains(text, `"data":[3]`)
	}
	until(t, answered)

	workers := descendants(server.Process.Pid)
	if len(workers) != 2 {
		t.Fatalf("%d processes below the server, want a guardian and a worker", len(workers))
	}
	if err := syscall.Kill(workers[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, answered)

	if status, text := call(13, 0); status == http.StatusOK {
		t.Errorf("a query that ends its process: %d %s", status, text)
	}
	until(t, answered)
	if status, text := call(14, 0); status == http.StatusOK || strings.Contains(text, "hunter2") {
		t.Errorf("a query that raises: %d %s", status, text)
	}
	if !answered() {
		t.Error("no answer after a query that raised")
	}

	workers = descendants(server.Process.Pid)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		for _, pid := range workers {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// A module of PyTorch is measured and served from a file of Python with nothing else written. Its processes are killed
// and come back.
func TestPythonTorch(t *testing.T) {
	needsPython(t, "torch")
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	file := write(t, dir, "net.py", `
import torch
class Net:
    inputs = {"x": "FP32[-1,4]"}
    outputs = {"y": "FP32[-1,2]"}
    max_batch = 4
    def load(self, config):
        self.net = torch.nn.Linear(4, 2)
        torch.nn.init.constant_(self.net.weight, 1)
        torch.nn.init.constant_(self.net.bias, 0.5)
    def infer(self, inputs):
        with torch.no_grad():
            return {"y": self.net(torch.from_numpy(inputs["x"].copy()))}
`)
	server := serve(t, file+":Net", "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off")
	answered := func() bool {
		resp, err := http.Post(server.url()+"/v2/models/Net/infer", "application/json",
			strings.NewReader(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text := make([]byte, 1000)
		n, _ := resp.Body.Read(text)
		return resp.StatusCode == http.StatusOK && strings.Contains(string(text[:n]), `"data":[10.5,10.5]`)
	}
	until(t, answered)
	for _, pid := range descendants(server.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, answered)
}

// A process waits with what the model imports, is measured, takes the place of one that is killed, and does not outlive
// a server that is killed. A package that holds 64 MiB stands in for a framework.
func TestPythonSpares(t *testing.T) {
	t.Parallel()
	needsPython(t, "numpy")
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, lib, "pandas.py", "import numpy\nbig = numpy.ones(8 << 20)\n")
	write(t, dir, "sums.py", "import pandas\n%s", ten)
	profile := filepath.Join(dir, "profile.json")
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any, cores: 1, memory: 8GiB}]
workers: [{name: w, backend: {kind: python, spare_processes: 1, environment: {PYTHONPATH: %q}}}]
profiles: [profile.json]
apps:
  - {name: sums, slo: {latency: 2s}, late: serve-late, variants: [{python: "sums.py:Sums", max_batch: 8}]}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
`, lib)
	status, out, errs := run(t.Context(), "profile", "-f", file, "-o", profile, "--max-time", "10ms", "--precision",
		"10")
	if status != 0 || !strings.Contains(out, "Spare processes on any take") {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	measured, err := profiler.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	if len(measured.Spares) != 1 || measured.Spares[0].Bytes < 64<<20 {
		t.Errorf("spare processes: %+v, want 64 MiB and more", measured.Spares)
	}
	if loaded, _ := measured.MemoryOf("Sums"); loaded < 64<<20 {
		t.Errorf("the model takes %d bytes, want 64 MiB and more", loaded)
	}
	server := serve(t, "-f", file)
	url := server.url() + "/v2/models/sums/infer"
	answered := func() bool {
		status, text := postTo(t, url, `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`)
		return status == http.StatusOK && strings.Contains(text, `"data":[3]`)
	}
	until(t, answered)
	four := func() bool { return len(descendants(server.Process.Pid)) == 4 } // a guardian and a worker, twice
	until(t, four)
	was := descendants(server.Process.Pid)
	for at, pid := range was {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && at%2 == 1 &&
			!strings.Contains(string(text), "(spare)") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the worker that serves
		}
	}
	until(t, answered)
	until(t, func() bool { return four() && !slices.Equal(was, descendants(server.Process.Pid)) })
	workers := descendants(server.Process.Pid)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !slices.ContainsFunc(workers, alive) })
}

// The example of a text pipeline in Python is served as it lies, and tells moods.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	needsPython(t, "numpy")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../examples/python")); err != nil {
		t.Fatal(err)
	}
	server := serve(t, "-f", filepath.Join(dir, "sluice.yaml"), "--http", "127.0.0.1:0", "--grpc", "off",
		"--admin", "off")
	until(t, func() bool {
		status, text := postTo(t, server.url()+"/v2/models/mood/infer",
			`{"inputs":[{"name":"text","datatype":"BYTES","shape":[3],`+
				`"data":["a lovely film, I liked it","this was not good","hm"]}]}`)
		return status == http.StatusOK && strings.Contains(text, `"data":["good","bad","unsure"]`)
	})
}

// A mistake in a class is said before anything is served: what is wrong, and where.
func TestPythonMistakes(t *testing.T) {
	needsPython(t, "numpy")
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	for name, x := range map[string]struct{ text, want string }{
		"none":    {"x = 1", "0 classes"},
		"several": {"class A:\n def infer(self, i): pass\nclass B(A): pass\n", "2 classes"},
		"shapes":  {"class A:\n def infer(self, i): pass\n", "inputs"},
		"spec":    {"class A:\n inputs = {'x': 'F32'}\n def infer(self, i): pass\n", "F32"},
		"imports": {"import no_such_package\n", "ModuleNotFoundError"},
	} {
		status, _, errs := run(context.WithoutCancel(t.Context()), "serve", write(t, dir, name+".py", "%s", x.text))
		if status == 0 || !strings.Contains(errs, x.want) {
			t.Errorf("%s: %d %s, want %q", name, status, errs, x.want)
		}
	}
}

// A file of Python is deployed, and replaced by a new version of its code while it is called: no query fails, the old
// code answers until the new one is warm. Where no worker is for Python, it is refused.
func TestPythonDeployed(t *testing.T) {
	t.Parallel()
	needsPython(t, "numpy")
	dir, admin := t.TempDir(), heldport.Address(t)
	server := func(kind string) string {
		return write(t, dir, kind+".yaml", `
version: 1
device_types: [{name: any, cores: 1}]
workers: [{name: w, backend: {kind: %s}}]
store: store-%s
system: {late: serve-late}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: %q}
`, kind, kind, admin)
	}
	deploy := func(config, factor string) (int, string) {
		write(t, dir, "times.py", `
class Times:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]"}
    max_batch = 2
    def infer(self, inputs):
        return {"y": inputs["x"] * %s}
`, factor)
		fn := write(t, dir, "fn.yaml", "name: times\nmodel: times.py\nslo: {latency: 2s}\nmin_instances: 1\n")
		status, out, errs := run(t.Context(), "deploy", "-f", fn, "--config", config)
		return status, out + errs
	}
	config := server("python")
	url := serve(t, "-f", config).url() + "/v2/models/times/infer"
	if status, text := deploy(config, "2"); status != 0 {
		t.Fatal(status, text)
	}
	call := func() (int, string) {
		return postTo(t, url,
			`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[1]}]}`)
	}
	until(t, func() bool { status, text := call(); return status == http.StatusOK && strings.Contains(text, "[2]") })
	deployed := make(chan string, 1)
	go func() {
		status, text := deploy(config, "3")
		deployed <- fmt.Sprint(status, text)
	}()
	seen := ""
	until(t, func() bool {
		status, text := call()
		if status != http.StatusOK || strings.Contains(text, "[2]") && seen == "new" {
			t.Fatalf("while it is replaced: %d %s", status, text)
		}
		if strings.Contains(text, "[3]") {
			seen = "new"
		}
		return seen == "new"
	})
	if text := <-deployed; !strings.HasPrefix(text, "0") {
		t.Error(text)
	}
}
