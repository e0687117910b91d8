package board

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// PlanLine is a plan, or a request that led to none, in short.
type PlanLine struct {
	Number      int      `json:"number"` // from 1
	AtS         float64  `json:"at_s"`
	TookS       float64  `json:"took_s"` // from the request to the plan
	Why         string   `json:"why"`    // it was asked for
	Planner     string   `json:"planner,omitempty"`
	InForce     bool     `json:"in_force"`
	Failure     string   `json:"failure,omitempty"`
	Ignored     bool     `json:"ignored,omitempty"` // it came too late
	Instances   int      `json:"instances"`
	Loads       int      `json:"loads"`
	CostPerHour float64  `json:"cost_per_hour"`
	Throughput  float64  `json:"throughput"`
	Accuracy    float64  `json:"effective_accuracy"`
	Violation   *float64 `json:"violation_ratio"`
	Shed        float64  `json:"shed"` // queries/s
	Choice      string   `json:"choice,omitempty"`
}

// PlanApp is what a plan says of an app, in queries/s.
type PlanApp struct {
	Name     string   `json:"name"`
	Seen     *float64 `json:"seen"` // when it was asked for
	Demand   *float64 `json:"demand"`
	Capacity *float64 `json:"capacity"`
	Shed     *float64 `json:"shed"`
	Late     *float64 `json:"violation_ratio"`
	Accuracy *float64 `json:"effective_accuracy"`
}

// PlanRow is how many instances of a stage with the same variants a plan has on a kind of machine.
type PlanRow struct {
	App       string   `json:"app"`
	Stage     string   `json:"stage"`
	Kind      string   `json:"kind"`
	Variants  []string `json:"variants"`
	Limit     int      `json:"batch_limit"` // of the first variant, in items
	Instances int      `json:"instances"`
	Workers   int      `json:"workers"`
	Share     float64  `json:"share"` // of the stage's traffic
}

// PlanTrial is a candidate that was simulated.
type PlanTrial struct {
	Candidate   string  `json:"candidate"`
	Machines    int     `json:"machines"`
	CostPerHour float64 `json:"cost_per_hour"`
	Loads       int     `json:"loads"`
	Violation   float64 `json:"violation_ratio"`
	Accuracy    float64 `json:"effective_accuracy"`
	Utility     float64 `json:"utility"`
	Adopted     bool    `json:"adopted"`
}

// PlanShort is how many more machines of a kind it takes to serve all.
type PlanShort struct {
	Kind string `json:"kind"`
	More int    `json:"more"`
}

// PlanView is a plan in full.
type PlanView struct {
	Schema int `json:"schema"`
	PlanLine
	Apps  []PlanApp   `json:"apps"`
	Rows  []PlanRow   `json:"rows"`
	Short []PlanShort `json:"short,omitempty"`
	// Bound is the proven best value of the planner's objective, Gap the relative distance to it; nil if not proven.
	Bound      *float64    `json:"bound"`
	Gap        *float64    `json:"gap"`
	BoundsCost bool        `json:"bounds_cost,omitempty"` // the bound is of CostPerHour
	Budgets    []StageMS   `json:"budgets,omitempty"`
	Trials     []PlanTrial `json:"trials,omitempty"`
	// Changes are the rows that differ from those of the plan before: of each, the instances then and now.
	Changes []PlanChange `json:"changes"`
}

// StageMS is a time of a stage in ms.
type StageMS struct {
	App   string  `json:"app"`
	Stage string  `json:"stage"`
	MS    float64 `json:"ms"`
}

// PlanChange is a row of a plan that had another number of instances in the plan before.
type PlanChange struct {
	PlanRow
	Before int `json:"before"`
}

func (b *Board) planLine(p *planned) PlanLine {
	x := PlanLine{
		Number: p.number, AtS: p.at.Seconds(), TookS: rounded(p.at.Sub(p.asked).Seconds()), Why: p.why,
		Failure: p.failure, Ignored: p.dropped, InForce: p == b.plans.inForce(),
	}
	if m := p.plan; m != nil {
		f := &m.Forecast
		x.Planner, x.Instances, x.Loads, x.Choice = m.Planner, len(m.Instances), m.Loads, m.Choice
		x.CostPerHour, x.Throughput, x.Accuracy = rounded(f.CostPerHour), rounded(f.Throughput), rounded(f.Accuracy)
		if f.Violation >= 0 {
			v := rounded(f.Violation)
			x.Violation = &v
		}
		for _, s := range m.Shed {
			x.Shed += s
		}
		x.Shed = rounded(x.Shed)
	}
	return x
}

// Plans returns the latest plans, latest first.
func (b *Board) Plans() []PlanLine {
	b.log.Lock()
	defer b.log.Unlock()
	out := []PlanLine{}
	for k := range slices.Backward(b.plans.list) {
		out = append(out, b.planLine(&b.plans.list[k]))
	}
	return out
}

// PlansMade returns how many plans and failures there were.
func (b *Board) PlansMade() int {
	b.log.Lock()
	defer b.log.Unlock()
	return b.plans.n
}

// Plan returns a plan by its number; false when it is not kept.
func (b *Board) Plan(number int) (*PlanView, bool) {
	b.log.Lock()
	defer b.log.Unlock()
	at := slices.IndexFunc(b.plans.list, func(p planned) bool { return p.number == number })
	if at < 0 {
		return nil, false
	}
	p := &b.plans.list[at]
	out := &PlanView{Schema: Schema, PlanLine: b.planLine(p), Apps: []PlanApp{}, Rows: []PlanRow{},
		Changes: []PlanChange{}}
	if p.plan == nil {
		return out, true
	}
	m := p.plan
	for a := range p.spec.Apps {
		f := p.forecastOf(a)
		x := PlanApp{
			Name: p.spec.Apps[a].Name, Demand: f.Demand, Capacity: f.Capacity, Shed: f.Shed, Late: f.Late,
			Accuracy: f.Accuracy,
		}
		if a < len(p.rates) {
			r := rounded(p.rates[a])
			x.Seen = &r
		}
		out.Apps = append(out.Apps, x)
	}
	for d, n := range m.Shortage {
		if n > 0 {
			out.Short = append(out.Short, PlanShort{b.spec.DeviceTypes[d].Name, n})
		}
	}
	for s, budget := range m.Budgets {
		if budget > 0 && s < len(p.spec.Stages) {
			st := &p.spec.Stages[s]
			out.Budgets = append(out.Budgets, StageMS{p.spec.Apps[st.App].Name, st.Name, ms(budget)})
		}
	}
	if m.Proven {
		bound, gap := rounded(m.Bound), rounded(m.Gap)
		out.Bound, out.Gap, out.BoundsCost = &bound, &gap, m.BoundsCost
	}
	for _, t := range m.Trials {
		x := PlanTrial{
			Candidate: t.Candidate, CostPerHour: rounded(t.CostPerHour), Loads: t.Loads, Adopted: t.Adopted,
			Violation: rounded(t.Violation), Accuracy: rounded(t.Accuracy), Utility: rounded(t.Utility),
		}
		for _, n := range t.Machines {
			x.Machines += n
		}
		out.Trials = append(out.Trials, x)
	}
	out.Rows = rows(p.spec, m)
	for k := at - 1; k >= 0; k-- {
		if x := &b.plans.list[k]; x.plan != nil {
			out.Changes = changes(rows(x.spec, x.plan), out.Rows)
			break
		}
	}
	return out, true
}

// Demand returns the queries/s by app that a plan was made for; nil for one that is not kept or had none. It has none
// of apps that took the place of one that was there at the start.
func (b *Board) Demand(number int) []float64 {
	b.log.Lock()
	defer b.log.Unlock()
	at := slices.IndexFunc(b.plans.list, func(p planned) bool { return p.number == number })
	if at < 0 {
		return nil
	}
	p := &b.plans.list[at]
	out := slices.Clone(p.rates)
	if p.plan != nil && len(p.plan.Demand) > 0 {
		out = slices.Clone(p.plan.Demand)
	}
	for a := range out {
		if a < len(p.spec.Apps) && p.spec.Apps[a].Generation > 0 {
			out[a] = 0
		}
	}
	return out
}

func ms(d time.Duration) float64 { return rounded(float64(d) / 1e6) }

// rows sums a plan up by stage, kind of machine and variants.
func rows(spec *serving.Spec, p *plan.Plan) []PlanRow {
	at := make(map[string]int)
	out := []PlanRow{}
	workers := make(map[string]map[serving.WorkerID]bool)
	for k := range p.Instances {
		i := &p.Instances[k]
		st := &spec.Stages[i.Stage]
		r := PlanRow{App: spec.Apps[st.App].Name, Stage: st.Name, Kind: spec.DeviceTypes[i.DeviceType(spec)].Name}
		for _, v := range i.Variants {
			r.Variants = append(r.Variants, spec.Variants[v.Variant].Name)
		}
		if len(i.Variants) > 0 {
			r.Limit = i.Variants[0].Limit
		}
		key := r.key()
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			workers[key] = make(map[serving.WorkerID]bool)
			out = append(out, r)
		}
		x := &out[at[key]]
		x.Instances++
		x.Share += i.Share
		workers[key][i.Worker] = true
		x.Workers = len(workers[key])
	}
	for k := range out {
		out[k].Share = rounded(out[k].Share)
	}
	slices.SortStableFunc(out, func(a, b PlanRow) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// key tells rows apart.
func (r *PlanRow) key() string {
	key := r.App + "\x00" + r.Stage + "\x00" + r.Kind + "\x00" + strconv.Itoa(r.Limit)
	for _, v := range r.Variants {
		key += "\x00" + v
	}
	return key
}

// changes returns the rows whose number of instances differs.
func changes(before, now []PlanRow) []PlanChange {
	had := make(map[string]PlanRow, len(before))
	for _, r := range before {
		had[r.key()] = r
	}
	out := []PlanChange{}
	for _, r := range now {
		if n := had[r.key()].Instances; n != r.Instances {
			out = append(out, PlanChange{r, n})
		}
		delete(had, r.key())
	}
	for _, r := range before {
		if _, gone := had[r.key()]; gone {
			x := PlanChange{r, r.Instances}
			x.Instances = 0
			out = append(out, x)
		}
	}
	return out
}
