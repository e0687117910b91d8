package questions

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/limits"
)

// Adviser plans for a demand in queries/s by app, and says what keeps it from being carried and what would mend it.
// planning.Advise is one; this package does not know it.
type Adviser func(ctx context.Context, p *host.Profiled, rates []float64) (*Advice, error)

// Advice is what 'sluice plan' says of a demand.
type Advice struct {
	System  string  `json:"system"`
	Planner string  `json:"planner"`
	Demand  float64 `json:"demand"` // queries/s
	Served  float64 `json:"served"`
	Carried bool    `json:"carried"`
	Facts   []Fact  `json:"facts"`
	// Summary says whether the demand can be carried. It and Lists are empty where all of it is.
	Summary []string     `json:"summary,omitempty"`
	Lists   []AdviceList `json:"lists,omitempty"`
}

// Fact is a line about a plan in words: what it is about, and what is so.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// AdviceList is what nothing serves, what keeps a demand from being carried, or what would mend it.
type AdviceList struct {
	Title string    `json:"title"`
	Items []Advised `json:"items,omitempty"`
}

// Advised is a line of such a list.
type Advised struct {
	Text string `json:"text"`
	// Remedy is what a line changes. Change is the same as a question "what if" has it. Both are nil where the line is
	// no remedy, or no such question can be asked.
	Remedy *Remedy `json:"-"`
	Change *Change `json:"change,omitempty"`
}

// Remedy is a remedy by the names of device types and apps.
type Remedy struct {
	Add     map[string]int     `json:"add,omitempty"` // machines by device type
	Budget  *float64           `json:"budget,omitempty"`
	Floors  map[string]float64 `json:"accuracy_floors,omitempty"`
	Targets map[string]float64 `json:"accuracy_targets,omitempty"`
	SLOs    map[string]float64 `json:"slos_ms,omitempty"`
}

// adviceTime bounds the search for what would mend a demand. It is a part of whatIfTimeout.
const adviceTime = 25 * time.Second

// adviceOf asks the adviser about a demand, and makes changes of remedies.
func adviceOf(ctx context.Context, p *host.Profiled, ask Adviser, rates []float64) (*Advice, error) {
	limit, done := context.WithTimeout(ctx, adviceTime)
	defer done()
	a, err := ask(limit, p, rates)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fault.Errorf(fault.Failed, "what would mend it was not found in %v: ask 'sluice plan'", adviceTime)
	}
	if err != nil {
		return nil, err
	}
	for k := range a.Lists {
		for n := range a.Lists[k].Items {
			if x := &a.Lists[k].Items[n]; x.Remedy != nil {
				x.Change = asChange(p, x.Remedy)
			}
		}
	}
	return a, nil
}

// asChange returns a remedy as a change of the configuration's file; nil where the file has no such machines.
func asChange(p *host.Profiled, m *Remedy) *Change {
	out := &Change{Budget: m.Budget}
	for kind, n := range m.Add {
		at := slices.IndexFunc(p.File().Workers, func(w config.Worker) bool { return w.DeviceType == kind })
		if at < 0 {
			return nil
		}
		put(&out.Machines, p.File().Workers[at].Name, max(1, p.File().Workers[at].Count)+n)
	}
	app := func(name string, set func(*AppChange)) {
		c := out.Apps[name]
		set(&c)
		put(&out.Apps, name, c)
	}
	for name, x := range m.Floors {
		app(name, func(c *AppChange) { c.Floor = &x })
	}
	for name, x := range m.Targets {
		app(name, func(c *AppChange) { c.Target = &x })
	}
	for name, x := range m.SLOs {
		x = math.Ceil(x*1000) / 1000
		app(name, func(c *AppChange) { c.SLOMS = &x })
	}
	return out
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

// diagnosis answers a question about a demand instead of arrivals.
func (q *WhatIf) diagnosis(ctx context.Context, o *host.Opened, options host.Options, ask Adviser) (*WhatIfAnswer,
	error) {
	if ask == nil {
		return nil, fault.Errorf(fault.Usage, "this program cannot say what would carry a demand: ask 'sluice plan'")
	}
	changed, err := changed(o, &q.Change, options)
	if err != nil {
		return nil, err
	}
	p, err := q.measured(changed)
	if err != nil {
		return nil, err
	}
	rates := make([]float64, len(p.Spec().Apps))
	if len(q.Demand) < len(rates) {
		return nil, fault.Errorf(fault.Usage, "demand has %d rates, want one for each of %d apps", len(q.Demand),
			len(rates))
	}
	copy(rates, q.Demand)
	for a, r := range rates {
		if !(r >= 0 && r <= limits.Demand) {
			return nil, fault.Errorf(fault.Usage, "demand[%d]: is %v, want 0 to %g queries/s", a, r, limits.Demand)
		}
		p.Tables().Apps[a].Demand = r
	}
	out := &WhatIfAnswer{Schema: 1}
	if left := len(q.Demand) - len(rates); left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d apps that are not in the file are left out", left))
	}
	out.Advice, err = adviceOf(ctx, p, ask, rates)
	return out, err
}
