package systems

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
)

// RAMSIS (EuroSys 2024): every worker has all variants; policies made in advance choose among them by the state of the
// worker's queue, the one for the present load being in force.
var ramsisSystems = []System{
	{
		Name: "ramsis", Doc: "variant and batch by tables that know how arrivals behave, round robin to the workers",
		Source: "RAMSIS §3-§5", Planner: "ramsis", Router: "roundrobin", Batcher: "policytable", Scaler: "uncovered",
	},
	{
		Name: "ramsis-shortestqueue", Doc: "the same with the shortest queue in the place of round robin",
		Source: "RAMSIS App. I", Planner: "ramsis", Router: "shortestqueue", Batcher: "policytable",
		Scaler:  "uncovered",
		Options: Options{Policies: Policies{Balance: route.NewShortestQueue().Name()}},
	},
	{
		Name: "ramsis-variable", Doc: "the same with batches that may leave queries behind",
		Source: "RAMSIS §4.3.2", Planner: "ramsis", Router: "roundrobin", Batcher: "policytable", Scaler: "uncovered",
		Options: Options{Policies: Policies{Variable: true}},
	},
}

// Policies tunes the planners that make policies in advance.
type Policies struct {
	Levels   int     // of slack; 0 means the planner's own, negative one for every latency
	Longest  int     // queue that is told apart; 0 means the planner's own
	Variable bool    // batches may leave queries behind
	Balance  string  // roundrobin (default) or shortestqueue: what the router does
	Shape    float64 // of gamma gaps between arrivals; 0 means Poisson
	Step     float64 // accuracy by which neighbouring policies may differ; 0 means the planner's own
	Alone    bool    // one policy, for the demand that is asked for
	// ascending, in queries/s, separated by commas: the rates to make policies for; "" leaves it to the planner
	Rates string
}

func newRamsis(w World, o Options) (plan.Planner, error) {
	p := &o.Policies
	rates, err := p.rates()
	if err != nil {
		return nil, err
	}
	out := &ramsis.Planner{Profile: w.Profile, Store: w.Policies, OnMade: w.Made, Options: ramsis.Options{
		Levels: p.Levels, MaxQueue: p.Longest, Variable: p.Variable, Shape: p.Shape, Step: p.Step, Rates: rates,
		SingleRate: p.Alone,
	}}
	switch p.Balance {
	case "", "roundrobin":
	case "shortestqueue":
		out.Options.Balance = ramsis.ShortestQueue
	default:
		return nil, fmt.Errorf("balance is %q: the planner knows roundrobin and shortestqueue", p.Balance)
	}
	return out, nil
}

// rates are those to make policies for; nil leaves them to the planner.
func (p *Policies) rates() ([]float64, error) {
	if p.Rates == "" {
		return nil, nil
	}
	var out []float64
	for _, text := range strings.Split(p.Rates, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) || len(out) > 0 && x <= out[len(out)-1] {
			return nil, fmt.Errorf("rates are %q, want numbers of queries/s, ascending, separated by commas", p.Rates)
		}
		out = append(out, x)
	}
	return out, nil
}
