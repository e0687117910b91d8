package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/serving"
)

// Remedy is a change with which the demand would be carried.
type Remedy struct {
	// Kind is workers, budget, most, memory, accuracy_floor, accuracy_target, max_instances, slo, options or demand.
	// Several are joined by +.
	Kind        string             `json:"kind"`
	Add         map[string]int     `json:"add,omitempty"`
	Most        map[string]int     `json:"most,omitempty"`   // machines that can be rented, in all
	Budget      *float64           `json:"budget,omitempty"` // $/h
	Memory      map[string]int64   `json:"memory,omitempty"` // bytes, by device type
	Floors      map[string]float64 `json:"accuracy_floors,omitempty"`
	Targets     map[string]float64 `json:"accuracy_targets,omitempty"`
	SLOs        map[string]float64 `json:"slos_ms,omitempty"`
	Instances   map[string]int     `json:"max_instances,omitempty"`
	Demand      map[string]float64 `json:"demand,omitempty"`
	CostPerHour *float64           `json:"cost_per_hour,omitempty"` // $/h of what is added
	Proven      bool               `json:"proven,omitempty"`        // no smaller change of its kind is enough
	Text        string             `json:"text"`
}

// namedRemedy returns a remedy with names instead of identifiers.
func namedRemedy(spec *serving.Spec, m *diagnosis.Remedy, d *Demand) Remedy {
	x := &naming{spec: spec, out: Remedy{Proven: m.Proven}}
	if len(m.Add) > 0 {
		x.addition(m)
	}
	for _, a := range m.Most {
		t := &spec.DeviceTypes[a.Device]
		if put(&x.out.Most, t.Name, a.Workers); len(m.Add) == 0 && m.Budget == 0 {
			x.out.CostPerHour = &m.CostPerHour
		}
		x.note("most", "most of %s %d (now %d)", t.Name, a.Workers, t.MaxMachines)
	}
	if m.Budget > 0 {
		x.out.Budget = &m.Budget
		x.note("budget", "a budget of %s $/h", quantity.Dollars(m.Budget))
	}
	for _, y := range m.Memory {
		t := &spec.DeviceTypes[y.Device]
		put(&x.out.Memory, t.Name, y.To)
		x.note("memory", "memory of %s %s (now %s)", t.Name, quantity.Bytes(y.To), quantity.Bytes(t.MemoryBytes))
	}
	for _, f := range m.Floors {
		app := &spec.Apps[f.App]
		put(&x.out.Floors, app.Name, f.To)
		x.note("accuracy_floor", "accuracy_floor of %s %g (now %g)", app.Name, f.To, app.Floor)
	}
	for _, f := range m.Targets {
		app := &spec.Apps[f.App]
		put(&x.out.Targets, app.Name, f.To)
		x.note("accuracy_target", "accuracy_target of %s %g (now %g)", app.Name, f.To, app.AccuracyTarget)
	}
	for _, o := range m.SLOs {
		app := &spec.Apps[o.App]
		put(&x.out.SLOs, app.Name, quantity.Milliseconds(o.To))
		x.note("slo", "SLO of %s %v (now %v)", app.Name, o.To, app.SLO.Latency)
	}
	for _, i := range m.Instances {
		app := &spec.Apps[i.App]
		put(&x.out.Instances, app.Name, i.To)
		x.note("max_instances", "max_instances of %s %d (now %d)", app.Name, i.To, app.MaxInstances)
	}
	for _, less := range m.Demand {
		put(&x.out.Demand, spec.Apps[less.App].Name, less.To)
		x.note("demand", "demand of %s %s (now %s)", spec.Apps[less.App].Name, quantity.Rate(less.To),
			quantity.Rate(d.Rates[less.App]))
	}
	if m.AnyVariant {
		x.note("options", "a system that may use any variant")
	}
	if m.FreePlace {
		x.note("options", "a system that may move workers between apps")
	}
	x.out.Kind, x.out.Text = strings.Join(x.kinds, "+"), strings.Join(x.parts, " and ")
	if len(m.Add) > 0 && !m.Proven {
		x.out.Text += " (perhaps fewer would do)"
	}
	return x.out
}

// naming is a Remedy while its text is written.
type naming struct {
	spec         *serving.Spec
	out          Remedy
	kinds, parts []string
}

func (x *naming) note(kind, format string, args ...any) {
	if !slices.Contains(x.kinds, kind) {
		x.kinds = append(x.kinds, kind)
	}
	x.parts = append(x.parts, fmt.Sprintf(format, args...))
}

func put[V any](to *map[string]V, name string, value V) {
	if *to == nil {
		*to = make(map[string]V)
	}
	(*to)[name] = value
}

// addition names added workers.
func (x *naming) addition(m *diagnosis.Remedy) {
	x.out.Add, x.out.CostPerHour = make(map[string]int), &m.CostPerHour
	var parts []string
	priced := false
	for _, a := range m.Add {
		d := &x.spec.DeviceTypes[a.Device]
		x.out.Add[d.Name] = a.Workers
		priced = priced || d.PricePerHour > 0
		parts = append(parts, fmt.Sprintf("%d %s", a.Workers, d.Name))
	}
	text := "add " + strings.Join(parts, " and ")
	if priced {
		text += fmt.Sprintf(", %s $/h more", quantity.Dollars(m.CostPerHour))
	}
	x.note("workers", "%s", text)
}
