package proteus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// sizes of the problem: the paper's own, the largest that it solves within 60 s, one at a time and together, and a
// larger one.
var sizes = []problemSize{
	{"the paper's cluster", 1, 46, 9},
	{"160 devices", 4, 46, 9},
	{"450 variants", 1, 450, 9},
	{"17 query types", 1, 46 * 17 / 9, 17},
	{"160 devices, 450 variants, 17 types", 4, 450, 17},
	{"2000 devices", 50, 46, 9},
}

type problemSize struct {
	what                   string
	scale, variants, types int // multiple of 40 devices; number of variants; number of query types
}

// demands is the number of demands for each size, evenly up to the reach of the fleet.
const demands = 4

// solveStats describes planning at one size, by demand.
type solveStats struct {
	columns, rows int
	nodes, gaps   []float64
}

// figure10 measures the effort of planning by size (§6.8). Seconds depend on the machine, so rows have numbers that do
// not: nodes of the search, size of the program and gap reached, over demands. BenchmarkPlan measures the time.
func figure10(run *runner, f *reproduce.Sheet) error {
	for _, x := range run.sizes {
		s := reproduce.Add(run.Runner, "planning for "+x.what, 400_000*x.types/9, 1,
			func(ctx context.Context, _ uint64) (*solveStats, error) { return run.solve(ctx, x) })
		at := f.At("size", x.what, "devices", 40*x.scale, "variants", x.variants, "query types", x.types)
		at.Row("proteus", "columns", "", s.Each(func(s *solveStats) float64 { return float64(s.columns) }))
		at.Row("proteus", "rows", "", s.Each(func(s *solveStats) float64 { return float64(s.rows) }))
		at.Row("proteus", "nodes of the search", "", func() []float64 { return s.First().nodes }).OneSeed()
		at.Row("proteus", "gap", "%", func() []float64 { return s.First().gaps }).OneSeed()
	}
	f.Note("Figure 10 counts nodes, since seconds would differ from run to run: make bench prints them. The paper's " +
		"solver needs 4.2 s on average, and less than 60 s up to 160 devices, 450 variants or 17 query " +
		"types, at a gap of 50 % in the authors' release.")
	return nil
}

// solve plans for several demands up to the reach of the fleet.
func (run *runner) solve(ctx context.Context, x problemSize) (*solveStats, error) {
	types := x.types
	spec, m, err := readProfile(x.scale)
	if err != nil {
		return nil, err
	}
	enlarge(spec, &m, x.variants, types)
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	believed, err := profile.NewTable(spec, m, profile.P50)
	if err != nil {
		return nil, err
	}
	count := &countingSolver{Solver: run.Solver}
	mix := make([]float64, types)
	for a := range mix {
		mix[a] = 1 / float64(a+1) // Zipf over query types, as in the paper (§6.1.3)
	}
	p := &proteus.Planner{
		Profile: believed, Solver: count, Options: proteus.Options{Batches: batches, Goal: proteus.Throughput},
	}
	most, err := p.Plan(ctx, plan.Request{Spec: spec, Rates: mix})
	if err != nil {
		return nil, err
	}
	multiple := most.Capacity[0] / mix[0]
	for a := range mix {
		multiple = min(multiple, most.Capacity[a]/mix[a])
	}
	p.Options.Goal = proteus.Accuracy
	out := &solveStats{}
	for n := range demands {
		rates := make([]float64, types)
		for a := range rates {
			rates[a] = mix[a] * multiple * float64(n+1) / demands / 1.05
		}
		before := count.nodes
		made, err := p.Plan(ctx, plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			return nil, fmt.Errorf("%s at %d %%: %w", x.what, 100*(n+1)/demands, err)
		}
		out.nodes, out.gaps = append(out.nodes, float64(count.nodes-before)), append(out.gaps, 100*made.Gap)
	}
	out.columns, out.rows = count.size[0], count.size[1]
	return out, nil
}

// countingSolver counts the nodes of branch and bound: the only measure of a solver's work that is the same on every
// machine.
type countingSolver struct {
	milp.Solver
	mu    sync.Mutex
	nodes int64
	size  [2]int // columns and rows of the last program
}

func (c *countingSolver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	s, err := c.Solver.Solve(ctx, p, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = [2]int{len(p.Columns), len(p.Rows)}
	if s != nil {
		c.nodes += s.Nodes
	}
	return s, err
}

// enlarge adds query types and variants. A new variant resembles one of its family: a little faster and less accurate,
// or slower and more accurate.
func enlarge(spec *serving.Spec, m *serving.Measurements, variants, types int) {
	r := workload.Rand(1, "enlarge")
	families := len(spec.Apps)
	for a := families; a < types; a++ {
		like := spec.Apps[a%families]
		s := serving.StageID(len(spec.Stages))
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: fmt.Sprintf("%s-%d", like.Name, a), App: serving.AppID(a),
		})
		like.Name, like.Stages = spec.Stages[s].Name, []serving.StageID{s}
		spec.Apps = append(spec.Apps, like)
		// Every query type gets variants of its own, so that none is without.
		for _, v := range spec.Stages[a%families].Variants {
			if len(spec.Stages[s].Variants) == 0 || len(spec.Variants) < variants {
				addVariantLike(spec, m, v, s, r)
			}
		}
	}
	for n := 0; len(spec.Variants) < variants; n++ {
		s := serving.StageID(n % types)
		of := spec.Stages[s].Variants
		addVariantLike(spec, m, of[r.IntN(len(of))], s, r)
	}
}

// addVariantLike adds a variant to stage s that resembles v, with random latency and accuracy near v's.
func addVariantLike(spec *serving.Spec, m *serving.Measurements, v serving.VariantID, s serving.StageID, r *rand.Rand) {
	x := spec.Variants[v]
	factor := 0.7 + 0.6*r.Float64()
	id := serving.VariantID(len(spec.Variants))
	x.Name, x.Stage = fmt.Sprintf("%s-%d", x.Name, id), s
	x.Accuracy = min(1, max(0.1, x.Accuracy+0.03*(factor-1)))
	spec.Variants = append(spec.Variants, x)
	spec.Stages[s].Variants = append(spec.Stages[s].Variants, id)
	for _, p := range m.Latency {
		if p.Variant == v {
			p.Variant = id
			took := time.Duration(float64(p.Mean) * factor)
			p.Mean, p.P50, p.P90, p.P95, p.P99 = took, took, took, took, took
			m.Latency = append(m.Latency, p)
		}
	}
}
