package ramsis

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Options tune the planner. The zero value is what the paper evaluates (§6).
type Options struct {
	Levels   int     // of the fixed-length discretisation; 0 means 100, negative the model-based one
	MaxQueue int     // longest queue with choices of its own; 0 means 32
	Variable bool    // batches may leave queries behind
	Balance  Balance // of the router that the plan is for
	// Shape of gamma-distributed gaps between arrivals; 0 means Poisson.
	Shape float64
	// Reacts makes policies for the pattern of arrivals that is seen, in the place of Shape (§3.1.1): for gamma gaps as
	// uneven as the request says, to the next power of two.
	Reacts bool
	// Rates to make policies for, ascending, in queries/s. Nil spaces them such that neighbours differ by at most Step
	// in accuracy.
	Rates []float64
	Step  float64 // 0 means 0.01
	// SingleRate makes a policy for the demand of the request and no other: for a load that is known and constant.
	SingleRate bool
	// Unpromised makes policies without promises, for somebody who looks at runs only. It holds with SingleRate: other
	// sets are refined by promises.
	Unpromised bool
}

// Planner loads every useful variant on every worker and makes the policies for choosing among them. It keeps the
// policies it has made. It is not for concurrent use.
type Planner struct {
	Profile profile.Profile
	Options Options
	Store   Store                 // nil keeps nothing between runs
	OnMade  func(rate float64)    // called after each policy that was made rather than found; nil for none
	sets    map[string]*policySet // by Worker.Key at rate 1

	learned bool            // the request has beliefs of its own
	used    map[string]bool // by the key of sets: used by the present plan
	seen    []float64       // dispersions of the request
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "ramsis" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Tables
}

// The range of rates that a set covers by default, as multiples of the rate that the fastest variant carries. Below the
// first, all policies are the same, or below a lower rate if the most accurate variant is not yet chosen nearly always.
// Beyond the last they are the same, too.
const (
	lowestRate  = 0.02
	highestRate = 1.1
)

// Plan implements plan.Planner. It makes missing policies only: a demand beyond those that the last plan covered adds
// one (§3.2.2), and latencies that are believed anew make all of them anew. Making a policy takes about a tenth of a
// second. It fails for an app of several stages.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := capacity.ReadAlone(p.Name(), "slack", &r, p.Profile, false)
	if err != nil {
		return nil, err
	}
	p.learned, p.used, p.seen = r.Beliefs != nil, make(map[string]bool), r.Dispersions
	out := r.NewPlan(p.Name())
	err = x.Plan(out, &r, func(s serving.StageID) (plan.Promise, error) { return p.stage(ctx, out, x, s) })
	if err == nil && p.learned {
		// Sets for what was believed before are not asked for again.
		maps.DeleteFunc(p.sets, func(key string, _ *policySet) bool { return !p.used[key] })
	}
	return out, err
}

// stage gives a stage its workers and the policies for each of their types. Policies of a stage with a part of its
// workers' time are those for as much higher rates.
func (p *Planner) stage(ctx context.Context, out *plan.Plan, x *capacity.Alone, s serving.StageID) (
	plan.Promise, error) {
	spec, workers, part, asked := x.Spec, x.Workers[s], x.TimePart(s), x.Asked[s]
	var types []serving.DeviceTypeID
	for _, w := range workers {
		if d := spec.Workers[w].DeviceType; !slices.Contains(types, d) {
			types = append(types, d)
		}
	}
	slices.Sort(types)
	models := make(map[serving.DeviceTypeID][]Model)
	carries := math.Inf(1) // that of the slowest type: round robin gives all the same
	for _, d := range types {
		m := p.models(spec, x.Believed, s, d, asked.Budget, x.Memory(s, d), x.Broken)
		if len(m) == 0 {
			return plan.Promise{}, capacity.Unservable(x.Believed, spec, s, asked, []serving.DeviceTypeID{d}, x.Broken)
		}
		models[d] = m
		carries = min(carries, bestRate(m, asked.Budget)*float64(len(workers)))
	}
	out.Capacity[asked.App] = part * carries / asked.FanOut
	for _, w := range workers {
		d := spec.Workers[w].DeviceType
		i := plan.Instance{Worker: w, Stage: s, Slots: 1, Share: 1 / float64(len(workers))}
		for _, m := range models[d] {
			i.Variants = append(i.Variants, plan.Variant{Variant: m.Variant, Limit: len(m.Latency)})
		}
		out.Instances = append(out.Instances, i)
	}
	var promised plan.Promise
	dispersion := p.dispersion(asked.App)
	for _, d := range types {
		busier := asked
		busier.Rate /= part
		set, err := p.policies(ctx, spec, busier, models[d], len(workers), carries, dispersion)
		if err != nil {
			return plan.Promise{}, err
		}
		set.Dispersion = dispersion
		set.Stage, set.DeviceType = s, d
		for k := range set.ByRate {
			set.ByRate[k].Rate *= part
		}
		out.Policies = append(out.Policies, set)
		share := 0.0
		for _, w := range workers {
			if spec.Workers[w].DeviceType == d {
				share += 1 / float64(len(workers))
			}
		}
		at := set.At(asked.Rate).Promise
		promised.Accuracy += share * at.Accuracy
		promised.Violation += share * at.Violation
	}
	return promised, nil
}

// policies makes the policies of one type of worker.
func (p *Planner) policies(ctx context.Context, spec *serving.Spec, asked capacity.StageDemand, models []Model,
	workers int, carries, dispersion float64) (plan.Policies, error) {
	shape := p.Options.Shape
	if dispersion > 0 {
		shape = 1 / dispersion
	}
	m := p.set(func(rate float64) *Worker {
		w := &Worker{
			SLO: asked.Budget, Workers: workers, Models: models, MaxQueue: p.queueLimit(models), Levels: p.levels(),
			Variable: p.Options.Variable, Balance: p.Options.Balance,
			Drop: spec.Apps[asked.App].Late == serving.DropLate, Arrivals: Poisson(rate),
			Unpromised: p.Options.Unpromised && p.Options.SingleRate,
		}
		if shape > 0 && shape != 1 {
			w.Arrivals = Gamma{PerSecond: rate, Shape: shape}
		}
		return w
	})
	if p.Options.SingleRate {
		x, err := m.at(ctx, asked.Rate)
		if err != nil {
			return plan.Policies{}, err
		}
		return plan.Policies{ByRate: []plan.Policy{*x}}, nil
	}
	rates, step := p.Options.Rates, p.Options.Step
	if step == 0 {
		step = 0.01
	}
	if rates == nil {
		low, err := m.lowestUseful(ctx, round(lowestRate*carries), models[len(models)-1].Accuracy, step)
		if err == nil {
			err = m.refine(ctx, low, round(highestRate*carries), step)
		}
		if err != nil {
			return plan.Policies{}, err
		}
	}
	for _, rate := range rates {
		if _, err := m.at(ctx, rate); err != nil {
			return plan.Policies{}, err
		}
	}
	set := plan.Policies{ByRate: m.all()}
	if !set.Covers(asked.Rate) {
		if _, err := m.at(ctx, asked.Rate); err != nil {
			return plan.Policies{}, err
		}
		set.ByRate = m.all()
	}
	return set, nil
}

// set returns the set of policies for a kind of worker, a new one when there is none yet.
func (p *Planner) set(worker func(rate float64) *Worker) *policySet {
	if p.sets == nil {
		p.sets = make(map[string]*policySet)
	}
	key := worker(1).Key()
	p.used[key] = true
	if p.sets[key] == nil {
		p.sets[key] = &policySet{worker: worker, store: p.Store, made: make(map[float64]*plan.Policy), onMade: p.OnMade}
		if p.learned {
			p.sets[key].store = nil // what is believed now is of no use to a later run
		}
	}
	return p.sets[key]
}

// round gives a rate three digits, so that small changes of belief do not make all policies anew.
func round(rate float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	return math.Round(rate/unit) * unit
}

func (p *Planner) levels() int {
	switch {
	case p.Options.Levels < 0:
		return 0
	case p.Options.Levels == 0:
		return 100
	}
	return p.Options.Levels
}

// maxQueue is the longest queue of the options that has choices of its own.
func (p *Planner) maxQueue() int {
	if p.Options.MaxQueue <= 0 {
		return 32
	}
	return p.Options.MaxQueue
}

// queueLimit is the longest queue that has choices of its own in a policy, at most the largest batch.
func (p *Planner) queueLimit(models []Model) int {
	most := 1
	for _, m := range models {
		most = max(most, len(m.Latency))
	}
	return min(p.maxQueue(), most)
}

// models returns the useful variants of a stage on a device type: known, above the accuracy floor, on the Pareto front,
// and with one query in time. Those that do not fit the memory together are left out by capacity.FitMemory.
func (p *Planner) models(spec *serving.Spec, believed profile.Profile, s serving.StageID, d serving.DeviceTypeID,
	within time.Duration, memory int64, broken []bool) []Model {
	var all []Model
	for _, v := range spec.Stages[s].Variants {
		x := &spec.Variants[v]
		if broken[v] || spec.BelowFloor(v) || believed.Latency(v, d, 1, 1) > within {
			continue
		}
		latency := capacity.Latencies(believed, v, d, min(x.MaxBatch, p.maxQueue()))
		all = append(all, Model{Variant: v, Accuracy: x.Accuracy, Latency: latency})
	}
	all = Pareto(all)
	return capacity.FitMemory(spec, memory, all, func(m *Model) serving.VariantID { return m.Variant })
}

// bestRate returns the queries/s of a worker with its fastest batches in time.
func bestRate(models []Model, within time.Duration) float64 {
	most := 0.0
	for i := range models {
		most = max(most, models[i].bestRate(within))
	}
	return most
}

// dispersion returns how unevenly the queries of an app are to be thought to arrive; 0 when the planner does not react.
// For the shortest queue it cannot: App. I knows Poisson arrivals alone.
func (p *Planner) dispersion(app serving.AppID) float64 {
	switch {
	case !p.Options.Reacts || p.Options.Balance == ShortestQueue:
		return 0
	case int(app) >= len(p.seen):
		return 1
	}
	return plan.Pattern(p.seen[app])
}
