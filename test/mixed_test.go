package test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// turned is by how many columns the models of this test turn the rows they are given: whatever a machine has to do for
// it, the answer can be checked to the last bit.
const turned = 8

// turning writes a model that turns rows by one column so many times, and before that multiplies matrices for every
// query, however many rows it brings. Products with permutations are exact.
func turning(t *testing.T, path string, times, before int) {
	t.Helper()
	const wide = 512 // of the matrices for every query
	permutation := func(n int) []float32 {
		out := make([]float32, n*n)
		for i := range n {
			out[i*n+(i+1)%n] = 1
		}
		return out
	}
	g := onnxmodel.NewGraph("turning").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, width).Output("y",
		onnxmodel.Float32, onnxmodel.Symbolic, width).
		Initializer("turn", permutation(width), width, width)
	from := "x"
	if before > 0 {
		// A zero that depends on the query makes the matrices depend on it, and the rows on them.
		g.Initializer("nought", []float32{0}, 1).Initializer("wide", permutation(wide), wide, wide).
			Node("ReduceMax", []string{"x"}, []string{"top"}, onnxmodel.AttrInt("keepdims", 0)).
			Node("Mul", []string{"top", "nought"}, []string{"zero"}).
			Node("Add", []string{"wide", "zero"}, []string{"m0"})
		for k := range before {
			g.Node("MatMul", []string{fmt.Sprintf("m%d", k), "wide"}, []string{fmt.Sprintf("m%d", k+1)})
		}
		g.Node("ReduceMax", []string{fmt.Sprintf("m%d", before)}, []string{"one"}, onnxmodel.AttrInt("keepdims", 0)).
			Node("Mul", []string{"x", "one"}, []string{"h"})
		from = "h"
	}
	for k := range times {
		to := fmt.Sprintf("h%d", k)
		if k == times-1 {
			to = "y"
		}
		g.Node("MatMul", []string{from, "turn"}, []string{to})
		from = to
	}
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
}

// The mixed machines of this test: two that answer any query soon, and two that are far cheaper, reached over the
// network, which answer only small queries in time.
const (
	quick, cheap = 0, 1    // device types
	small        = 8       // rows of a query that cheap machines have time for, at most
	large        = 192     // of one that they have no time for, at least
	largest      = 256     // of any
	mixedBudget  = 0.7     // $/h: less than all four cost
	mixedSpan    = "200ms" // the objective
)

// mixed writes the configurations of a server over mixed machines and of the remote one that is its cheap machines. It
// returns the server's file, and starts the remote one.
func mixed(t *testing.T, dir string) string {
	t.Helper()
	turning(t, filepath.Join(dir, "models", "ranking", "1", "model.onnx"), turned, 1)
	// Twelve times round is the same answer for far more work.
	turning(t, filepath.Join(dir, "remote", "models", "ranking", "1", "model.onnx"), turned+12*width, 0)
	remote := write(t, filepath.Join(dir, "remote"), "sluice.yaml", `
version: 1
device_types: [{name: core, cores: 1}]
workers: [{name: w, count: 2}]
models: {repository: models}
system: {router: fcfs, batcher: single, late: serve-late, options: {learn: true}}
apps: [{name: ranking, slo: {latency: 60s}, variants: [{name: ranking, max_batch: %d}]}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "off"}
`, largest)
	far := serve(t, "-f", remote)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types:
  - {name: quick, price_per_hour: 0.3, cores: 1}
  - {name: cheap, price_per_hour: 0.08, cores: 1}
workers:
  - {name: local, device_type: quick, count: 2}
  - {name: remote, device_type: cheap, count: 2, backend: {kind: openinference, addresses: [%[1]q, %[1]q]}}
models: {repository: models}
system: {name: kairos, budget: %[2]v, late: serve-late, replan: 1s}
apps:
  - name: ranking
    slo: {latency: %[3]s}
    items:
      distribution: mixture
      weights: [4, 1]
      parts: [{distribution: uniform, min: 1, max: %[4]d}, {distribution: uniform, min: %[5]d, max: %[6]d}]
    variants: [{name: ranking, max_batch: %[6]d}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0"}
`, far.grpc, mixedBudget, mixedSpan, small, large, largest)
	until(t, func() bool { return get(far.url()+"/v2/health/ready") == 200 })
	return file
}

// asking sends queries of both sizes to a server, one after another is due, and checks every answer.
type asking struct {
	t      *testing.T
	client loadgen.Target
	random *rand.Rand
	wait   sync.WaitGroup
	sent   int
}

// ask sends the next query without waiting for its answer.
func (a *asking) ask() {
	if a.random.IntN(5) == 0 {
		a.bring(large + a.random.IntN(largest-large+1))
		return
	}
	a.bring(1 + a.random.IntN(small))
}

// bring sends a query of so many rows.
func (a *asking) bring(rows int) {
	x := make([]float32, rows*width)
	data := make([]byte, 0, 4*len(x))
	for i := range x {
		x[i] = float32(a.random.IntN(2001)-1000) / 8
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x[i]))
	}
	a.sent++
	a.wait.Go(func() {
		answer, err := a.client.Infer(a.t.Context(), &loadgen.Request{
			Model: "ranking", Inputs: []tensor.Tensor{
				{Name: "x", DType: tensor.FP32, Shape: []int64{int64(rows), width}, Data: data},
			},
		})
		if err != nil {
			a.t.Errorf("%d rows: %v", rows, err)
			return
		}
		if len(answer.Outputs) != 1 || len(answer.Outputs[0].Data) != len(data) {
			a.t.Errorf("%d rows: answered with %v", rows, answer.Outputs)
			return
		}
		for i := range x {
			at := i/width*width + (i%width+turned)%width
			if got := math.Float32frombits(binary.LittleEndian.Uint32(answer.Outputs[0].Data[4*at:])); got != x[i] {
				a.t.Errorf("%d rows: element %d is %v, want %v", rows, at, got, x[i])
				return
			}
		}
	})
}

// while sends about 15 queries/s until something has come to pass.
func (a *asking) while(f func() bool) {
	a.t.Helper()
	begun, asked := time.Now(), 0
	until(a.t, func() bool {
		for ; asked < int(15*time.Since(begun).Seconds()); asked++ {
			a.ask()
		}
		return f()
	})
}

// count sends so many more.
func (a *asking) count(n int) {
	a.t.Helper()
	from := a.sent
	a.while(func() bool { return a.sent-from >= n })
}

var launched, stopped = regexp.MustCompile(`launch-instance i(\d+) worker (\d+)\.`),
	regexp.MustCompile(`stop-instance i(\d+) `)

// pool is how many quick and cheap machines there are of each.
type pool [2]int

// device is what a worker is: the configuration has the quick ones first.
func device(worker int) int {
	if worker < 2 {
		return quick
	}
	return cheap
}

// runs reads which machines a server runs from the decisions it lists.
func runs(t *testing.T, admin string) (out pool) {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/debug/decisions?limit=100000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	workers := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if m := launched.FindStringSubmatch(line); m != nil {
			workers[m[1]], _ = strconv.Atoi(m[2])
		} else if m := stopped.FindStringSubmatch(line); m != nil {
			delete(workers, m[1])
		}
	}
	for _, w := range workers {
		out[device(w)]++
	}
	return out
}
