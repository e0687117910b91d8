package fluid

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	ms   = time.Millisecond
	mebi = 1 << 20
)

// world is a spec whose variants take base + items*each on every device type, times the type's factor.
type world struct {
	serving.Spec
	base, each []time.Duration // by VariantID
	factor     []float64       // by DeviceTypeID
	rates      []float64       // by AppID
}

func (w *world) machines(n int, factor, price float64, memory int64) {
	d := serving.DeviceTypeID(len(w.DeviceTypes))
	t := serving.DeviceType{Name: string(rune('a' + d)), Cores: 1, MemoryBytes: memory, PricePerHour: price}
	if price > 0 {
		t.Tenure = serving.Rented
	}
	w.DeviceTypes, w.factor = append(w.DeviceTypes, t), append(w.factor, factor)
	for range n {
		w.Workers = append(w.Workers, serving.Worker{Name: "w", DeviceType: d})
	}
}

func (w *world) app(slo time.Duration, rate float64) *serving.App {
	a := serving.AppID(len(w.Apps))
	w.Apps = append(w.Apps, serving.App{
		Name: string(rune('A' + a)), SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 1,
	})
	w.rates = append(w.rates, rate)
	w.stage(a)
	return &w.Apps[a]
}

// stage adds a stage behind the last one of an app.
func (w *world) stage(a serving.AppID) {
	s := serving.StageID(len(w.Stages))
	w.Stages = append(w.Stages, serving.Stage{Name: "s", App: a})
	if before := w.Apps[a].Stages; len(before) > 0 {
		last := before[len(before)-1]
		w.Stages[last].Next = append(w.Stages[last].Next, serving.Edge{To: s, FanOut: 2})
		w.Stages[s].Joins = 1
	}
	w.Apps[a].Stages = append(w.Apps[a].Stages, s)
}

// variant adds a variant to the last stage.
func (w *world) variant(base, each time.Duration, accuracy float64, memory int64) {
	s := serving.StageID(len(w.Stages) - 1)
	v := serving.VariantID(len(w.Variants))
	w.Variants = append(w.Variants, serving.Variant{
		Name: "v", Stage: s, Accuracy: accuracy, MaxBatch: 16, MemoryBytes: memory,
	})
	w.Stages[s].Variants = append(w.Stages[s].Variants, v)
	w.base, w.each = append(w.base, base), append(w.each, each)
}

func (w *world) Latency(v serving.VariantID, d serving.DeviceTypeID, items, n int) time.Duration {
	return time.Duration(w.factor[d] * float64(w.base[v]+time.Duration(items)*w.each[v]) * float64(n))
}
func (w *world) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return time.Second }
func (w *world) Learner() profile.Learner                                   { return nil }

func (w *world) plan(t testing.TB, p Planner, s *fleet.Snapshot) *plan.Plan {
	t.Helper()
	p.Profile = w
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	out, err := p.Plan(context.Background(), plan.Request{Spec: &w.Spec, Rates: w.rates, Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	w.checkMemory(t, out)
	return out
}

// checkMemory reports machines whose instances do not fit, or do not take turns.
func (w *world) checkMemory(t testing.TB, p *plan.Plan) {
	t.Helper()
	need := make(map[serving.WorkerID]int64)
	for _, i := range p.Instances {
		if !i.TimeShared || i.Cores != 0 {
			t.Errorf("instance %+v does not take turns", i)
		}
		for _, v := range i.Variants {
			x := &w.Variants[v.Variant]
			need[i.Worker] += x.MemoryBytes + int64(v.Limit)*x.ItemBytes
		}
	}
	for id, n := range need {
		if m := w.DeviceTypes[w.Workers[id].DeviceType].MemoryBytes; m > 0 && n > m {
			t.Errorf("worker %d holds %d bytes of %d", id, n, m)
		}
	}
}

// used is how many machines of each type a plan uses.
func (w *world) used(p *plan.Plan) []int {
	out, counted := make([]int, len(w.DeviceTypes)), make(map[serving.WorkerID]bool)
	for _, i := range p.Instances {
		if !counted[i.Worker] {
			counted[i.Worker] = true
			out[w.Workers[i.Worker].DeviceType]++
		}
	}
	return out
}

// inForce is the snapshot of a fleet that has put a plan into force.
func inForce(w *world, p *plan.Plan) *fleet.Snapshot {
	s := &fleet.Snapshot{Seq: p.Snapshot + 1}
	for n, i := range p.Instances {
		x := fleet.InstanceSnapshot{
			ID: serving.InstanceID(n + 1), Key: fleet.Key{Worker: i.Worker, Ordinal: i.Place}, Stage: i.Stage,
			DeviceType: i.DeviceType(&w.Spec), State: fleet.Ready, Slots: i.Slots,
		}
		for _, v := range i.Variants {
			x.Variants = append(x.Variants, fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Warm: true, Wanted: true})
		}
		s.Instances = append(s.Instances, x)
	}
	return s
}

// One machine that gives 100/s of the accurate or 400/s of the other variant has 200/s to serve: x of the first with
// 10x + 2.5(200-x) = 1000, a loss of 0.2 on the rest.
func TestProgramMixesVariants(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.app(time.Second, 200)
	w.variant(10*ms, 0, 1, 0)
	w.variant(2500*time.Microsecond, 0, 0.8, 0)
	for v := range w.Variants {
		w.Variants[v].MaxBatch = 1
	}
	p := w.plan(t, Planner{Options: Options{Certain: true}}, nil)
	x := 500.0 / 7.5
	if want := (x + 0.8*(200-x)) / 200; math.Abs(p.Forecast.Accuracy-want) > 1e-4 {
		t.Errorf("accuracy %v, want %v", p.Forecast.Accuracy, want)
	}
	if p.Shed != nil || math.Abs(p.Capacity[0]-400) > 0.1 {
		t.Errorf("carries %v, sheds %v, want 400/s and nothing", p.Capacity, p.Shed)
	}
	if !p.Proven || p.Gap > 1e-9 {
		t.Errorf("gap %v, proven %v: memory holds everything", p.Gap, p.Proven)
	}
}

// A batch counts that gathers within half of the time it leaves: b <= rate/2 (SLO - L(b)), and a single query always.
func TestBatchesHaveToGather(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want int
	}{{1, 1}, {60, 2}, {100, 3}, {1e6, 12}} {
		w := &world{}
		w.machines(1, 1, 0, 0)
		w.app(100*ms, c.rate)
		w.variant(15*ms, 5*ms, 1, 0) // batches of 12 take 75 ms
		m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			t.Fatal(err)
		}
		want := float64(c.want) / (0.015 + 0.005*float64(c.want))
		if got := m.kinds[0].options[0].rates[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v/s a machine gives %v/s, want %v of batches of %d", c.rate, got, want, c.want)
		}
	}
}

// Queries of 1 and of 8 items; the slow machine is in time with the small ones only.
func TestSizesAreClasses(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.machines(1, 4, 0, 0)
	w.app(50*ms, 10).Mix = serving.Mix{Sizes: []int32{1, 8}, Shares: []float64{0.5, 0.5}}
	w.variant(2*ms, 4*ms, 1, 0)
	m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := m.kinds[0].options[0].rates, m.kinds[1].options[0].rates
	if len(fast) != 2 || fast[1] <= 0 || slow[0] <= 0 || slow[1] != 0 {
		t.Errorf("rates by class: fast %v, slow %v", fast, slow)
	}
	p := w.plan(t, Planner{}, nil)
	if p.Shed != nil {
		t.Errorf("sheds %v", p.Shed)
	}
}

// Queries that are too large for every machine are refused: the others are planned for as if those did not come,
// however the sizes lie. Machines are rented for the others.
func TestTooLargeQueries(t *testing.T) {
	w := &world{}
	w.machines(6, 1, 1, 0)
	w.DeviceTypes[0].Tenure = serving.Rented
	// Up to 5 items are in time: a quarter of the queries, and none of the largest of what would be one class.
	w.app(50*ms, 100).Mix = serving.Mix{Sizes: []int32{5, 6, 7, 8}, Shares: []float64{0.25, 0.25, 0.25, 0.25}}
	w.variant(0, 10*ms, 1, 0)
	w.app(50*ms, 10)
	w.variant(10*ms, 0, 1, 0)
	p := w.plan(t, Planner{}, nil)
	if p.Shed != nil || len(p.TooLarge) != 2 || math.Abs(p.TooLarge[0]-0.75) > 1e-9 || p.TooLarge[1] != 0 {
		t.Errorf("sheds %v, too large are %v, want nothing and three quarters of the first app", p.Shed, p.TooLarge)
	}
	// 25/s that take a machine for 50 ms each, and a tenth of another.
	if n := w.used(p)[0]; n < 2 || n > 3 {
		t.Errorf("%d machines are rented, want 2 or one more", n)
	}
	if p.Demand[0] != 100 || p.Capacity[0] < 100 {
		t.Errorf("it carries %v of %v/s: all that can be served is counted as all", p.Capacity[0], p.Demand[0])
	}
}

// An app of which nothing can be served any more, by what is believed now, keeps no other from new plans. At the start
// it is an error that says what would mend it.
func TestAppThatNothingServesAnyMore(t *testing.T) {
	w := &world{}
	w.machines(6, 1, 1, 0)
	w.DeviceTypes[0].Tenure = serving.Rented
	w.app(50*ms, 100).Mix = serving.Mix{Sizes: []int32{20}, Shares: []float64{1}}
	w.variant(0, 10*ms, 1, 0)
	w.app(50*ms, 150)
	w.variant(10*ms, 0, 1, 0)
	r := plan.Request{Spec: &w.Spec, Rates: w.rates}
	_, err := (&Planner{Profile: w}).Plan(t.Context(), r)
	if want := "the smallest queries bring 20 items, and no variant of stage"; err == nil ||
		!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "max_batch of 20") {
		t.Errorf("the error is %v, want one that says %q", err, want)
	}
	w.Variants[0].MaxBatch = 32
	_, err = (&Planner{Profile: w}).Plan(t.Context(), r)
	if want := "takes 200ms for 20 items, as the smallest queries bring"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one that says %q", err, want)
	}
	p := w.plan(t, Planner{}, &fleet.Snapshot{Seq: 1})
	if p.Shed == nil || p.Shed[0] != 100 || p.Shed[1] != 0 {
		t.Errorf("sheds %v, want all of the first app and nothing else", p.Shed)
	}
	if n := w.used(p)[0]; n < 1 || n > 2 {
		t.Errorf("%d machines are rented, want one or two for the other app", n)
	}
}

// What machines cannot carry is shed by weight, and the plan says how many machines more would carry it.
func TestInfeasibleDemandIsShedByWeight(t *testing.T) {
	w := &world{}
	w.machines(2, 1, 0, 0)
	w.app(100*ms, 150)
	w.variant(10*ms, 0, 1, 0)
	w.app(100*ms, 150).Weight = 5
	w.variant(10*ms, 0, 1, 0)
	for v := range w.Variants {
		w.Variants[v].MaxBatch = 1
	}
	p := w.plan(t, Planner{}, nil)
	if p.Shed == nil || math.Abs(p.Shed[0]-100) > 0.01 || p.Shed[1] > 0.01 {
		t.Errorf("sheds %v, want 100/s of the first app", p.Shed)
	}
	if !slices.Equal(p.Shortage, []int{1}) {
		t.Errorf("short of %v machines, want 1", p.Shortage)
	}
}

// Memory for two of three apps: the one of the lowest weight is left out, and a world in which nothing fits is refused.
func TestMemoryForSomeApps(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 100*mebi)
	for k := range 3 {
		w.app(100*ms, 10).Weight = float64(3 - k)
		w.variant(ms, ms, 1, 50*mebi)
	}
	p := w.plan(t, Planner{}, nil)
	if len(p.Instances) != 2 || p.Shed == nil || p.Shed[2] < 9.9 || p.Shed[0] > 0 || p.Shed[1] > 0 {
		t.Errorf("%d instances, sheds %v", len(p.Instances), p.Shed)
	}
	w.DeviceTypes[0].MemoryBytes = 10 * mebi
	_, err := (&Planner{Profile: w}).Plan(context.Background(), plan.Request{Spec: &w.Spec, Rates: w.rates})
	if err == nil || !strings.Contains(err.Error(), "memory of 50MiB") {
		t.Errorf("nothing fits: %v", err)
	}
}

// random draws a small world with little memory.
func random(rng *rand.Rand, kinds int, rented bool) *world {
	w := &world{}
	for range 1 + rng.IntN(kinds) {
		price := 0.0
		if rented {
			price = 0.1 + rng.Float64()
		}
		w.machines(1+rng.IntN(3), 0.5+rng.Float64(), price, int64(60+rng.IntN(60))*mebi)
	}
	for range 1 + rng.IntN(3) {
		a := w.app(time.Duration(40+rng.IntN(100))*ms, 20+rng.Float64()*100)
		a.Weight = 1 + float64(rng.IntN(2))
		for v := range 1 + rng.IntN(2) {
			w.variant(time.Duration(1+v*rng.IntN(8))*ms, time.Duration(1+v)*2*ms, 0.6+0.15*float64(v),
				int64(20+rng.IntN(40))*mebi)
		}
	}
	return w
}

// best is the highest value of any residency, by trying all.
func best(m *problem) float64 {
	sites := m.fresh(m.all())
	x := m.newResidency(sites, &work{math.Inf(1), context.Background()})
	most := 0.0
	var fill func(i, j int)
	fill = func(i, j int) {
		if i == len(sites) {
			x.evaluate()
			most = max(most, x.value)
			return
		}
		if j == len(sites[i].holds) {
			fill(i+1, 0)
			return
		}
		if x.allows(i, j) {
			x.load(i, j)
			fill(i, j+1)
			x.unload(i, j)
		}
		fill(i, j+1)
	}
	fill(0, 0)
	return most
}

// The residency is near the best of all in small worlds.
func TestResidencyAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sum, n, worst := 0.0, 0, 1.0
	for range 60 {
		w := random(rng, 2, false)
		m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			continue
		}
		options := 0
		for k := range m.kinds {
			options += len(m.kinds[k].options) * len(m.kinds[k].workers)
		}
		if options > 13 {
			continue
		}
		x := m.newResidency(m.fresh(m.all()), &work{mostWork, context.Background()})
		x.decide()
		x.evaluate()
		part := x.value / best(m)
		sum, n, worst = sum+part, n+1, min(worst, part)
	}
	t.Logf("%d worlds: mean %.4f, worst %.4f of the best", n, sum/float64(n), worst)
	if n < 15 || sum/float64(n) < 0.995 || worst < 0.95 {
		t.Errorf("%d worlds: mean %.4f, worst %.4f of the best residency", n, sum/float64(n), worst)
	}
}

// The rented machines cost no more than the cheapest of all numbers that carry the demand.
func TestRentedMachinesAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for k := range 100 {
		w := random(rng, 3, true)
		for d := range w.DeviceTypes {
			w.DeviceTypes[d].MemoryBytes = 0
		}
		m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			continue
		}
		headroom := 0.2 + 2*rng.Float64()
		x := m.newMarket(headroom)
		got := x.cheapest()
		var want counts
		for _, n := range m.between(make(counts, len(m.kinds)), m.all()) {
			if m.newMarket(headroom).carries(n) {
				want = n
				break
			}
		}
		if want == nil {
			want = m.all()
		}
		if m.cost(got) > m.cost(want)+1e-9 {
			t.Errorf("world %d at %.2f: %v for %v $/h, and %v for %v", k, headroom, got, m.cost(got), want,
				m.cost(want))
		}
	}
}

// A target asks for the accurate variant, which takes ten times as many machines.
func TestAccuracyTargetIsBought(t *testing.T) {
	w := &world{}
	w.machines(20, 1, 1, 0)
	app := w.app(time.Second, 200)
	w.variant(2*ms, 0, 0.5, 0)
	w.variant(20*ms, 0, 1, 0)
	for v := range w.Variants {
		w.Variants[v].MaxBatch = 1
	}
	if got := w.used(w.plan(t, Planner{}, nil))[0]; got != 1 {
		t.Errorf("%d machines without a target, want 1", got)
	}
	app.AccuracyTarget = 0.9
	p := w.plan(t, Planner{}, nil)
	// 0.8 of the queries by the accurate variant: 200 (0.8 20 + 0.2 2) ms/s = 3.28, times the head-room.
	if got := w.used(p)[0]; got != 5 {
		t.Errorf("%d machines with a target, want 5", got)
	}
	if !p.BoundsCost || math.Abs(p.Bound-3.28) > 0.01 {
		t.Errorf("bound of %v $/h, want 3.28", p.Bound)
	}
}

// A budget is kept, and the limit of a type.
func TestBudgetAndMost(t *testing.T) {
	w := &world{}
	w.machines(10, 1, 1, 0)
	w.app(100*ms, 450)
	w.variant(10*ms, 0, 1, 0)
	w.Variants[0].MaxBatch = 1
	if p := w.plan(t, Planner{}, nil); p.Forecast.CostPerHour != 6 || p.Shed != nil {
		t.Errorf("%v $/h, sheds %v, want 6 $/h: 1.3 times 450/s", p.Forecast.CostPerHour, p.Shed)
	}
	p := w.plan(t, Planner{Options: Options{Budget: 3.5}}, nil)
	if p.Forecast.CostPerHour != 3 || p.Shed == nil || math.Abs(p.Shed[0]-150) > 0.1 {
		t.Errorf("%v $/h within 3.5, sheds %v", p.Forecast.CostPerHour, p.Shed)
	}
	w.DeviceTypes[0].MaxMachines = 2
	if p := w.plan(t, Planner{}, nil); p.Forecast.CostPerHour != 2 {
		t.Errorf("%v $/h, want 2 of at most two machines", p.Forecast.CostPerHour)
	}
}

// Instances of an app are at least and at most as many as it says.
func TestLimitsOfInstances(t *testing.T) {
	w := &world{}
	w.machines(6, 1, 0, 100*mebi)
	w.app(100*ms, 10).MaxInstances = 2
	w.variant(ms, ms, 1, 30*mebi)
	w.app(100*ms, 1).MinInstances = 5
	w.variant(ms, ms, 1, 30*mebi)
	w.app(100*ms, 300)
	w.variant(ms, ms, 1, 80*mebi)
	n := make([]int, 3)
	for _, i := range w.plan(t, Planner{}, nil).Instances {
		n[i.Stage]++
	}
	if n[0] < 1 || n[0] > 2 || n[1] < 5 || n[2] < 1 {
		t.Errorf("instances %v, want at most 2 of the first, at least 5 of the second", n)
	}
}

// Rented machines are as many as the least number of instances asks for, without any calls, too; and no more than the
// most have any use for.
func TestLimitsOfInstancesOnRentedMachines(t *testing.T) {
	for _, c := range []struct {
		least, most int
		rate        float64
		machines    int
	}{
		{0, 0, 1, 1},
		{4, 0, 1, 4},
		{4, 0, 0, 4},
		{0, 2, 5000, 2},
		{2, 3, 5000, 3},
	} {
		w := &world{}
		w.machines(8, 1, 1, 0)
		a := w.app(100*ms, c.rate)
		a.MinInstances, a.MaxInstances = c.least, c.most
		w.variant(ms, ms, 1, 0)
		p := w.plan(t, Planner{}, nil)
		if len(p.Instances) != c.machines || p.Forecast.CostPerHour != float64(c.machines) {
			t.Errorf("%d to %d instances at %v queries/s: %d, %v $/h, want %d of each", c.least, c.most, c.rate,
				len(p.Instances), p.Forecast.CostPerHour, c.machines)
		}
		if out := p.OutOfBounds(&w.Spec); len(out) > 0 {
			t.Errorf("%d to %d instances: %v", c.least, c.most, out)
		}
	}
}

// Of machines that are tried the cheapest are taken that serve in time, and the forecast is what came out.
func TestTrialsDecide(t *testing.T) {
	w := &world{}
	w.machines(16, 1, 1, 0)
	w.app(100*ms, 300)
	w.variant(10*ms, 0, 1, 0)
	w.Variants[0].MaxBatch = 1
	for need := 3; need <= 16; need++ {
		tries := 0
		try := func(_ context.Context, r *plan.Request, p *plan.Plan) (plan.Tried, error) {
			tries++
			if r.Beliefs == nil {
				t.Error("a trial without beliefs")
			}
			out := plan.Tried{Queries: 1, Deviation: 0.003, Accuracy: 0.75, Late: []float64{0}}
			if n := w.used(p)[0]; n < need {
				out.Violation = 0.02 * float64(need-n)
			}
			return out, nil
		}
		p := w.plan(t, Planner{Try: try}, nil)
		if got := w.used(p)[0]; got != need || p.Forecast.Violation != 0 || p.Forecast.Accuracy != 0.75 {
			t.Errorf("%d machines where %d serve in time: %+v", got, need, p.Forecast)
		}
		if tries > DefaultTrials {
			t.Errorf("%d trials, at most %d", tries, DefaultTrials)
		}
		adopted := 0
		for _, x := range p.Trials {
			if x.Adopted {
				adopted++
				if x.Machines[0] != need || x.Violation != 0 || x.CostPerHour != float64(need) {
					t.Errorf("adopted: %+v", x)
				}
			}
		}
		if len(p.Trials) != tries || adopted != 1 || p.Choice == "" || p.Forecast.Deviation != 0.003 ||
			p.Forecast.Queries != 1 {
			t.Errorf("%d trials, of which %d adopted: %q, %+v", len(p.Trials), adopted, p.Choice, p.Forecast)
		}
	}
}

// Where owned machines that are ready for what may come are late by a trial, they are also tried as the present demand
// alone fills them, and the better of both is planned.
func TestPresentDemandIsTried(t *testing.T) {
	w := &world{}
	w.machines(10, 1, 0, 200*mebi)
	for _, rate := range []float64{140, 100, 60} {
		w.app(200*ms, rate)
		w.variant(15*ms, 15*ms, 1, 150*mebi) // one to a machine
	}
	count := func(p *plan.Plan) (n [3]int) {
		for _, i := range p.Instances {
			n[i.Stage]++
		}
		return n
	}
	ready := count(w.plan(t, Planner{}, nil))
	for _, x := range []struct {
		late  float64 // of the plan for what may come
		tries int
		stays bool
	}{{0, 2, true}, {0.1, 3, false}} {
		tries := 0
		p := w.plan(t, Planner{Try: func(_ context.Context, _ *plan.Request, p *plan.Plan) (plan.Tried, error) {
			tries++
			late := 0.0
			if count(p) == ready {
				late = x.late
			}
			return plan.Tried{Queries: 1, Violation: late, Late: []float64{late, late, late}, Utility: 1 - late}, nil
		}}, nil)
		if tries != x.tries || (count(p) == ready) != x.stays || p.Choice == "" {
			t.Errorf("%v late: %d trials, machines by app %v, before %v: %q", x.late, tries, count(p), ready, p.Choice)
		}
	}
}

// A demand that changes a little changes nothing, one that moves loads something, and machines that run are kept.
func TestSteadiness(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for k := range 20 {
		w := random(rng, 2, k%2 == 0)
		m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil || m == nil {
			continue
		}
		first := w.plan(t, Planner{}, nil)
		s := inForce(w, first)
		again := w.plan(t, Planner{}, s)
		if again.Loads != 0 || !reflect.DeepEqual(keys(first), keys(again)) {
			t.Errorf("world %d: the same demand again: %d loads, %v, was %v", k, again.Loads, keys(again), keys(first))
		}
		if k%2 == 1 { // numbers of rented machines follow the demand
			for a := range w.rates {
				w.rates[a] *= 1.01
			}
			if p := w.plan(t, Planner{}, s); p.Loads != 0 {
				t.Errorf("world %d: 1 %% more demand: %d loads", k, p.Loads)
			}
		}
	}
}

// keys lists what a plan runs where.
func keys(p *plan.Plan) (out []fleet.Key) {
	for _, i := range p.Instances {
		for _, v := range i.Variants {
			out = append(out, fleet.Key{Worker: i.Worker, Ordinal: i.Place<<16 + int32(v.Variant)})
		}
	}
	slices.SortFunc(out, func(a, b fleet.Key) int {
		return int(a.Worker-b.Worker)<<24 + int(a.Ordinal-b.Ordinal)
	})
	return out
}

// Demand that moves from one app to another moves the variants where memory holds one of them only.
func TestResidencyFollowsDemand(t *testing.T) {
	w := &world{}
	w.machines(8, 1, 0, 50*mebi)
	for _, rate := range []float64{600, 50} {
		w.app(100*ms, rate)
		w.variant(10*ms, 0, 1, 40*mebi)
	}
	for v := range w.Variants {
		w.Variants[v].MaxBatch = 1
	}
	first := w.plan(t, Planner{}, nil)
	if first.Shed != nil {
		t.Fatalf("sheds %v", first.Shed)
	}
	w.rates[0], w.rates[1] = w.rates[1], w.rates[0]
	second := w.plan(t, Planner{}, inForce(w, first))
	if second.Shed != nil || second.Loads == 0 || second.Loads > 6 {
		t.Errorf("sheds %v with %d loads", second.Shed, second.Loads)
	}
}

// A graph gets its objective split, and the slowest stage decides what it carries.
func TestGraphs(t *testing.T) {
	w := &world{}
	w.machines(4, 1, 0, 0)
	w.app(100*ms, 50)
	w.variant(10*ms, 0, 1, 0)
	w.stage(0)
	w.variant(10*ms, 0, 0.9, 0)
	for v := range w.Variants {
		w.Variants[v].MaxBatch = 1
	}
	p := w.plan(t, Planner{}, nil)
	// 10 ms at the first stage and twice 10 ms at the second: 33/s on each machine.
	if math.Abs(p.Capacity[0]-400.0/3) > 0.1 || p.Shed != nil || math.Abs(p.Forecast.Accuracy-0.9) > 1e-9 {
		t.Errorf("carries %v, sheds %v, accuracy %v", p.Capacity, p.Shed, p.Forecast.Accuracy)
	}
}

// A query of a graph whose second stage gets four items, on two machines: the second stage needs the time of two items,
// and the first gets what that leaves. With four machines it needs that of one.
func TestStagesTakeTheTimeOfAllItems(t *testing.T) {
	for _, c := range []struct {
		machines      int
		first, second time.Duration
	}{{2, 80 * ms, 90 * ms}, {4, 90 * ms, 90 * ms}, {1, 60 * ms, 90 * ms}} {
		w := &world{}
		w.machines(c.machines, 1, 0, 0)
		w.app(100*ms, 10)
		w.variant(0, 10*ms, 1, 0)
		w.stage(0)
		w.Stages[0].Next[0].FanOut = 4
		w.variant(0, 10*ms, 1, 0)
		m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			t.Fatal(err)
		}
		if m.stages[0].longest != c.first || m.stages[1].longest != c.second {
			t.Errorf("%d machines: runs may take %v and %v, want %v and %v", c.machines, m.stages[0].longest,
				m.stages[1].longest, c.first, c.second)
		}
	}
}

// A context that has ended leaves the first plan, which serves everything of each app; one that ends during a trial
// leaves what was tried until then. Without an end the same plan is made every time.
func TestPlansAtAnyTime(t *testing.T) {
	w := fleetOf(24, 6, 0)
	for a := range w.rates {
		w.rates[a] /= 3
	}
	r := plan.Request{Spec: &w.Spec, Rates: w.rates}
	ended, end := context.WithCancel(context.Background())
	end()
	first, err := (&Planner{Profile: w}).Plan(ended, r)
	if err != nil || first.Shed != nil {
		t.Fatalf("sheds %v: %v", first.Shed, err)
	}
	full := w.plan(t, Planner{}, nil)
	if !reflect.DeepEqual(full, w.plan(t, Planner{}, nil)) || full.Shed != nil || full.Gap > first.Gap {
		t.Errorf("gap %v with time, %v without", full.Gap, first.Gap)
	}

	w = &world{}
	w.machines(16, 1, 1, 0)
	w.app(100*ms, 300)
	w.variant(10*ms, 0, 1, 0)
	w.Variants[0].MaxBatch = 1
	for end := range 4 {
		ctx, stop := context.WithCancel(context.Background())
		tries := 0
		try := func(ctx context.Context, _ *plan.Request, p *plan.Plan) (plan.Tried, error) {
			if tries++; tries > end {
				stop()
				return plan.Tried{}, ctx.Err()
			}
			out := plan.Tried{Queries: 1}
			if w.used(p)[0] < 5 {
				out.Violation = 0.5
			}
			return out, nil
		}
		p, err := (&Planner{Profile: w, Try: try}).Plan(ctx, plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil || p.Shed != nil || len(p.Trials) != end || w.used(p)[0] > 13 {
			t.Errorf("%d trials: %d machines, %v, %v", end, w.used(p)[0], p.Trials, err)
		}
		stop()
	}
}

// Machines are many and hold few variants of many apps each: every app is served, and nearly as well as if memory held
// everything.
func TestManyAppsInLittleMemory(t *testing.T) {
	for _, c := range []struct{ machines, apps, hold int }{
		{60, 60, 2}, {500, 50, 2}, {100, 200, 8}, {90, 100, 2}, {1000, 200, 4}, {900, 400, 3},
	} {
		w := crowded(c.machines, c.apps, c.hold)
		out, err := (&Planner{Profile: w, Options: Options{Pooled: true}}).Plan(t.Context(),
			plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			t.Fatal(err)
		}
		if out.Shed != nil || out.Gap > 0.1 {
			t.Errorf("%d machines that hold %d variants of %d apps: left out %v, gap %.3f", c.machines, c.hold, c.apps,
				out.Shed, out.Gap)
		}
	}
}

// crowded draws apps of three variants each for three kinds of machines, which hold so many small variants.
func crowded(machines, apps, hold int) *world {
	rng := rand.New(rand.NewPCG(7, 8))
	w := &world{}
	for _, speed := range []float64{1, 0.5, 2} {
		w.machines(machines/3, speed, 0, int64(hold)*100*mebi)
	}
	for range apps {
		w.app(time.Duration(50+rng.IntN(150))*ms, (0.5+rng.Float64())*40*float64(machines)/float64(apps))
		for v := range 3 {
			w.variant(time.Duration(1+v)*ms, time.Duration(2+2*v)*ms, 0.6+0.08*float64(v), int64(60+20*v)*mebi)
		}
	}
	return w
}
