package test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// smallFleet is a world in which every way to use the workers can be tried.
type smallFleet struct {
	spec  *serving.Spec
	table *profile.Table
	rates []float64
	slope map[[2]int][2]time.Duration // by variant and device type: of a batch, and of each item in it
}

const headroom = 1.05

// newSmallFleet makes one to three device types with up to three workers each and one to three stages with up to three
// variants.
func newSmallFleet(rng *rand.Rand) *smallFleet {
	f := &smallFleet{spec: &serving.Spec{}, slope: make(map[[2]int][2]time.Duration)}
	s := f.spec
	types := 1 + rng.IntN(3)
	for d := range types {
		s.DeviceTypes = append(s.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), PricePerHour: float64(1+rng.IntN(400)) / 100, Cores: 1,
		})
		for range rng.IntN(3) + rng.IntN(2) {
			s.Workers = append(s.Workers, serving.Worker{
				Name: fmt.Sprintf("w%d", len(s.Workers)), DeviceType: serving.DeviceTypeID(d),
			})
		}
	}
	if len(s.Workers) == 0 {
		s.Workers = append(s.Workers, serving.Worker{Name: "w0"})
	}
	var m serving.Measurements
	stages := 1 + rng.IntN(3)
	for len(s.Stages) < stages {
		a := serving.AppID(len(s.Apps))
		app := serving.App{
			Name: fmt.Sprintf("app%d", a), SLO: serving.SLO{
				Latency: time.Duration(80+rng.IntN(300)) * time.Millisecond, Percentile: 99,
			}, Weight: 1, QueueLimit: 100,
		}
		chain := 1
		if stages-len(s.Stages) > 1 && rng.IntN(4) == 0 {
			chain = 2
		}
		for range chain {
			st := serving.StageID(len(s.Stages))
			app.Stages = append(app.Stages, st)
			s.Stages = append(s.Stages, serving.Stage{Name: fmt.Sprintf("s%d", st), App: a})
			if len(app.Stages) > 1 {
				s.Stages[st-1].Next, s.Stages[st].Joins = []serving.Edge{{To: st, FanOut: 0.5 + rng.Float64()}}, 1
			}
			for range 1 + rng.IntN(3) {
				v := len(s.Variants)
				s.Variants = append(s.Variants, serving.Variant{
					Name: fmt.Sprintf("v%d", v), Stage: st, Accuracy: 0.5 + float64(rng.IntN(50))/100,
					MaxBatch: 1 + rng.IntN(32),
				})
				s.Stages[st].Variants = append(s.Stages[st].Variants, serving.VariantID(v))
				for d := range types {
					if rng.IntN(12) == 0 {
						continue // not measured there
					}
					base, each := time.Duration(rng.IntN(20000))*time.Microsecond,
						time.Duration(500+rng.IntN(15000))*time.Microsecond
					if rng.IntN(2) == 0 { // worth filling batches
						base, each = time.Duration(5+rng.IntN(60))*time.Millisecond,
							time.Duration(200+rng.IntN(2000))*time.Microsecond
					}
					f.slope[[2]int{v, d}] = [2]time.Duration{base, each}
					for items := 1; items <= s.Variants[v].MaxBatch; items++ {
						l := base + time.Duration(items)*each
						m.Latency = append(m.Latency, serving.LatencyPoint{
							Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d), Items: items,
							Concurrency: 1, Mean: l, P50: l, P90: l, P95: l, P99: l,
						})
					}
				}
			}
		}
		if rng.IntN(3) == 0 {
			app.Floor = 0.5 + 0.4*rng.Float64()
		}
		s.Apps = append(s.Apps, app)
		f.rates = append(f.rates, 10+300*rng.Float64())
	}
	if err := s.Validate(); err != nil {
		panic(err)
	}
	var err error
	// Demands about the edge of what is carried are the ones that tell.
	if most := multiple(f.fastest(s), f.workers(), f.asked(), every, none); most > 0 {
		factor := most * (0.8 + 1.5*rng.Float64())
		for a := range f.rates {
			f.rates[a] *= factor
		}
	}
	if f.table, err = profile.NewTable(s, m, profile.P50); err != nil {
		panic(err)
	}
	return f
}

// fastest is, by stage and device type, the highest rate in items/s of a worker that serves the stage: of the largest
// batch that takes less than half the stage's part of the objective, of a variant that is not below the floor.
func (f *smallFleet) fastest(spec *serving.Spec) [][]float64 {
	out := make([][]float64, len(spec.Stages))
	for s := range out {
		app := &spec.Apps[spec.Stages[s].App]
		half := app.SLO.Latency / time.Duration(len(app.Stages)) / 2
		out[s] = make([]float64, len(spec.DeviceTypes))
		for _, v := range spec.Stages[s].Variants {
			for d := range spec.DeviceTypes {
				slope, ok := f.slope[[2]int{int(v), d}]
				if !ok || spec.Variants[v].Accuracy < app.Floor {
					continue
				}
				for items := 1; items <= spec.Variants[v].MaxBatch; items++ {
					if l := slope[0] + time.Duration(items)*slope[1]; l < half {
						out[s][d] = max(out[s][d], float64(items)/l.Seconds())
					}
				}
			}
		}
	}
	return out
}

// asked is what the stages are asked for, in items/s, head-room included.
func (f *smallFleet) asked() []float64 {
	out := make([]float64, len(f.spec.Stages))
	for a, app := range f.spec.Apps {
		at := f.rates[a] * headroom
		for _, s := range app.Stages {
			out[s] = at
			for _, e := range f.spec.Stages[s].Next {
				at *= e.FanOut
			}
		}
	}
	return out
}

func (f *smallFleet) workers() []int {
	out := make([]int, len(f.spec.DeviceTypes))
	for _, w := range f.spec.Workers {
		out[w.DeviceType]++
	}
	return out
}

// ways calls visit with what the stages get in every way to give workers to stages.
func ways(fastest [][]float64, workers []int, visit func(got []float64)) {
	got := make([]float64, len(fastest))
	var give func(d, s, left int)
	give = func(d, s, left int) {
		if d == len(workers) {
			visit(got)
			return
		}
		if s == len(fastest)-1 {
			was := got[s]
			got[s] += float64(left) * fastest[s][d]
			if d+1 < len(workers) {
				give(d+1, 0, workers[d+1])
			} else {
				visit(got)
			}
			got[s] = was
			return
		}
		was := got[s]
		for n := range left + 1 {
			got[s] = was + float64(n)*fastest[s][d]
			give(d, s+1, left-n)
		}
		got[s] = was
	}
	give(0, 0, workers[0])
}

// multiple is the largest multiple of the stages' demand for which scaled says so, while all others but those that are
// left out get theirs; -1 when they cannot.
func multiple(fastest [][]float64, workers []int, asked []float64, scaled, left func(s int) bool) float64 {
	best := -1.0
	ways(fastest, workers, func(got []float64) {
		least := math.Inf(1)
		for s := range got {
			switch part := got[s] / asked[s]; {
			case left(s):
			case scaled(s):
				least = min(least, part)
			case part < 1-1e-9:
				return
			}
		}
		best = max(best, least)
	})
	return best
}

func every(int) bool { return true }
func none(int) bool  { return false }

func planner(t testing.TB, table *profile.Table) *proteus.Planner {
	s := highstest.Solver(t)
	return &proteus.Planner{Profile: table, Solver: s}
}

// Diagnoses of small fleets agree with trying everything.
func TestDiagnoseAgainstEverything(t *testing.T) {
	t.Parallel()
	p := planner(t, nil)
	seen := make(map[string]int)
	seeds := longtest.Of(100, 300)
	for seed := range uint64(seeds) {
		f := newSmallFleet(rand.New(rand.NewPCG(seed, 3)))
		p.Profile = f.table
		d, err := proteus.Diagnose(context.Background(), p, plan.Request{Spec: f.spec, Rates: f.rates})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c := &checking{
			T: t, f: f, p: p, seed: seed, seen: seen, asked: f.asked(), workers: f.workers(),
			fastest: f.fastest(f.spec),
		}
		c.diagnosis(d)
	}
	for what, least := range map[string]int{
		"carried": 10, "not carried": 50, "unserved": 5, "bottleneck": 20, "one type": 50, "mix": 3, "cheapest": 30,
		"floor": 5, "slo": 10, "demand": 20,
	} {
		if least = least * seeds / 300; seen[what] < max(least, 1) {
			t.Errorf("%d cases of %q were checked, want at least %d for the test to mean something", seen[what], what,
				least)
		}
	}
	t.Log(seen)
}

type checking struct {
	*testing.T
	f       *smallFleet
	p       *proteus.Planner
	seed    uint64
	seen    map[string]int
	asked   []float64
	workers []int
	fastest [][]float64
}

func (c *checking) bad(format string, args ...any) {
	c.Helper()
	c.Errorf("seed %d: %s", c.seed, fmt.Sprintf(format, args...))
}

// near allows what Diagnose promises, one part in a thousand, and as much again for rounding.
func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= 0.002*math.Abs(want)+1e-9
}

func (c *checking) diagnosis(d *diagnosis.Diagnosis) {
	want := multiple(c.fastest, c.workers, c.asked, every, none)
	if math.Abs(want-1) < 1e-5 {
		return
	}
	if d.Carried != (want > 1) {
		c.bad("carried is %v, the largest multiple is %v", d.Carried, want)
		return
	}
	if !near(d.Multiple, want) || d.Bound < want-1e-6 {
		c.bad("multiple %v (bound %v), want %v", d.Multiple, d.Bound, want)
	}
	if d.Carried {
		c.seen["carried"]++
		if d.Remedies != nil || d.Bottlenecks != nil || d.Unserved != nil {
			c.bad("something is to be mended although all is carried: %+v", d)
		}
		return
	}
	c.seen["not carried"]++
	c.unserved(d)
	if len(d.Unserved) == 0 {
		c.bottlenecks(d)
	}
	c.additions(d)
	c.floors(d)
	c.slos(d)
	c.demands(d)
	for _, m := range d.Remedies {
		c.works(&m)
	}
}

func (c *checking) unserved(d *diagnosis.Diagnosis) {
	at := 0
	for s := range c.fastest {
		best := 0.0
		for dev, r := range c.fastest[s] {
			if c.workers[dev] > 0 {
				best = max(best, r)
			}
		}
		if best > 0 {
			continue
		}
		if at >= len(d.Unserved) || int(d.Unserved[at].Stage) != s {
			c.bad("nothing serves stage %d, which is not said", s)
			return
		}
		u := d.Unserved[at]
		at++
		c.seen["unserved"]++
		app := &c.f.spec.Apps[u.App]
		shortest, floor := time.Duration(0), 0.0
		for _, v := range c.f.spec.Stages[s].Variants {
			for dev := range c.workers {
				slope, ok := c.f.slope[[2]int{int(v), dev}]
				if !ok || c.workers[dev] == 0 {
					continue
				}
				need := 2 * time.Duration(len(app.Stages)) * (slope[0] + slope[1])
				accuracy := c.f.spec.Variants[v].Accuracy
				if need < app.SLO.Latency {
					floor = max(floor, accuracy)
				}
				if accuracy >= app.Floor && (shortest == 0 || need < shortest) {
					shortest = need
				}
			}
		}
		if u.Floor != floor {
			c.bad("stage %d is served with a floor of %v, want %v", s, u.Floor, floor)
		}
		if (u.SLO == 0) != (shortest == 0) || u.SLO > 0 &&
			(u.SLO <= shortest || float64(u.SLO) > 1.02*float64(shortest)+1e5) {
			c.bad("stage %d is served within an SLO of %v, want a little more than %v", s, u.SLO, shortest)
		}
	}
	if at != len(d.Unserved) {
		c.bad("%d stages are said to be unserved, %d are", len(d.Unserved), at)
	}
}

func (c *checking) bottlenecks(d *diagnosis.Diagnosis) {
	said := make(map[int]float64)
	for i, b := range d.Bottlenecks {
		said[int(b.Stage)] = b.Without
		if i > 0 && b.Without > d.Bottlenecks[i-1].Without {
			c.bad("bottlenecks are not in order: %+v", d.Bottlenecks)
		}
	}
	for s := range c.fastest {
		want := multiple(c.fastest, c.workers, c.asked, every, func(x int) bool { return x == s })
		got, ok := said[s]
		if ok {
			c.seen["bottleneck"]++
		}
		if ok && !near(got, want) || !ok && want > 1.01*d.Multiple {
			c.bad("without stage %d the multiple is %v, want %v", s, got, want)
		}
	}
}

// most is how many workers of a type are tried.
const most = 4

func (c *checking) additions(d *diagnosis.Diagnosis) {
	single := make(map[int]int)
	cheapest, largest := math.Inf(1), 0
	for i, m := range d.Remedies {
		if m.Add == nil {
			continue
		}
		if i > 0 && m.CostPerHour < d.Remedies[i-1].CostPerHour-1e-9 {
			c.bad("additions are not in order of their price: %+v", d.Remedies)
		}
		if len(m.Add) == 1 {
			single[int(m.Add[0].Device)] = m.Add[0].Workers
		} else {
			c.seen["mix"]++
		}
		if m.CostPerHour < cheapest {
			cheapest, largest = m.CostPerHour, 0
			for _, a := range m.Add {
				largest = max(largest, a.Workers)
			}
		}
		if !m.Proven {
			c.bad("not proven: %+v", m)
		}
	}
	carried := func(add []int) bool {
		workers := make([]int, len(add))
		for t := range add {
			workers[t] = c.workers[t] + add[t]
		}
		return multiple(c.fastest, workers, c.asked, every, none) >= 1-1e-9
	}
	for t := range c.workers {
		add := make([]int, len(c.workers))
		n, ok := single[t]
		for add[t] = 1; add[t] <= 3*most && !carried(add); add[t]++ {
		}
		if add[t] > 3*most {
			if ok && n <= 3*most {
				c.bad("%d more of type %d are said to do, but do not", n, t)
			}
			continue
		}
		c.seen["one type"]++
		if n != add[t] {
			c.bad("%d more of type %d are said to do, want %d", n, t, add[t])
		}
	}
	// All mixes within a box: the cheapest named is as cheap, when it lies in the box, and no dearer otherwise.
	best := math.Inf(1)
	add := make([]int, len(c.workers))
	var each func(t int, cost float64)
	each = func(t int, cost float64) {
		if cost >= best {
			return
		}
		if t == len(add) {
			if carried(add) {
				best = cost
			}
			return
		}
		for add[t] = 0; add[t] <= most; add[t]++ {
			each(t+1, cost+float64(add[t])*c.f.spec.DeviceTypes[t].PricePerHour)
		}
		add[t] = 0
	}
	each(0, 0)
	if math.IsInf(best, 1) {
		return
	}
	c.seen["cheapest"]++
	if cheapest > best+1e-9 || largest <= most && cheapest < best-1e-9 {
		c.bad("the cheapest addition costs %v, want %v", cheapest, best)
	}
}

func (c *checking) with(change func(apps []serving.App)) *serving.Spec {
	spec := *c.f.spec
	spec.Apps = append([]serving.App(nil), spec.Apps...)
	change(spec.Apps)
	return &spec
}

func (c *checking) carriedBy(spec *serving.Spec) bool {
	return multiple(c.f.fastest(spec), c.workers, c.asked, every, none) >= 1-1e-9
}

func (c *checking) floors(d *diagnosis.Diagnosis) {
	said := make(map[int]float64)
	for _, m := range d.Remedies {
		if len(m.Floors) == 1 && m.SLOs == nil {
			said[int(m.Floors[0].App)] = m.Floors[0].To
		}
	}
	for a, app := range c.f.spec.Apps {
		if app.Floor == 0 {
			continue
		}
		want := 0.0
		for _, v := range c.f.spec.Variants {
			if c.f.spec.Stages[v.Stage].App == serving.AppID(a) && v.Accuracy < app.Floor && v.Accuracy > want &&
				c.carriedBy(c.with(func(apps []serving.App) { apps[a].Floor = v.Accuracy })) {
				want = v.Accuracy
			}
		}
		if want > 0 {
			c.seen["floor"]++
		}
		if _, ok := said[a]; ok != (want > 0) && len(c.f.spec.Apps) == 1 || ok && said[a] != want {
			c.bad("a floor of %v for app %d is said to do, want %v", said[a], a, want)
		}
	}
}

func (c *checking) slos(d *diagnosis.Diagnosis) {
	for _, m := range d.Remedies {
		if m.SLOs == nil || m.Floors != nil {
			continue
		}
		c.seen["slo"]++
		beyond := true
		shorter := c.with(func(apps []serving.App) {
			for _, o := range m.SLOs {
				was := apps[o.App].SLO.Latency
				apps[o.App].SLO.Latency = time.Duration(float64(o.To) / 1.02)
				beyond = beyond && apps[o.App].SLO.Latency > was
			}
		})
		if beyond && c.carriedBy(shorter) {
			c.bad("SLOs of %v are said to be the shortest, but shorter ones do: %+v", m.SLOs, shorter.Apps)
		}
	}
}

func (c *checking) demands(d *diagnosis.Diagnosis) {
	said := make(map[int]float64)
	for _, m := range d.Remedies {
		if m.Demand != nil {
			said[int(m.Demand[0].App)] = m.Demand[0].To
		}
	}
	named := make(map[serving.AppID]bool)
	for _, b := range d.Bottlenecks {
		named[b.App] = true
	}
	for a := range c.f.spec.Apps {
		want := multiple(c.fastest, c.workers, c.asked, func(s int) bool {
			return c.f.spec.Stages[s].App == serving.AppID(a)
		}, none) * c.f.rates[a]
		got, ok := said[a]
		if ok && !near(got, want) || !ok && want > 1e-9 && (named[serving.AppID(a)] || len(named) == 0) {
			c.bad("app %d may ask for %v, want %v", a, got, want)
		}
		if ok {
			c.seen["demand"]++
		}
	}
}

// works carries out a remedy and plans again.
func (c *checking) works(m *diagnosis.Remedy) {
	r := plan.Request{Spec: c.f.spec, Rates: append([]float64(nil), c.f.rates...)}
	if m.Add != nil {
		change := make([]int, len(c.workers))
		for _, a := range m.Add {
			change[a.Device] = a.Workers
		}
		var err error
		if r.Spec, _, err = c.f.spec.Resized(change); err != nil {
			c.Fatal(err)
		}
	} else {
		r.Spec = c.with(func(apps []serving.App) {
			for _, f := range m.Floors {
				apps[f.App].Floor = f.To
			}
			for _, o := range m.SLOs {
				apps[o.App].SLO.Latency = o.To
			}
		})
	}
	for _, x := range m.Demand {
		r.Rates[x.App] = x.To
	}
	made, err := c.p.Plan(context.Background(), r)
	if err != nil {
		c.bad("after %+v: %v", m, err)
		return
	}
	if made.Shed != nil {
		c.bad("after %+v the plan sheds %v", m, made.Shed)
	}
	if err := made.Validate(r.Spec); err != nil {
		c.bad("after %+v: %v", m, err)
	}
}

// The frontier ends where nothing more can be carried, sheds nothing before, and never gains by carrying more.
func TestFrontierAgainstEverything(t *testing.T) {
	p := planner(t, nil)
	checked := 0
	for seed := range uint64(60) {
		f := newSmallFleet(rand.New(rand.NewPCG(seed, 4)))
		p.Profile = f.table
		want := multiple(f.fastest(f.spec), f.workers(), f.asked(), every, none)
		if want <= 0 {
			continue
		}
		const points = 6
		n, last, end := 0, -1.0, 0.0
		for x, err := range proteus.Frontier(context.Background(), p, plan.Request{Spec: f.spec, Rates: f.rates},
			points) {
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			n++
			end = max(end, x.Multiple)
			if x.Plan.Shed != nil || !x.Plan.Proven {
				t.Errorf("seed %d: at %v the plan sheds %v, proven %v", seed, x.Multiple, x.Plan.Shed, x.Plan.Proven)
			}
			if err := x.Plan.Validate(f.spec); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			value := x.Plan.Bound / (1 + x.Plan.Gap)
			if value < last-1e-9 {
				t.Errorf("seed %d: at %v the goal is %v, less than %v with more to carry", seed, x.Multiple, value,
					last)
			}
			last = max(last, value)
			if x.Plan.Gap > 0.005+1e-9 {
				t.Errorf("seed %d: at %v the gap is %v", seed, x.Multiple, x.Plan.Gap)
			}
			rates := make([]float64, len(f.rates))
			for a := range rates {
				rates[a] = f.rates[a] * x.Multiple
			}
			alone, err := p.Plan(context.Background(), plan.Request{Spec: f.spec, Rates: rates})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if alone.Shed == nil && value < alone.Bound/(1+alone.Gap)-0.005 {
				t.Errorf("seed %d: at %v the goal is %v, alone it is %v", seed, x.Multiple, value,
					alone.Bound/(1+alone.Gap))
			}
		}
		if n != points || !near(end, want) {
			t.Errorf("seed %d: %d points up to %v, want %d up to %v", seed, n, end, points, want)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("%d fleets were checked", checked)
	}
}
