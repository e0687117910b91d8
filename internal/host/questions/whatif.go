package questions

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Change is what a question "what if" changes. Zero fields change nothing.
type Change struct {
	// Apps are by name.
	Apps map[string]AppChange `json:"apps,omitempty"`
	// Machines are the numbers of machines, by the name of a worker or a group of the configuration.
	Machines map[string]int `json:"machines,omitempty"`
	// System is another system: NAME, or ROUTER+BATCHER.
	System string `json:"system,omitempty"`
	// Budget is the most that a plan may cost in $/h, for planners that rent; see system.budget.
	Budget *float64 `json:"budget,omitempty"`
}

// AppChange is a change of one app.
type AppChange struct {
	Load   *float64 `json:"load,omitempty"`   // factor of its queries, from 0 to mostLoad
	SLOMS  *float64 `json:"slo_ms,omitempty"` // latency objective
	Floor  *float64 `json:"accuracy_floor,omitempty"`
	Target *float64 `json:"accuracy_target,omitempty"`
}

// Bounds of a question.
const (
	mostLoad     = 8
	mostMachines = 10000
	mostAsked    = 1 << 17 // queries of one simulated run
	whatIfSeed   = 1
)

// WhatIf is a question: how would the recorded arrivals have been served after a change?
type WhatIf struct {
	// File is the configuration's path, System the one that it runs where that is not the file's.
	File   string `json:"file"`
	System string `json:"system,omitempty"`
	// Measurements are what the simulated machines and the planner know.
	Measurements serving.Measurements `json:"measurements"`
	Arrivals     []workload.Arrival   `json:"arrivals"` // by rising time, from 0
	Span         time.Duration        `json:"span"`
	Change       Change               `json:"change"`
	// Demand asks, instead, what keeps a demand in queries/s by app from being carried, after the change.
	Demand []float64 `json:"demand,omitempty"`
}

// WhatIfAnswer compares the simulated run without the change with that with it.
type WhatIfAnswer struct {
	Schema  int            `json:"schema"`
	SpanS   float64        `json:"span_s"`
	Queries int            `json:"queries"` // that were recorded
	Before  *report.Report `json:"before"`
	After   *report.Report `json:"after"`
	// Plans are in short what the first plans of the two runs use and expect.
	PlanBefore WhatIfPlan `json:"plan_before"`
	PlanAfter  WhatIfPlan `json:"plan_after"`
	// Configuration has the changed fields as sluice.yaml writes them.
	Configuration string   `json:"configuration"`
	Notes         []string `json:"notes,omitempty"`
	// Advice is about the demand after the change, or the one that was asked about; nil where nobody advises.
	Advice *Advice `json:"advice,omitempty"`
}

// WhatIfPlan is a plan in short.
type WhatIfPlan struct {
	Planner     string         `json:"planner"`
	CostPerHour float64        `json:"cost_per_hour"`
	Machines    map[string]int `json:"machines"` // used, by device type
	Shed        float64        `json:"shed"`     // queries/s that it knowingly does not serve
	Shortage    map[string]int `json:"shortage,omitempty"`
}

// Answer plans and simulates both runs. It takes seconds of one core. A nil adviser advises nothing. An error is of
// kind fault.Config or fault.Usage where the change is impossible.
func (q *WhatIf) Answer(ctx context.Context, options host.Options, advise Adviser) (out *WhatIfAnswer, err error) {
	err = dataplane.Safely("question", func() (err error) {
		out, err = q.answer(ctx, options, advise)
		return err
	})
	return out, err
}

func (q *WhatIf) answer(ctx context.Context, options host.Options, advise Adviser) (*WhatIfAnswer, error) {
	if q.Demand == nil && (len(q.Arrivals) == 0 || q.Span <= 0) {
		return nil, fault.Errorf(fault.Usage, "no query has arrived in the latest minutes: send some, and ask again")
	}
	o, err := host.Open(q.File, options)
	if err != nil {
		return nil, err
	}
	if q.System != "" {
		if o, err = o.WithSystem(q.System); err != nil {
			return nil, err
		}
	}
	if q.Demand != nil {
		return q.diagnosis(ctx, o, options, advise)
	}
	out := &WhatIfAnswer{Schema: 1, SpanS: q.Span.Seconds(), Queries: len(q.Arrivals)}
	known := slices.DeleteFunc(slices.Clone(q.Arrivals), func(a workload.Arrival) bool {
		return int(a.App) >= len(o.Spec().Apps)
	})
	if left := len(q.Arrivals) - len(known); left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d queries are left out, of functions that were deployed or models "+
			"that were loaded since: a question changes the configuration's file", left))
	}
	if len(known) == 0 {
		return nil, fault.Errorf(fault.Usage, "no query of the latest minutes is of an app of %s, which a question "+
			"changes: functions that were deployed and models that were loaded are not in it", q.File)
	}
	p, err := q.offered(o, known)
	if err != nil {
		return nil, err
	}
	if out.Before, out.PlanBefore, err = q.run(ctx, p, known, "as it was, simulated"); err != nil {
		return nil, err
	}
	changed, err := changed(o, &q.Change, options)
	if err != nil {
		return nil, err
	}
	offered, err := q.Change.scaled(changed, known, q.Span)
	if err != nil {
		return nil, err
	}
	if p, err = q.offered(changed, offered); err != nil {
		return nil, err
	}
	if out.After, out.PlanAfter, err = q.run(ctx, p, offered, "what if"); err != nil {
		return nil, err
	}
	if advise != nil {
		if out.Advice, err = adviceOf(ctx, p, advise, p.Demand()); err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	out.Configuration, err = q.Change.snippet(changed, offered, q.Span)
	return out, err
}

// measured returns what is known of the configuration's models. Variants that came since have higher numbers.
func (q *WhatIf) measured(o *host.Opened) (*host.Profiled, error) {
	n := len(o.Spec().Variants)
	return o.WithMeasurements(q.Measurements.Of(func(v serving.VariantID, _ serving.DeviceTypeID) (serving.VariantID,
		bool) {
		return v, int(v) < n
	}), host.Measured)
}

// offered returns what is needed to plan, with the rates of some arrivals as demand.
func (q *WhatIf) offered(o *host.Opened, arrivals []workload.Arrival) (*host.Profiled, error) {
	p, err := q.measured(o)
	if err != nil {
		return nil, err
	}
	for a := range p.Tables().Apps {
		p.Tables().Apps[a].Demand = 0
	}
	for k := range arrivals {
		p.Tables().Apps[arrivals[k].App].Demand += 1 / q.Span.Seconds()
	}
	return p, nil
}

// run plans for the rates of some arrivals and simulates them.
func (q *WhatIf) run(ctx context.Context, p *host.Profiled, arrivals []workload.Arrival, name string) (*report.Report,
	WhatIfPlan, error) {
	planned, err := p.Plan(ctx)
	if err != nil {
		return nil, WhatIfPlan{}, err
	}
	r, err := planned.SimulateArrivals(host.Simulation{Seed: whatIfSeed, PlanDelay: host.DefaultPlanDelay,
		NoBound: true}, name,
		host.Offered{Queries: workload.FromSlice(arrivals), Span: q.Span})
	return r, inShort(planned), err
}

func inShort(p *host.Planned) WhatIfPlan {
	spec := p.Spec()
	out := WhatIfPlan{Planner: p.FirstPlan().Planner, CostPerHour: p.FirstPlan().Forecast.CostPerHour,
		Machines: make(map[string]int), Shortage: make(map[string]int)}
	seen := make(map[serving.WorkerID]bool)
	for k := range p.FirstPlan().Instances {
		if w := p.FirstPlan().Instances[k].Worker; !seen[w] {
			seen[w] = true
			out.Machines[spec.DeviceTypes[spec.Workers[w].DeviceType].Name]++
		}
	}
	for _, s := range p.FirstPlan().Shed {
		out.Shed += s
	}
	for d, n := range p.FirstPlan().Shortage {
		if n > 0 {
			out.Shortage[spec.DeviceTypes[d].Name] = n
		}
	}
	return out
}

// changed returns the configuration with a change.
func changed(o *host.Opened, c *Change, options host.Options) (*host.Opened, error) {
	f := *o.File()
	f.Apps, f.Workers = slices.Clone(o.File().Apps), slices.Clone(o.File().Workers)
	for _, name := range slices.Sorted(maps.Keys(c.Apps)) {
		at := slices.IndexFunc(f.Apps, func(a config.App) bool { return a.Name == name })
		if at < 0 {
			return nil, fault.Errorf(fault.Usage, "apps.%s: there is no such app in %s", name, o.Name())
		}
		if err := c.Apps[name].apply(&f.Apps[at]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Machines)) {
		at := slices.IndexFunc(f.Workers, func(w config.Worker) bool { return w.Name == name })
		n := c.Machines[name]
		switch {
		case at < 0:
			return nil, fault.Errorf(fault.Usage, "machines.%s: there is no such worker in %s", name, o.Name())
		case n < 0 || n > mostMachines:
			return nil, fault.Errorf(fault.Usage, "machines.%s: %d is not from 0 to %d", name, n, mostMachines)
		}
		f.Workers[at].Count = n
		if n != o.File().Workers[at].Count {
			f.Workers[at].Backend.Address, f.Workers[at].Backend.Addresses = "", nil // simulated, not called
		}
	}
	f.Workers = slices.DeleteFunc(f.Workers, func(w config.Worker) bool { return w.Count == 0 })
	if len(f.Workers) == 0 {
		return nil, fault.Errorf(fault.Usage, "machines: none is left")
	}
	tables, err := f.Resolve()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	out := o.WithFile(&f, tables)
	if !slices.EqualFunc(tables.Spec.DeviceTypes, o.Spec().DeviceTypes, func(a, b serving.DeviceType) bool {
		return a.Name == b.Name
	}) {
		return nil, fault.Errorf(fault.Config, "with these machines the placement cuts them otherwise than they were "+
			"measured: change placement in the file, and simulate it with 'sluice simulate'")
	}
	if c.System != "" {
		s, err := host.ParseSystem(c.System)
		if err != nil {
			return nil, err
		}
		out = out.Under(s)
	}
	if c.Budget != nil {
		s := out.System()
		if err := s.Set(map[string]any{"budget": *c.Budget}); err != nil {
			return nil, fault.Errorf(fault.Usage, "budget: %w: choose a system that rents machines, such as kairos",
				err)
		}
		out = out.Under(s)
	}
	return out, nil
}

func (c AppChange) apply(a *config.App) error {
	share := func(name string, v *float64, to *float64) error {
		if v == nil {
			return nil
		}
		if !(*v >= 0 && *v <= 1) {
			return fault.Errorf(fault.Usage, "apps.%s.%s: %v is not from 0 to 1", a.Name, name, *v)
		}
		*to = *v
		return nil
	}
	if err := share("accuracy_floor", c.Floor, &a.AccuracyFloor); err != nil {
		return err
	}
	if err := share("accuracy_target", c.Target, &a.AccuracyTarget); err != nil {
		return err
	}
	if c.SLOMS != nil {
		if !(*c.SLOMS >= 1 && *c.SLOMS <= 3600e3) {
			return fault.Errorf(fault.Usage, "apps.%s.slo_ms: %v is not from 1 to 3600000", a.Name, *c.SLOMS)
		}
		a.SLO.Latency = config.Duration(*c.SLOMS * float64(time.Millisecond))
	}
	return nil
}

// scaled thins the arrivals of an app out, or repeats them up to half a second aside, so that bursts stay bursts.
func (c *Change) scaled(o *host.Opened, arrivals []workload.Arrival, span time.Duration) ([]workload.Arrival, error) {
	factors := make([]float64, len(o.Spec().Apps))
	for a := range factors {
		factors[a] = 1
		if x := c.Apps[o.Spec().Apps[a].Name].Load; x != nil {
			if !(*x >= 0 && *x <= mostLoad) {
				return nil, fault.Errorf(fault.Usage, "apps.%s.load: %v is not from 0 to %d", o.Spec().Apps[a].Name, *x,
					mostLoad)
			}
			factors[a] = *x
		}
	}
	rng := workload.Rand(whatIfSeed, "scaled arrivals")
	out := make([]workload.Arrival, 0, len(arrivals))
	for k := range arrivals {
		f := factors[arrivals[k].App]
		for ; f > 0; f-- {
			if f < 1 && rng.Float64() >= f {
				break
			}
			x := arrivals[k]
			if f != factors[x.App] { // not the first
				aside := time.Duration((rng.Float64() - 0.5) * float64(time.Second))
				x.At = min(max(0, x.At.Add(aside)), serving.Time(span))
				x.Stream = 0
			}
			out = append(out, x)
		}
		if len(out) > mostAsked {
			return nil, fault.Errorf(fault.Usage, "more than %d queries would have to be simulated: ask about a "+
				"shorter span, or a lower load", mostAsked)
		}
	}
	slices.SortStableFunc(out, func(a, b workload.Arrival) int { return int(a.At - b.At) })
	if len(out) == 0 {
		return nil, fault.Errorf(fault.Usage, "no query is left to simulate")
	}
	return out, nil
}

// snippet writes the changed fields as a sluice.yaml has them.
func (c *Change) snippet(o *host.Opened, arrivals []workload.Arrival, span time.Duration) (string, error) {
	counts := make([]int, len(o.Spec().Apps))
	for k := range arrivals {
		counts[arrivals[k].App]++
	}
	out := make(map[string]any)
	var apps, workers []map[string]any
	for a := range o.Spec().Apps {
		name := o.Spec().Apps[a].Name
		x, ok := c.Apps[name]
		if !ok {
			continue
		}
		m := map[string]any{"name": name}
		if x.Load != nil {
			m["demand"] = math.Round(10*float64(counts[a])/span.Seconds()) / 10
		}
		if x.SLOMS != nil {
			m["slo"] = map[string]any{"latency": (time.Duration(*x.SLOMS * 1e6)).String()}
		}
		if x.Floor != nil {
			m["accuracy_floor"] = *x.Floor
		}
		if x.Target != nil {
			m["accuracy_target"] = *x.Target
		}
		apps = append(apps, m)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Machines)) {
		workers = append(workers, map[string]any{"name": name, "count": c.Machines[name]})
	}
	if apps != nil {
		out["apps"] = apps
	}
	if workers != nil {
		out["workers"] = workers
	}
	system := make(map[string]any)
	if c.System != "" {
		system["name"] = c.System
	}
	if c.Budget != nil {
		system["budget"] = *c.Budget
	}
	if len(system) > 0 {
		out["system"] = system
	}
	if len(out) == 0 {
		return "# nothing was changed\n", nil
	}
	b, err := yaml.Marshal(out)
	return "# fields to change in sluice.yaml; the other fields stay as they are\n" + string(b), err
}
