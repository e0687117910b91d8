package kairos

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// liveAtOnce is how many pools are measured at the same time, each in a data plane of its own. One takes minutes of
// real time, and workers that sleep leave the processor to the others.
const liveAtOnce = 4

var livePrecision = precision{queries: 2000, runs: 2, resolution: 0.04, rough: true}

// searchResult is the result of Algorithm 1: the pools it evaluated, and the index of the best among them.
type searchResult struct {
	evaluated []experiment.EvaluatedPool
	best      int
}

// found returns the best pool.
func (s *searchResult) found() experiment.EvaluatedPool { return s.evaluated[s.best] }

// figure11Live runs Algorithm 1 with pools evaluated on the data plane (§5.2: "online evaluation") and in the
// simulator, and compares the throughputs of pools in both.
func figure11Live(run *runner, f *reproduce.Sheet) error {
	tr := trial{setup: paperSetup("rm2"), system: kairosRule, arrivals: wholeMillis}
	s, err := run.deployment(tr.setup)
	if err != nil {
		return err
	}
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return err
	}
	got := reproduce.Add(run.Runner, "search on the data plane", 0, 1,
		func(ctx context.Context, seed uint64) (*liveSearch, error) {
			return run.searchLive(ctx, s, tr, ranked, seed)
		})
	at := f.At("model", tr.model, "rule", kairosRule, "arrivals", tr.arrivals)
	add := func(name string, of func(*liveSearch) *searchResult) {
		number := func(n func(*searchResult) float64) reproduce.Values {
			return got.Each(func(x *liveSearch) float64 { return n(of(x)) })
		}
		addMachines(at, name, func() []pool { return []pool{pool(of(got.First()).found().Pool)} })
		at.Row(name, throughputRow, "queries/s", number(func(x *searchResult) float64 { return x.found().Rate }))
		at.Row(name, "evaluated", "% of the pools", number(func(x *searchResult) float64 {
			return 100 * float64(len(x.evaluated)) / float64(len(ranked))
		}))
		at.Row(name, "evaluated", "pools", number(func(x *searchResult) float64 { return float64(len(x.evaluated)) }))
	}
	add("kairos+, live", func(x *liveSearch) *searchResult { return &x.live })
	add("kairos+, simulated", func(x *liveSearch) *searchResult { return &x.simulated })
	for i, r := range ranked[:liveAtOnce] {
		at := f.At("model", tr.model, "rule", kairosRule, "arrivals", tr.arrivals, "pool", pool(r.Pool))
		at.Row(kairosRule, "bound", "queries/s", reproduce.Const(r.Bound))
		at.Row(kairosRule, "throughput, live", "queries/s",
			got.Each(func(x *liveSearch) float64 { return x.liveTop[i].Rate }))
		at.Row(kairosRule, "throughput, simulated", "queries/s",
			got.Each(func(x *liveSearch) float64 { return x.simulatedTop[i].Rate }))
	}
	return nil
}

// liveSearch is the result of the searches on the data plane and in the simulator.
type liveSearch struct {
	simulated, live searchResult
	// throughput of the liveAtOnce pools with the highest bounds, live and simulated
	liveTop, simulatedTop []experiment.Throughput
}

// searchLive searches the best of ranked in the simulator and on the data plane.
func (run *runner) searchLive(ctx context.Context, s *deployment, tr trial, ranked []planner.Ranked,
	seed uint64) (*liveSearch, error) {
	evaluateBy := func(probe func(trial, precision, float64) (experiment.Probe, error)) experiment.Evaluate {
		return func(ctx context.Context, p planner.Pool, start float64) (experiment.Throughput, error) {
			on := tr
			on.pool = pool(p)
			x, err := probe(on, livePrecision, giveUpShare)
			if err != nil {
				return experiment.Throughput{}, err
			}
			return experiment.FindThroughput(ctx, x, livePrecision.search(start, seed))
		}
	}
	out := &liveSearch{}
	var err error
	simulate := evaluateBy(s.probe)
	out.simulated.evaluated, out.simulated.best, err = experiment.BestPool(ctx, ranked, simulate, func(float64) {})
	if err != nil {
		return nil, err
	}
	ahead, end := context.WithCancel(ctx)
	defer end()
	live := experiment.EvaluateAhead(ahead, ranked, evaluateBy(s.liveProbe), liveAtOnce)
	out.live.evaluated, out.live.best, err = experiment.BestPool(ctx, ranked, live, func(share float64) {
		if run.Progress != nil {
			run.Progress(share, "searching on the data plane")
		}
	})
	if err != nil {
		return nil, err
	}
	if min(out.live.best, out.simulated.best) < 0 {
		return nil, fmt.Errorf("no pool for %v $/h carries anything", budget)
	}
	for _, r := range ranked[:liveAtOnce] {
		a, err := live(ctx, r.Pool, experiment.StartRate(r.Bound))
		if err != nil {
			return nil, err
		}
		b, err := simulate(ctx, r.Pool, experiment.StartRate(r.Bound))
		if err != nil {
			return nil, err
		}
		out.liveTop, out.simulatedTop = append(out.liveTop, a), append(out.simulatedTop, b)
	}
	return out, nil
}
