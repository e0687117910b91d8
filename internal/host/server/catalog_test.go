package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// comers is a server whose models come and go at random while clients ask for whatever there is.
type comers struct {
	t      *testing.T
	s      *Server
	rng    *rand.Rand
	models string // folder of the repository; "" where there is none
	sums   []string
	python []bool // by sum
	log    kept
}

// patience is how long somebody waits for a change.
const patience = 3 * time.Second

const comersWorld = `
version: 1
store: data
device_types: [{name: local, cores: 2}]
workers: [%s]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
system: {name: %s}
`

// summing is a model in Python.
const summing = `
class Summing:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1,2]"}
    def infer(self, inputs):
        return {"y": inputs["x"] + %d}
`

// addingModel writes a model that adds a number to its input.
func addingModel(t *testing.T, path string, number float32) {
	t.Helper()
	if err := addModel(path, number); err != nil {
		t.Fatal(err)
	}
}

// addModel is addingModel without a test.
func addModel(path string, number float32) error {
	g := onnxmodel.NewGraph("adding").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Initializer("number", []float32{number}, 1).Node("Add", []string{"x", "number"}, []string{"y"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return g.Write(path)
}

// newComers starts a server of a system. With python it has a worker for models in Python, else a repository under
// explicit control. It returns nil where the system cannot be used so.
func newComers(t *testing.T, system string, python bool, rng *rand.Rand) *comers {
	c := &comers{t: t, rng: rng}
	workers := "{name: here}"
	if python {
		workers += ", {name: py, backend: {kind: python}}"
	}
	text := fmt.Sprintf(comersWorld, workers, system)
	if !python {
		text += "models: {repository: models, control: explicit}\n"
	}
	path := hosttest.Write(t, text)
	dir := filepath.Dir(path)
	if !python {
		c.models = filepath.Join(dir, "models")
		for k := range 3 {
			addingModel(t, filepath.Join(c.models, fmt.Sprint("m", k), "1", "model.onnx"), float32(k))
		}
	}
	o, err := host.Open(path, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Begin(t.Context())
	if err == nil {
		c.s, err = New(t.Context(), p, Options{Log: slog.New(slog.NewTextHandler(&c.log, nil))})
	}
	if fault.Of(err) == fault.Config || fault.Of(err) == fault.Missing {
		t.Logf("%s: %v", system, err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		file := filepath.Join(dir, fmt.Sprint("f", k, ".onnx"))
		if addingModel(t, file, float32(10+k)); python && k > 0 {
			file = filepath.Join(dir, fmt.Sprint("f", k, ".py"))
			if err := os.WriteFile(file, fmt.Appendf(nil, summing, k), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		c.sums, c.python = append(c.sums, hex.EncodeToString(sum[:])), append(c.python, python && k > 0)
		if err := c.s.functions.manager.PutModel(c.sums[k], bytes.NewReader(b), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// change has a model or a function come, go, or be replaced. It may be refused; that is said, and counts for nothing.
func (c *comers) change() string {
	n, m := c.rng.IntN(3), c.s.functions.manager
	model, function := fmt.Sprint("m", n), fmt.Sprint("f", n)
	// Some systems place nothing on a machine that is taken. Whoever waits for that gives up.
	limit, done := context.WithTimeout(c.t.Context(), patience)
	defer done()
	pick := c.rng.IntN(8)
	if c.models == "" {
		pick = 4 + pick%4
	}
	switch pick {
	case 0, 1:
		return fmt.Sprint("load ", model, ": ", c.s.service.Load(limit, model, server.Loading{}))
	case 2: // another file of the same name
		addingModel(c.t, filepath.Join(c.models, model, fmt.Sprint(1+c.rng.IntN(3)), "model.onnx"), c.rng.Float32())
		return fmt.Sprint("replace ", model, ": ", c.s.service.Load(limit, model, server.Loading{}))
	case 3:
		x, ok := c.s.service.Lookup(model)
		if !ok {
			return "unload: none"
		}
		return fmt.Sprint("unload ", model, ": ", c.s.service.Unload(limit, x, true))
	case 7:
		return fmt.Sprint("delete ", function, ": ", m.Delete(limit, function))
	}
	k := c.rng.IntN(len(c.sums))
	return fmt.Sprint("deploy ", function, ": ", m.Deploy(limit, function, &functions.Deployment{
		Model: c.sums[k], Python: c.python[k], LatencyMS: 1000, Percentile: 99, MaxBatch: 2,
	}))
}

// ask sends queries to whatever is served until stop is closed. Answers do not matter.
func (c *comers) ask(rng *rand.Rand, stop <-chan struct{}) {
	infer := c.s.service.Chain(server.Links{})
	x := tensor.Tensor{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(3000)) * time.Microsecond):
		}
		all := c.s.service.Models()
		if len(all) == 0 {
			continue
		}
		m := all[rng.IntN(len(all))]
		r := &dataplane.Request{
			App: m.App, Items: 1, Variant: serving.None, Timeout: time.Second, Inputs: []tensor.Tensor{x},
		}
		if rng.IntN(4) == 0 { // a reason to plan
			r.Stream, r.Begins, r.Rate = fmt.Sprint(rng.IntN(50)), true, 1+10*rng.Float64()
		}
		_, _ = infer(c.t.Context(), r)
	}
}

// check fails the test where something panicked, or the engine's invariants do not hold.
func (c *comers) check(name string, done []string) {
	c.s.plane.Inspect(func(e *engine.Engine) {
		if err := e.Check(); err != nil {
			c.t.Errorf("%s: %v, after\n%s", name, err, strings.Join(done, "\n"))
		}
	})
	if text := c.log.String(); strings.Contains(text, "panic") {
		at := strings.Index(text, "panic")
		c.t.Errorf("%s: %.3000s, after\n%s", name, text[max(0, at-200):], strings.Join(done, "\n"))
	}
}

// Models of a repository are loaded, replaced and unloaded, functions and models in Python deployed, replaced and
// deleted, at random and under traffic, with every system that plans. Nothing panics, and the engine stays whole.
func TestModelsComeAndGoAtRandomUnderTraffic(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	class := filepath.Join(t.TempDir(), "summing.py")
	if err := os.WriteFile(class, fmt.Appendf(nil, summing, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, noPython := machines.DescribePython(t.Context(), class, func(string) {})
	seed := longtest.Of(uint64(33), uint64(time.Now().UnixNano()))
	names := systems.Names()
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	most, changes := longtest.Of(3, len(names)), longtest.Of(8, 60)
	t.Logf("seed %d, models in Python: %v", seed, noPython == nil)
	tried := 0
	for at := 0; at < len(names) && tried < most; at++ {
		system, err := systems.Get(names[at])
		if err != nil {
			t.Fatal(err)
		}
		if system.Planner == "static" {
			continue // it plans nothing anew
		}
		c := newComers(t, names[at], tried%2 == 1 && noPython == nil, rng)
		if c == nil || c.s.planned.PlannerInUse().Provides()&(plan.Tables|plan.Values) != 0 {
			if c != nil {
				_ = c.s.Close() // solving decision processes takes too long
			}
			continue
		}
		tried++
		c.run(names[at], changes)
	}
	if tried == 0 {
		t.Error("no system serves such a world")
	}
}

// run makes changes under traffic, and closes the server.
func (c *comers) run(name string, changes int) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		own := rand.New(rand.NewPCG(c.rng.Uint64(), 2))
		all.Go(func() { c.ask(own, stop) })
	}
	var done []string
	for range changes {
		done = append(done, fmt.Sprintf("%.200s", c.change()))
	}
	close(stop)
	all.Wait()
	c.check(name, done)
	if err := c.s.Close(); err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
	c.t.Logf("%s:\n%s", name, strings.Join(done, "\n"))
}

// A model that is loaded already is loaded again at once where instances start with the first query: no query may ever
// come, and no other model could be changed meanwhile.
func TestLoadingAgainWaitsForNoQuery(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	c := newComers(t, "infless", false, rand.New(rand.NewPCG(1, 1)))
	limit, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for range 2 {
		if err := c.s.service.Load(limit, "m0", server.Loading{}); err != nil {
			t.Error(err)
		}
	}
	if err := c.s.Close(); err != nil {
		t.Error(err)
	}
}
