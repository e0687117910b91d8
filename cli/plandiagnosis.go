package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/planner/proteus"
	"github.com/sluice-serving/sluice/serving"
)

// diagnosisView is a proteus.Diagnosis by names.
type diagnosisView struct {
	Headroom float64 `json:"headroom"` // factor on the demand, included in what follows
	Carried  bool    `json:"carried"`
	// Multiple of the demand is the largest that was found to be carried, Bound the largest that can be.
	Multiple    float64          `json:"multiple"`
	Bound       float64          `json:"multiple_bound"`
	Unserved    []unservedView   `json:"unserved,omitempty"`
	Bottlenecks []bottleneckView `json:"bottlenecks,omitempty"`
	Mends       []mendView       `json:"mends,omitempty"`
}

type unservedView struct {
	App   string `json:"app"`
	Stage string `json:"stage"`
	// AccuracyFloor is the highest with which it could be served; SLOMS the shortest objective within which Variant
	// serves it on DeviceType. Absent where there is none.
	AccuracyFloor *float64 `json:"accuracy_floor,omitempty"`
	SLOMS         *float64 `json:"slo_ms,omitempty"`
	Variant       string   `json:"variant,omitempty"`
	DeviceType    string   `json:"device_type,omitempty"`
	Text          string   `json:"text"`
}

type bottleneckView struct {
	App     string   `json:"app"`
	Stage   string   `json:"stage"`
	Without *float64 `json:"multiple_without,omitempty"` // absent when nothing else bounds it
	Text    string   `json:"text"`
}

type mendView struct {
	Kind        string             `json:"kind"` // workers, accuracy_floor, slo, accuracy_floor+slo, options or demand
	Add         map[string]int     `json:"add,omitempty"`
	Floors      map[string]float64 `json:"accuracy_floors,omitempty"`
	SLOs        map[string]float64 `json:"slos_ms,omitempty"`
	Demand      map[string]float64 `json:"demand,omitempty"`
	CostPerHour *float64           `json:"cost_per_hour,omitempty"` // $/h of what is added
	Proven      bool               `json:"proven,omitempty"`        // nothing less of its kind is enough
	Text        string             `json:"text"`
}

// readDiagnosis takes down a diagnosis.
func readDiagnosis(w *world, d *proteus.Diagnosis, st *step, v *planView) *diagnosisView {
	spec := w.Spec
	out := &diagnosisView{Headroom: d.Headroom, Carried: d.Carried, Multiple: d.Multiple, Bound: d.Bound}
	if total := st.total(); total > 0 {
		reach := d.Multiple * total
		v.Reach = &reach
	}
	name := func(s serving.StageID) string {
		if app := &spec.Apps[spec.Stages[s].App]; len(app.Stages) > 1 {
			return app.Name + ", stage " + spec.Stages[s].Name
		}
		return spec.Apps[spec.Stages[s].App].Name
	}
	for _, u := range d.Unserved {
		x := unservedView{App: spec.Apps[u.App].Name, Stage: spec.Stages[u.Stage].Name}
		var ways []string
		if u.Floor > 0 && u.Floor < spec.Apps[u.App].Floor {
			x.AccuracyFloor = &u.Floor
			ways = append(ways, fmt.Sprintf("an accuracy_floor of %g (now %g)", u.Floor, spec.Apps[u.App].Floor))
		}
		if u.SLO > 0 {
			slo := millis(u.SLO)
			x.SLOMS, x.Variant, x.DeviceType = &slo, spec.Variants[u.Variant].Name, spec.DeviceTypes[u.Device].Name
			ways = append(ways, fmt.Sprintf("an SLO of %v (now %v), with %s on %s", u.SLO, spec.Apps[u.App].SLO.Latency,
				x.Variant, x.DeviceType))
		}
		x.Text = name(u.Stage) + ": nothing here serves it"
		if len(ways) > 0 {
			x.Text += "; it would take " + strings.Join(ways, ", or ")
		}
		out.Unserved = append(out.Unserved, x)
	}
	for _, b := range d.Bottlenecks {
		x := bottleneckView{App: spec.Apps[b.App].Name, Stage: spec.Stages[b.Stage].Name, Text: name(b.Stage)}
		if !math.IsInf(b.Without, 1) {
			x.Without = &b.Without
			x.Text += fmt.Sprintf(": without it, %s of the rest could be carried", multipleText(b.Without))
		}
		out.Bottlenecks = append(out.Bottlenecks, x)
	}
	for _, m := range d.Mends {
		out.Mends = append(out.Mends, readMend(spec, &m, st))
	}
	return out
}

func readMend(spec *serving.Spec, m *proteus.Mend, st *step) mendView {
	x := mendView{Proven: m.Proven}
	var parts []string
	priced := false
	for _, a := range m.Add {
		x.Kind = "workers"
		if x.Add == nil {
			x.Add = make(map[string]int)
		}
		d := &spec.DeviceTypes[a.Device]
		x.Add[d.Name] = a.Workers
		priced = priced || d.PricePerHour > 0
		parts = append(parts, fmt.Sprintf("%d %s", a.Workers, d.Name))
	}
	if len(m.Add) > 0 {
		x.Text = "add " + strings.Join(parts, " and ")
		x.CostPerHour = &m.CostPerHour
		if priced {
			x.Text += fmt.Sprintf(", %s $/h more", money(m.CostPerHour))
		}
		if !m.Proven {
			x.Text += " (perhaps fewer would do)"
		}
		return x
	}
	note := func(to *map[string]float64, app serving.AppID, value float64, text string) {
		if *to == nil {
			*to = make(map[string]float64)
		}
		(*to)[spec.Apps[app].Name] = value
		parts = append(parts, text)
	}
	for _, f := range m.Floors {
		x.Kind = "accuracy_floor"
		note(&x.Floors, f.App, f.To, fmt.Sprintf("accuracy_floor of %s %g (now %g)", spec.Apps[f.App].Name, f.To,
			spec.Apps[f.App].Floor))
	}
	for _, o := range m.SLOs {
		x.Kind = "slo"
		if len(m.Floors) > 0 {
			x.Kind = "accuracy_floor+slo"
		}
		note(&x.SLOs, o.App, millis(o.To), fmt.Sprintf("SLO of %s %v (now %v)", spec.Apps[o.App].Name, o.To,
			spec.Apps[o.App].SLO.Latency))
	}
	for _, d := range m.Demand {
		x.Kind = "demand"
		note(&x.Demand, d.App, d.To, fmt.Sprintf("demand of %s %s (now %s)", spec.Apps[d.App].Name, rateText(d.To),
			rateText(st.rates[d.App])))
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

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
