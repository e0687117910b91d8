package python

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// logged collects the lines of processes.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) take(model, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, model+": "+line)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// needsPython skips a test where no interpreter can run workers. In CI there must be one (SLUICE_PYTHON_TESTS=must).
func needsPython(t testing.TB) string {
	t.Helper()
	path, err := findInterpreter(context.Background(), "")
	if err != nil {
		if os.Getenv("SLUICE_PYTHON_TESTS") == "must" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// source writes a module and returns its path.
func source(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.py")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// backendOf returns a backend with one model of a module, as variant 0, and its log.
func backendOf(t testing.TB, text string, change func(*Config)) (*Backend, *logged) {
	t.Helper()
	c := Config{Interpreter: needsPython(t), Models: map[serving.VariantID]Model{
		0: {Name: "m", Source: source(t, text), Options: map[string]string{"by": "2"}},
	}}
	var l logged
	c.Log = l.take
	if change != nil {
		change(&c)
	}
	return New(c), &l
}

func launched(t testing.TB, text string, change func(*Config)) (dataplane.Runner, *logged) {
	t.Helper()
	b, l := backendOf(t, text, change)
	r, err := b.Launch(context.Background(), dataplane.InstanceSpec{
		ID: 1, Variants: []serving.VariantID{0}, BatchLimit: 8, Slots: 1, Cores: 1,
	})
	if err != nil {
		t.Fatal(err, l.text())
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, l
}

// floats is a tensor of rows of one number each.
func floats(name string, rows ...float32) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.FP32, Shape: []int64{int64(len(rows)), 1}}
	for _, x := range rows {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(x))
	}
	return t
}

func values(t tensor.Tensor) (out []float32) {
	for k := 0; k < len(t.Data); k += 4 {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(t.Data[k:])))
	}
	return out
}

func batchOf(queries ...[]float32) *dataplane.Batch {
	b := &dataplane.Batch{ID: 1}
	for k, rows := range queries {
		b.Items += len(rows)
		b.Portions = append(b.Portions, dataplane.Portion{
			Query: serving.QueryID(k + 1), Items: len(rows), Inputs: []tensor.Tensor{floats("x", rows...)},
		})
	}
	return b
}

const scale = `
import numpy as np
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]"}
    def load(self, config):
        self.by = float(config.options["by"])
    def infer(self, inputs):
        return {"y": inputs["x"] * self.by}
`

// A class of ten lines answers batches: the rows of several queries are joined and split again.
func TestBatches(t *testing.T) {
	r, l := launched(t, scale, nil)
	b := batchOf([]float32{1, 2}, []float32{3}, []float32{4})
	if err := r.Run(t.Context(), b); err != nil {
		t.Fatal(err, l.text())
	}
	for k, want := range [][]float32{{2, 4}, {6}, {8}} {
		got := values(b.Portions[k].Outputs[0])
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("query %d: %v, want %v", k, got, want)
		}
	}
	// Outputs that are larger than the room for them so far are fetched again.
	big := batchOf(make([]float32, 200_000))
	big.Portions[0].Inputs[0].Data[3] = 0x3f // 0.5
	if err := r.Run(t.Context(), big); err != nil || len(big.Portions[0].Outputs[0].Data) != 800_000 ||
		values(big.Portions[0].Outputs[0])[0] != 1 {
		t.Error(err, len(big.Portions[0].Outputs[0].Data))
	}
}

// What a model raises is in its log, under an id; clients read the id alone.
func TestExceptions(t *testing.T) {
	r, l := launched(t, `
import sluice_worker
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]"}
    def infer(self, inputs):
        x = inputs["x"]
        if (x == 1).any():
            raise ValueError("the password is hunter2")
        if (x == 2).any():
            raise sluice_worker.Refused("want x other than 2")
        if (x == 3).any():
            return {"y": x[:0]}
        if (x == 4).any():
            return {"z": x}
        if (x == 5).any():
            return {"y": x.astype("int64").astype(object)}
        if (x == 6).any():
            raise SystemExit(3)
        if (x == 7).any():
            return None
        return {"y": x}
`, nil)
	client := func(x float32) (string, error) {
		err := r.Run(t.Context(), batchOf([]float32{x}))
		var remote *dataplane.RemoteError
		if !errors.As(err, &remote) || errors.Is(err, dataplane.ErrInstanceLost) {
			t.Fatalf("%v: %v", x, err)
		}
		return remote.What, err
	}
	told, err := client(1)
	id := told[strings.LastIndex(told, " ")+1:]
	if strings.Contains(err.Error(), "hunter2") || len(id) != 12 {
		t.Errorf("clients read %q, the error is %v", told, err)
	}
	until(t, func() bool { return strings.Contains(l.text(), "hunter2") })
	if !strings.Contains(l.text(), "error "+id) || !strings.Contains(l.text(), "Traceback") {
		t.Errorf("the log lacks the traceback under %s: %s", id, l.text())
	}
	if told, _ := client(2); told != "want x other than 2" {
		t.Errorf("a query that is refused reads %q", told)
	}
	for x, want := range map[float32]string{
		3: `output "y" has shape [0, 1], want 1 rows, one for each item`, 4: `output "y" is missing`, 5: "object",
		7: "infer returned a NoneType",
	} {
		told, err := client(x)
		wrong := (*dataplane.RemoteError)(nil)
		if !strings.HasPrefix(told, `the Python class of model "m" gave a wrong answer: `) ||
			!strings.Contains(told, want) || errors.As(err, &wrong) && wrong.WrongAnswer { // as of a server elsewhere
			t.Errorf("%v: %q, %v", x, told, err)
		}
	}
	client(6)
	if err := r.Run(t.Context(), batchOf([]float32{8})); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func until(t testing.TB, is func() bool) {
	t.Helper()
	for range 12_000 { // two minutes
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}

const faulty = `
import os, time, ctypes
hoard = []
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]"}
    def infer(self, inputs):
        x = inputs["x"]
        if (x == 1).any(): os._exit(3)
        if (x == 2).any(): os.abort()
        if (x == 3).any(): time.sleep(3600)
        if (x == 4).any(): ctypes.string_at(0)
        if (x == 5).any(): hoard.append(bytearray(os.urandom(1)) * (40 << 20))
        if (x == 6).any():
            hoard.append(b"x" * (4 << 40))
        if (x == 7).any():
            while True:
                try:
                    if os.fork() == 0:
                        os.setsid()
                        time.sleep(3600)
                except OSError:
                    time.sleep(0.01)
        if (x == 8).any():
            for k in range(3):
                if os.fork() == 0:
                    if k == 1: os.setsid()
                    time.sleep(3600)
        if (x == 9).any():  # the interpreter's lock is held: no signal handler of Python runs
            ctypes.PyDLL(None).sleep(3600)
        return {"y": x + os.getpid() * 0}
`

// A process that exits, aborts, crashes, hangs or multiplies breaks its batch and no more: another takes its place.
func TestFaults(t *testing.T) {
	r, l := launched(t, faulty, func(c *Config) { c.RunTimeout, c.Memory = 2*time.Second, 200<<20 })
	for _, x := range []struct {
		name string
		x    float32
		want string
	}{
		{"exit", 1, "ended with status 3"}, {"abort", 2, "signal 6"}, {"hang", 3, "run_timeout"},
		{"crash", 4, "signal 11"}, {"out of memory", 6, "out of memory"}, {"fork bomb", 7, "ended by signal 9"},
		{"hang with the lock", 9, "run_timeout"},
	} {
		err := r.Run(t.Context(), batchOf([]float32{x.x}))
		var remote *dataplane.RemoteError
		if !errors.As(err, &remote) || errors.Is(err, dataplane.ErrInstanceLost) ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want a broken batch: %s", x.name, err, x.want)
		}
		if strings.Contains(remote.What, "python") {
			t.Errorf("%s: clients read %q", x.name, remote.What)
		}
		until(t, func() bool { // where a start takes longer, the instance counts as lost meanwhile
			err := r.Run(t.Context(), batchOf([]float32{0}))
			if err != nil && !errors.Is(err, dataplane.ErrInstanceLost) {
				t.Fatalf("after %s: %v\n%s", x.name, err, l.text())
			}
			return err == nil
		})
	}
	// A leak is no fault of a query: they are all answered, while processes are replaced.
	within := func() bool {
		p := r.(*instance).pools[0]
		p.mu.Lock()
		defer p.mu.Unlock()
		for x := range p.held {
			if usageOf(x.guardian.Pid).memory > p.b.c.Memory {
				return false
			}
		}
		return true
	}
	for range 20 {
		if err := r.Run(t.Context(), batchOf([]float32{5})); err != nil {
			t.Fatal(err)
		}
		until(t, within) // so that no more queries leak to a process than it may take
	}
	if !strings.Contains(l.text(), "more than process_memory") {
		t.Errorf("a leak of 800 MiB was not noticed: %s", l.text())
	}
	// What a model starts ends with it, also what has left its process group.
	if err := r.Run(t.Context(), batchOf([]float32{8})); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left := workers(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// workers lists the processes with the environment of this test's workers.
func workers(t testing.TB) (out []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		env, _ := os.ReadFile(x)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(x)))
		if pid != os.Getpid() && strings.Contains(string(env), "SLUICE_TEST_MARK="+mark) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(x), "cmdline"))
			out = append(out, strconv.Itoa(pid)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

// Outputs that nobody wants stay in the process; queries of one call that want different ones get all.
func TestOutputsThatAreWanted(t *testing.T) {
	r, l := launched(t, `
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]", "z": "FP32[-1,1]"}
    def infer(self, inputs):
        return {"y": inputs["x"], "z": -inputs["x"]}
`, nil)
	for _, x := range []struct {
		wanted [2][]string
		want   string
	}{
		{[2][]string{nil, nil}, "yz"}, {[2][]string{{"z"}, {"z"}}, "z"}, {[2][]string{{"z"}, {"y"}}, "yz"},
		{[2][]string{{"z"}, nil}, "yz"},
	} {
		b := batchOf([]float32{1, 2}, []float32{3})
		b.Portions[0].Wanted, b.Portions[1].Wanted = x.wanted[0], x.wanted[1]
		if err := r.Run(t.Context(), b); err != nil {
			t.Fatal(err, l.text())
		}
		got := ""
		for _, o := range b.Portions[1].Outputs {
			got += o.Name
		}
		last := b.Portions[1].Outputs[len(got)-1]
		if got != x.want || values(last)[0] != -3 {
			t.Errorf("%q: outputs %q, the last is %v", x.wanted, got, values(last))
		}
	}
}
