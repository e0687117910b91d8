package host

import (
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/serving"
)

// assumeLatencies makes a profile from the settings of fake workers.
func (o *Opened) assumeLatencies() (*Profiled, error) {
	spec := o.Spec()
	var m serving.Measurements
	add := func(b config.Backend, d serving.DeviceTypeID) {
		for v := range spec.Variants {
			for items := 1; items <= spec.Variants[v].MaxBatch; items *= 2 {
				l := max(time.Duration(b.Latency)+time.Duration(items)*time.Duration(b.LatencyPerItem),
					time.Microsecond)
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: serving.VariantID(v), DeviceType: d, Items: items, Concurrency: 1, Mean: l, P50: l, P90: l,
					P95: l, P99: l,
				})
			}
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: serving.VariantID(v), DeviceType: d, Load: time.Duration(b.LoadTime),
			})
		}
	}
	for at, b := range o.tables.Backends {
		if b.Kind != machines.KindFake {
			return nil, fault.Errorf(fault.Config,
				"%s names no profile: run 'sluice profile -f %s -o profile.json' and list it under profiles, or pass "+
					"--profile", o.Name(), o.Name())
		}
		add(b, spec.Workers[at].DeviceType)
	}
	for d := range spec.DeviceTypes {
		if id := serving.DeviceTypeID(d); spec.DeviceTypes[d].Part && !spec.DeviceTypes[d].Placed {
			if hosts := spec.Hosts(id); len(hosts) > 0 {
				add(o.tables.Backends[hosts[0]], id)
			}
		}
	}
	return o.WithMeasurements(m, assumed)
}
