package planning

import (
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/measure/quantity"
	"github.com/sluice-serving/sluice/planner/proteus"
	"github.com/sluice-serving/sluice/serving"
)

// Mend is a change with which the demand would be carried.
type Mend struct {
	Kind        string             `json:"kind"` // workers, accuracy_floor, slo, accuracy_floor+slo, options or demand
	Add         map[string]int     `json:"add,omitempty"`
	Floors      map[string]float64 `json:"accuracy_floors,omitempty"`
	SLOs        map[string]float64 `json:"slos_ms,omitempty"`
	Demand      map[string]float64 `json:"demand,omitempty"`
	CostPerHour *float64           `json:"cost_per_hour,omitempty"` // $/h of what is added
	Proven      bool               `json:"proven,omitempty"`        // no smaller change of its kind is enough
	Text        string             `json:"text"`
}

// namedMend returns a mend with names instead of identifiers.
func namedMend(spec *serving.Spec, m *proteus.Mend, d *Demand) Mend {
	if len(m.Add) > 0 {
		return namedAddition(spec, m)
	}
	x := Mend{Proven: m.Proven}
	var parts []string
	note := func(to *map[string]float64, app serving.AppID, value float64, format string, args ...any) {
		if *to == nil {
			*to = make(map[string]float64)
		}
		(*to)[spec.Apps[app].Name] = value
		parts = append(parts, fmt.Sprintf(format, args...))
	}
	for _, f := range m.Floors {
		app := &spec.Apps[f.App]
		x.Kind = "accuracy_floor"
		note(&x.Floors, f.App, f.To, "accuracy_floor of %s %g (now %g)", app.Name, f.To, app.Floor)
	}
	for _, o := range m.SLOs {
		app := &spec.Apps[o.App]
		x.Kind = "slo"
		if len(m.Floors) > 0 {
			x.Kind = "accuracy_floor+slo"
		}
		note(&x.SLOs, o.App, quantity.Milliseconds(o.To), "SLO of %s %v (now %v)", app.Name, o.To, app.SLO.Latency)
	}
	for _, less := range m.Demand {
		x.Kind = "demand"
		note(&x.Demand, less.App, less.To, "demand of %s %s (now %s)", spec.Apps[less.App].Name,
			quantity.Rate(less.To), quantity.Rate(d.Rates[less.App]))
	}
	if m.AnyVariant {
		x.Kind, parts = "options", append(parts, "a system that may use any variant")
	}
	if m.FreePlace {
		x.Kind, parts = "options", append(parts, "a system that may move workers between apps")
	}
	x.Text = strings.Join(parts, " and ")
	return x
}

// namedAddition returns a mend by more workers, with names.
func namedAddition(spec *serving.Spec, m *proteus.Mend) Mend {
	x := Mend{Kind: "workers", Proven: m.Proven, Add: make(map[string]int), CostPerHour: &m.CostPerHour}
	var parts []string
	priced := false
	for _, a := range m.Add {
		d := &spec.DeviceTypes[a.Device]
		x.Add[d.Name] = a.Workers
		priced = priced || d.PricePerHour > 0
		parts = append(parts, fmt.Sprintf("%d %s", a.Workers, d.Name))
	}
	x.Text = "add " + strings.Join(parts, " and ")
	if priced {
		x.Text += fmt.Sprintf(", %s $/h more", quantity.Dollars(m.CostPerHour))
	}
	if !m.Proven {
		x.Text += " (perhaps fewer would do)"
	}
	return x
}
