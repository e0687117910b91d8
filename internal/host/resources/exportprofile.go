package resources

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// profileResources makes a Profile of each variant and machine type that were measured. Profile files tell variants
// apart by their names alone: those of several apps with one name each get one.
func (e *exporter) profileResources() {
	if e.measured == nil {
		return
	}
	side, called := 0, names{}
	for v := range e.spec.Variants {
		st := &e.spec.Stages[e.spec.Variants[v].Stage]
		app := e.apps[st.App]
		if app == "" {
			continue
		}
		for d := range e.spec.DeviceTypes {
			if e.resource[d] == "" {
				continue
			}
			p, together := e.profileOf(serving.VariantID(v), serving.DeviceTypeID(d))
			side += together
			if len(p.Latencies) == 0 {
				continue
			}
			p.App = app
			if len(e.spec.Apps[st.App].Stages) > 1 {
				p.Stage = st.Name
			}
			whole := app + "-"
			if p.Stage != "" {
				whole += p.Stage + "-"
			}
			name, _ := called.give(whole + p.Variant + "-" + p.MachineType)
			e.add("Profile", e.meta(name), p)
		}
	}
	if side > 0 {
		e.lost("profiles", "a Profile has the latencies of batches that run alone: %d of batches side by side are "+
			"left out", side)
	}
	if len(e.measured.Overheads) > 0 {
		e.lost("profiles", "a Profile has no cost of serving beside the runs (overheads): dispatchers learn it")
	}
}

// profileOf returns what was measured of a variant on a device type, and how many points are of batches side by side.
func (e *exporter) profileOf(v serving.VariantID, d serving.DeviceTypeID) (p *profile, together int) {
	f, name, device := e.measured, e.spec.Variants[v].Name, e.spec.DeviceTypes[d].Name
	p = &profile{Fleet: e.how.Fleet, Variant: name, MachineType: e.resource[d], On: f.Host.CPU}
	if m, ok := e.models[v]; ok {
		p.Model = cmp.Or(m.SHA256, m.URI)
	}
	if !f.Created.IsZero() {
		p.Measured = f.Created.UTC().Format(time.RFC3339)
	}
	for _, l := range f.Loads {
		if l.Variant == name && l.DeviceType == device {
			p.Load = span(micros(l.Load * 1e3))
		}
	}
	for _, m := range f.Memory {
		if m.Variant == name && m.DeviceType == device {
			p.MemoryBytes = m.Loaded
		}
	}
	for _, x := range f.Points {
		switch {
		case x.Variant != name || x.DeviceType != device || x.Interpolated:
		case x.Concurrency > 1:
			together++
		default:
			p.Latencies = append(p.Latencies, latencyOf(&x))
		}
	}
	slices.SortFunc(p.Latencies, func(a, b latency) int { return cmp.Compare(a.Batch, b.Batch) })
	return p, together
}

func latencyOf(x *profiler.Point) latency {
	return latency{Batch: x.Batch, Mean: micros(x.Mean).String(), P95: micros(x.P95).String(),
		Deviation: span(micros(x.StdDev)), Runs: x.Samples}
}
