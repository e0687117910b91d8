package kairos

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// lab is where figures say what they want.
type lab struct {
	*reproduce.Lab
	fine     grain
	large    grain  // of pools so large that runs are dear
	coarse   grain  // where whole spaces of pools are measured
	draws    uint64 // runs of a search that draws by chance, with every seed
	mu       sync.Mutex
	services map[setup]*service
	known    map[answer]*throughput
}

func newLab(r reproduce.Request) *lab {
	return &lab{
		Lab: reproduce.NewLab(r), draws: 3,
		fine:     grain{queries: 5000, runs: 8, resolution: 0.02},
		large:    grain{queries: 4000, runs: 6, resolution: 0.03},
		coarse:   grain{queries: 3000, runs: 2, resolution: 0.05, rough: true},
		services: make(map[setup]*service), known: make(map[answer]*throughput),
	}
}

// service returns a model in a setup, read once.
func (l *lab) service(s setup) (*service, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.services[s]; x != nil {
		return x, nil
	}
	x, err := newService(s)
	if err == nil {
		l.services[s] = x
	}
	return x, err
}

// question is what throughput is asked for: of a system on a pool under a load.
type question struct {
	setup
	pool     pool
	system   string
	arrivals arrivals
	// threshold of a rule that has one; 0 has it found.
	threshold int
}

func (q question) String() string {
	return fmt.Sprintf("%s of %s on %v, %v, sizes %v, QoS x %v, noise %v", q.system, q.model, q.pool, q.arrivals,
		q.sizes, q.qos, q.noise)
}

// grain is how exactly throughput is wanted.
type grain struct {
	queries    int // of a run
	runs       int // at one rate at most
	resolution float64
	rough      bool // without bounds
}

// answer identifies what is measured once.
type answer struct {
	question
	grain
	seed uint64
}

// throughput is measured once.
type throughput struct {
	once sync.Once
	experiment.Throughput
	err error
}

// measure finds allowable throughput. Figures that ask for the same share it.
func (l *lab) measure(ctx context.Context, q question, g grain, seed uint64) (experiment.Throughput, error) {
	at := answer{q, g, seed}
	l.mu.Lock()
	t := l.known[at]
	if t == nil {
		t = &throughput{}
		l.known[at] = t
	}
	l.mu.Unlock()
	t.once.Do(func() { t.Throughput, t.err = l.allowable(ctx, q, g, seed) })
	return t.Throughput, t.err
}

func (l *lab) allowable(ctx context.Context, q question, g grain, seed uint64) (experiment.Throughput, error) {
	s, err := l.service(q.setup)
	if err != nil {
		return experiment.Throughput{}, err
	}
	f, err := s.fluid()
	if err != nil {
		return experiment.Throughput{}, err
	}
	bound := f.Of(q.pool.of())
	if bound == 0 {
		return experiment.Throughput{}, nil
	}
	if tuned[q.system] != nil && q.threshold == 0 {
		return l.tune(ctx, s, q, g, seed)
	}
	p, err := s.probe(q, g, giveUp)
	if err != nil {
		return experiment.Throughput{}, err
	}
	// A fifth below the bound is where good systems end up; others are found from there.
	out, err := experiment.FindThroughput(ctx, p, g.allowing(0.8*bound, seed))
	if err != nil {
		err = fmt.Errorf("%v: %w", q, err)
	}
	return out, err
}

// allowing is the search from a rate.
func (g grain) allowing(start float64, seed uint64) experiment.ThroughputSearch {
	return experiment.ThroughputSearch{
		Limit: outside, Start: start, Resolution: g.resolution, Runs: g.runs, NoBounds: g.rough, Seed: seed * 1000,
	}
}

const (
	// outside is the share of the queries that may be outside QoS: it is a 99th percentile (§7).
	outside = 0.01
	// giveUp is the share beyond which a run ends: the rate is far too high.
	giveUp = 0.1
)

// probe runs a system on a pool at a rate. Runs end at a share of violations, or never where it is 0.
func (s *service) probe(q question, g grain, giveUp float64) (experiment.Probe, error) {
	at, err := s.cases(q)
	if err != nil {
		return nil, err
	}
	return experiment.ViolationProbe(at, g.queries, giveUp), nil
}

// cases are a system on a pool under rates in queries/s.
func (s *service) cases(q question) (func(rate float64) *experiment.Case, error) {
	w, initial, err := s.world(q.pool)
	if err != nil {
		return nil, err
	}
	drawn, err := workload.FromMix(s.spec.Apps[0].Mix)
	if err != nil {
		return nil, err
	}
	system, err := systems.Get(q.system)
	if err != nil {
		return nil, err
	}
	system.Planner, system.Scaler = "static", "fixed" // the pool is given
	if set := tuned[q.system]; set != nil {
		set(&system.Options, q.threshold)
	}
	return func(rate float64) *experiment.Case {
		return &experiment.Case{Env: w, System: system, Initial: initial, Source: func(seed uint64) workload.Source {
			return q.arrivals.source(rate, drawn, seed)
		}}
	}, nil
}

// measured are throughputs of all seeds, when all is run.
type measured struct{ *reproduce.Task }

// want has throughput measured with every seed.
func (l *lab) want(q question, g grain) measured {
	return measured{l.Do(fmt.Sprintf("%v, %d x %d queries", q, g.runs, g.queries), g.queries*g.runs, l.Seeds,
		func(ctx context.Context, seed uint64) (any, error) {
			return l.measure(ctx, q, g, seed)
		})}
}

// allowed is what was measured, by seed.
func (m measured) allowed() []experiment.Throughput {
	out := make([]experiment.Throughput, len(m.Done))
	for i := range out {
		out[i] = m.Done[i].(experiment.Throughput)
	}
	return out
}

// rates are the estimates, in queries/s.
func (m measured) rates() []float64 {
	out := make([]float64, len(m.Done))
	for i, a := range m.allowed() {
		out[i] = a.Rate
	}
	return out
}

// at is a model as the paper has it, on a pool.
func at(model string) setup { return setup{model: model, qos: 1} }

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "kairos", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// said gives a row what was published.
func said(r reproduce.Row, value float64, source string) reproduce.Row {
	r.Published, r.Source = reproduce.Published(value), source
	return r
}

// over divides seed by seed.
func over(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// times multiplies with a number.
func times(a []float64, by float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = by * a[i]
	}
	return out
}
