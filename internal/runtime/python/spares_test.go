package python

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
)

// heavy stands in for a framework: a package that notes the process that has imported it and how often.
const heavy = `
import os
imported_by = os.getpid()
with open(os.environ["HEAVY_LOG"], "a") as f:
    f.write("%d\n" % imported_by)
`

// user is a model that uses it, and answers with the process that it runs in.
const user = `
import os
import numpy as np
import heavy, heavy.part
print("user code runs in %d" % os.getpid(), flush=True)
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP64[-1]"}
    def infer(self, inputs):
        assert heavy.imported_by == os.getpid()
        return {"y": np.full(len(inputs["x"]), float(os.getpid()))}
`

// withHeavy returns a backend with spare processes and the stand-in for a framework.
func withHeavy(t *testing.T, n int, change func(*Config)) (*Backend, *logged, string) {
	t.Helper()
	was := frameworks
	frameworks = append(slices.Clone(frameworks), "heavy")
	t.Cleanup(func() { frameworks = was })
	dir := t.TempDir()
	for name, text := range map[string]string{"__init__.py": heavy, "part.py": "", "_own.py": ""} {
		if err := os.MkdirAll(filepath.Join(dir, "heavy"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "heavy", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	imports := filepath.Join(dir, "imports")
	b, l := backendOf(t, user, func(c *Config) {
		c.Spares = n
		c.Environment = map[string]string{"PYTHONPATH": dir, "HEAVY_LOG": imports}
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(b.Close)
	return b, l, imports
}

func launchOf(t *testing.T, b *Backend, l *logged, cores int) *instance {
	t.Helper()
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{
		ID: 1, Variants: variant, BatchLimit: 2, Slots: 1, Cores: cores,
	})
	if err != nil {
		t.Fatal(err, l.text())
	}
	t.Cleanup(func() { _ = r.Close() })
	return r.(*instance)
}

// settled waits for the spare processes and returns their numbers.
func settled(t *testing.T, b *Backend) (pids []int) {
	t.Helper()
	if err := b.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.spares.mu.Lock()
	defer b.spares.mu.Unlock()
	for _, r := range b.spares.ready {
		pids = append(pids, r.x.pid)
	}
	return pids
}

func pidOf(t *testing.T, in *instance) int {
	t.Helper()
	p := in.pools[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for x, s := range p.held {
		if !s.ended {
			return x.pid
		}
	}
	return 0
}

// A process waits with what the model imported, and is the next one of that model. No code of the user has run in it.
func TestSpare(t *testing.T) {
	b, l, imports := withHeavy(t, 1, nil)
	first := launchOf(t, b, l, 1)
	if n := len(settled(t, b)); n != 1 {
		t.Fatalf("%d spare processes, want 1\n%s", n, l.text())
	}
	spare := settled(t, b)[0]
	if spare == pidOf(t, first) {
		t.Fatal("the spare process is the model's")
	}
	if strings.Contains(l.text(), fmt.Sprintf("runs in %d", spare)) {
		t.Error("code of the model has run in a process that waits")
	}
	if text, err := os.ReadFile(imports); err != nil || !strings.Contains(string(text), fmt.Sprintln(spare)) {
		t.Errorf("the spare process has not imported the framework: %s %v", text, err)
	}
	if b.SpareMemory() <= 0 {
		t.Error("a process that waits takes no memory")
	}
	second := launchOf(t, b, l, 1)
	if got := pidOf(t, second); got != spare {
		t.Errorf("the second instance runs in process %d, want the spare one, %d", got, spare)
	}
	if err := second.Run(t.Context(), batchOf([]float32{1})); err != nil {
		t.Error(err)
	}
	if !strings.Contains(l.text(), fmt.Sprintf("m: user code runs in %d", spare)) {
		t.Errorf("what a taken process prints is not under the model's name: %s", l.text())
	}
	if again := settled(t, b); len(again) != 1 || again[0] == spare {
		t.Errorf("spare processes %v after one was taken", again)
	}
}

// A process that waits is for the environment that it was started with, for models that use what it has imported, and
// for those beside which nothing of that name lies.
func TestSpareFits(t *testing.T) {
	b, l, _ := withHeavy(t, 1, nil)
	launchOf(t, b, l, 1)
	spare := settled(t, b)[0]
	if got := pidOf(t, launchOf(t, b, l, 2)); got == spare {
		t.Error("a process with the threads of another instance was taken")
	}
	launchOf(t, b, l, 1)
	spare = settled(t, b)[0]
	b.spares.mu.Lock()
	environment := b.spares.ready[0].kind.environment
	b.spares.mu.Unlock()
	plain := Model{Name: "plain", Source: source(t, scale)}
	own := Model{Name: "own", Source: source(t, user)}
	if err := os.WriteFile(filepath.Join(filepath.Dir(own.Source), "heavy.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Model{&plain, &own} {
		if x := b.spares.take(m, environment); x != nil {
			t.Errorf("model %q was given a process that has imported what it does not use", m.Name)
		}
	}
	next := Model{Name: "next version", Source: source(t, user)} // it names what it needs
	x := b.spares.take(&next, environment)
	if x == nil || x.pid != spare {
		t.Fatal("a new version was not given the process that waits")
	}
	x.discard()
}

// A spare process that dies is replaced; one whose framework cannot be imported any more leaves models as they are.
func TestSpareFails(t *testing.T) {
	b, l, imports := withHeavy(t, 1, nil)
	launchOf(t, b, l, 1)
	spare := settled(t, b)[0]
	if err := syscall.Kill(spare, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		now := settled(t, b)
		return len(now) == 1 && now[0] != spare
	})
	broken := "import os\nos._exit(7)\n"
	path := filepath.Join(filepath.Dir(imports), "heavy", "__init__.py")
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	in := launchOf(t, b, l, 1) // takes the one that waits
	until(t, func() bool { return strings.Contains(l.text(), "no spare process waits with heavy") })
	if err := in.Run(t.Context(), batchOf([]float32{1})); err != nil {
		t.Error(err)
	}
}

// A model is killed again and again while spare processes take its place. Nothing is left at the end.
func TestSparesLeaveNothing(t *testing.T) {
	first := holds(t)
	b, l, _ := withHeavy(t, 2, nil)
	in := launchOf(t, b, l, 1)
	for range 10 {
		if err := syscall.Kill(pidOf(t, in), syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
		until(t, func() bool { return in.Run(t.Context(), batchOf([]float32{1})) == nil })
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	b.Close()
	until(t, func() bool {
		now := holds(t)
		return now.files <= first.files && now.maps <= first.maps && now.workers <= first.workers
	})
}

// What a model names is read from its file, and its loader's.
func TestNamed(t *testing.T) {
	text := "import os, torch as t\nfrom  sklearn.ensemble import X\n  import numpy, xgboost\n# import pandas\n" +
		"import mine\n"
	if got := strings.Join(named(&Model{Source: source(t, text) + ":Model"}), " "); got != "torch sklearn xgboost" {
		t.Errorf("named %q", got)
	}
	dir := t.TempDir()
	for name, want := range map[string]string{
		"a.pt": "torch", "a.joblib": "joblib sklearn", "a.ubj": "xgboost", "folder": "torch transformers",
		"none.pt": "",
	} {
		path := filepath.Join(dir, name)
		switch name {
		case "folder":
			_ = os.Mkdir(path, 0o700)
		case "none.pt":
		default:
			_ = os.WriteFile(path, nil, 0o600)
		}
		if got := strings.Join(named(&Model{Source: path}), " "); got != want {
			t.Errorf("%s names %q, want %q", name, got, want)
		}
	}
}
