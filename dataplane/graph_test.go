package dataplane_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// expected is the inputs and outputs of every stage for one query of a random graph. They are worked out stage by
// stage, without batches and without parts.
type expected struct {
	items  int
	stages []expectedStage
	answer map[string][]uint64
}

type expectedStage struct {
	items int
	in    map[string]rowsOf
	v     []uint64 // given for every item
	r     []uint64 // found in them
	found []int    // rows of r of every item
}

// rowsOf is an input of a stage. byItem tells whether a part gets the rows of its items alone.
type rowsOf struct {
	rows   []uint64
	byItem bool
}

// randomGraph is a random graph and what is expected of it by query. Stage 3 gives tensor v3 with a row for each item,
// and r3 where the items of a next stage are its rows; u3, which no stage takes, where its tensors are known.
type randomGraph struct {
	cluster *simtest.Cluster
	wiring  []pipeline.Wiring
	known   bool
	queries []expected

	mu   sync.Mutex
	bad  error
	left int // outputs that were not wanted
}

func values(name string, rows []uint64) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.Uint64, Shape: []int64{int64(len(rows))}}
	for _, x := range rows {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, x)
	}
	return t
}

func numbers(t *tensor.Tensor) []uint64 {
	out := make([]uint64, 0, len(t.Data)/8)
	for at := 0; at < len(t.Data); at += 8 {
		out = append(out, binary.LittleEndian.Uint64(t.Data[at:]))
	}
	return out
}

func name(kind string, s int) string { return fmt.Sprint(kind, s) }

func newRandomGraph(seed uint64, queries int) *randomGraph {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := &randomGraph{known: rng.IntN(2) == 0}
	stages := make([]serving.Stage, 2+rng.IntN(5))
	for s := range stages {
		stages[s].Name = name("s", s)
		if s == 0 {
			continue
		}
		from := []int{rng.IntN(s)}
		if other := rng.IntN(s); other != from[0] {
			from = append(from, other)
		}
		for _, f := range from {
			e := serving.Edge{To: serving.StageID(s), FanOut: 1}
			if rng.IntN(2) == 0 {
				e.FanOut, e.Rows = 2, name("r", f)
			}
			stages[f].Next = append(stages[f].Next, e)
		}
	}
	p.cluster = simtest.Staged(stages, 1+rng.IntN(2), time.Microsecond, time.Microsecond, time.Minute, 1+rng.IntN(8))
	p.wiring = make([]pipeline.Wiring, len(stages))
	for range queries {
		q, clear := p.draw(rng)
		for !clear {
			q, clear = p.draw(rng)
		}
		p.queries = append(p.queries, q)
	}
	return p
}

// draw draws a query and works out what is expected. clear is false where a tensor has as many rows as a stage has
// items by chance: then the runtime cannot tell from the rows which of both it was given.
func (p *randomGraph) draw(rng *rand.Rand) (q expected, clear bool) {
	stages := p.cluster.Spec.Stages
	clear = true
	q = expected{
		items: 1 + rng.IntN(min(4, p.cluster.Spec.Variants[0].MaxBatch)), stages: make([]expectedStage, len(stages)),
		answer: map[string][]uint64{},
	}
	draw := func(n int) []uint64 {
		out := make([]uint64, n)
		for k := range out {
			out[k] = rng.Uint64()
		}
		return out
	}
	x, whole := draw(q.items), draw(3)
	plain := make([]bool, len(stages)) // its items may be the request's
	for s := range stages {
		here := &q.stages[s]
		here.in = map[string]rowsOf{}
		if s == 0 {
			here.items, plain[0] = q.items, true
			here.in["x"], here.in["whole"] = rowsOf{rows: x}, rowsOf{rows: whole}
		}
		for f := range s {
			from := &q.stages[f]
			for _, e := range stages[f].Next {
				if int(e.To) != s {
					continue
				}
				sent := from.items
				if e.Rows != "" {
					sent = len(from.r)
				}
				plain[s] = plain[s] || e.Rows == "" && plain[f]
				here.items = max(here.items, sent)
				if from.items == 0 && !p.known {
					continue // nobody knows what a stage that was passed over would have given
				}
				here.in[name("v", f)] = rowsOf{rows: from.v, byItem: e.Rows == ""}
				if sends(stages[f]) {
					here.in[name("r", f)] = rowsOf{rows: from.r, byItem: e.Rows != ""}
				}
			}
		}
		if p.known && s > 0 {
			here.in["whole"] = rowsOf{rows: whole}
		}
		for k, l := range here.in {
			if k == "whole" || k == "x" {
				l.byItem = plain[s] && here.items == q.items
			} else if len(l.rows) == here.items && !l.byItem && here.items > 0 {
				clear = false
			}
			l.byItem = l.byItem && len(l.rows) == here.items
			here.in[k] = l
		}
		here.v = draw(here.items)
		here.found = make([]int, here.items)
		if sends(stages[s]) {
			for k := range here.found {
				if here.items <= 17 {
					here.found[k] = []int{0, 1, 3, 17}[rng.IntN(4)]
				} else if rng.IntN(10) == 0 {
					here.found[k] = 1
				}
				here.r = append(here.r, draw(here.found[k])...)
			}
		}
		if p.wiring[s].Inputs == nil && p.known {
			w := &p.wiring[s]
			for k := range here.in {
				w.Inputs = append(w.Inputs, tensor.Spec{Name: k, DType: tensor.Uint64, Shape: []int64{-1}})
			}
			w.Outputs = []tensor.Spec{{Name: name("v", s), DType: tensor.Uint64, Shape: []int64{-1}},
				{Name: name("u", s), DType: tensor.Uint64, Shape: []int64{-1}}}
			if sends(stages[s]) {
				w.Outputs = append(w.Outputs, tensor.Spec{Name: name("r", s), DType: tensor.Uint64, Shape: []int64{-1}})
			}
		}
		if len(stages[s].Next) == 0 && (p.known || here.items > 0) {
			q.answer[name("v", s)] = here.v
		}
	}
	return q, clear
}

func sends(s serving.Stage) bool {
	return slices.ContainsFunc(s.Next, func(e serving.Edge) bool { return e.Rows != "" })
}

// Run checks the inputs of the parts of a batch, and gives the outputs that are expected.
func (p *randomGraph) Run(_ context.Context, b *dataplane.Batch) error {
	for k := range b.Portions {
		if err := p.runPart(int(b.Variant), &b.Portions[k]); err != nil {
			p.mu.Lock()
			p.bad = err
			p.mu.Unlock()
			return err
		}
	}
	return nil
}

func (p *randomGraph) runPart(s int, part *dataplane.Portion) error {
	here := &p.queries[part.Query-1].stages[s]
	handed := map[string][]uint64{}
	for k := range part.Inputs {
		handed[part.Inputs[k].Name] = numbers(&part.Inputs[k])
	}
	if len(handed) != len(here.in) || len(part.Inputs) != len(here.in) {
		return fmt.Errorf("query %d, stage %d: handed %d tensors, want %d", part.Query, s, len(part.Inputs),
			len(here.in))
	}
	offset := -1
	for k, l := range here.in {
		if l.byItem {
			if got := handed[k]; len(got) != part.Items {
				return fmt.Errorf("query %d, stage %d: %q has %d rows for %d of %d items", part.Query, s, k, len(got),
					part.Items, here.items)
			}
			offset = slices.Index(l.rows, handed[k][0])
		}
	}
	if offset < 0 {
		return fmt.Errorf("query %d, stage %d: nothing tells which items these are", part.Query, s)
	}
	for k, l := range here.in {
		want := l.rows
		if l.byItem {
			want = l.rows[offset : offset+part.Items]
		}
		if !slices.Equal(handed[k], want) {
			return fmt.Errorf("query %d, stage %d, items from %d: %q is not what was given", part.Query, s, offset, k)
		}
	}
	part.Outputs = []tensor.Tensor{values(name("v", s), here.v[offset:offset+part.Items])}
	if sends(p.cluster.Spec.Stages[s]) {
		from := 0
		for _, n := range here.found[:offset] {
			from += n
		}
		to := from
		for _, n := range here.found[offset : offset+part.Items] {
			to += n
		}
		part.Outputs = append(part.Outputs, values(name("r", s), here.r[from:to]))
	}
	if p.known {
		part.Outputs = append(part.Outputs, values(name("u", s), here.v[offset:offset+part.Items]))
	}
	if part.Wanted != nil && (int(part.Query)+offset)%2 == 0 { // others it gives all the same
		part.Outputs = slices.DeleteFunc(part.Outputs, func(t tensor.Tensor) bool {
			return !slices.Contains(part.Wanted, t.Name)
		})
		p.mu.Lock()
		p.left++
		p.mu.Unlock()
	}
	return nil
}

// In random graphs with joins, stages find 0, 1, 3 or 17 things in every item, and items run in batches with those of
// other queries. Every part gets exactly the rows of its items, and all other tensors whole. The answer is that of a
// run stage by stage. Some queries want one output of it; runners may leave out what nobody wants.
func TestRandomGraphs(t *testing.T) {
	left := 0
	seeds := uint64(60)
	if testing.Short() { // under the race detector
		seeds = 20
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		const queries = 40
		p := newRandomGraph(seed, queries)
		s, err := systems.Get("sluice")
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Engine(p.cluster.Spec, p.cluster.Profile, p.cluster.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		plane, err := dataplane.New(dataplane.Config{Spec: p.cluster.Spec, Engine: e, Initial: p.cluster.Plan,
			Wiring: p.wiring, Rows: 1 << 20,
			Backend: func(serving.WorkerID) dataplane.Backend { return &runtime{run: p.Run} }})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		type answer struct {
			response *dataplane.Response
			err      error
		}
		answers := make([]chan answer, queries)
		for k := range p.queries {
			q := &p.queries[k]
			answers[k] = make(chan answer, 1)
			var wanted []string
			if k%3 == 0 && len(q.answer) > 0 {
				wanted = []string{slices.Min(slices.Collect(maps.Keys(q.answer)))}
				q.answer = map[string][]uint64{wanted[0]: q.answer[wanted[0]]}
			}
			plane.Submit(&dataplane.Request{Items: q.items, Variant: serving.None, Outputs: wanted,
				Inputs: []tensor.Tensor{
					values("x", q.stages[0].in["x"].rows), values("whole", q.stages[0].in["whole"].rows),
				}},
				func(r *dataplane.Response, err error) { answers[k] <- answer{r, err} })
		}
		for k := range answers {
			a := <-answers[k]
			if a.err != nil {
				t.Errorf("seed %d, query %d: %v", seed, k+1, a.err)
				continue
			}
			got := map[string][]uint64{}
			named := k%3 == 0 && len(p.queries[k].answer) > 0
			for i := range a.response.Outputs {
				if named || strings.HasPrefix(a.response.Outputs[i].Name, "v") {
					got[a.response.Outputs[i].Name] = numbers(&a.response.Outputs[i])
				}
			}
			for n, want := range p.queries[k].answer {
				if !slices.Equal(got[n], want) {
					t.Errorf("seed %d, query %d: answer %q has %d rows, or others, want %d", seed, k+1, n, len(got[n]),
						len(want))
				}
			}
			if len(got) != len(p.queries[k].answer) {
				t.Errorf("seed %d, query %d: the answer has %d tensors, want %d", seed, k+1, len(got),
					len(p.queries[k].answer))
			}
		}
		plane.Close()
		if p.bad != nil {
			t.Fatalf("seed %d: %v", seed, p.bad)
		}
		left += p.left
	}
	if left < 500 {
		t.Errorf("%d outputs that nobody wants were left out: too few to tell", left)
	}
}
