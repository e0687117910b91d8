package server

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/serving"
)

// measuredOf returns what is measured of the variants of a definition, and which of them are to be measured better.
// What was measured of the same file counts still: before it was unloaded, while it runs, or in a profile.
func (c *catalog) measuredOf(ctx context.Context, x *functions.Extension, spec *serving.Spec, at *serving.Placed,
	d *definition, was *catalogEntry) (own serving.Measurements, later []serving.VariantID, err error) {
	if was != nil && was.print != "" && was.print == d.print && len(was.measured.Latency) > 0 &&
		reflect.DeepEqual(was.written, d.written) {
		if was.unrefined {
			later = at.Variants
		}
		return was.measured.Of(func(k serving.VariantID, _ serving.DeviceTypeID) (serving.VariantID, bool) {
			return at.Variants[k], true
		}), later, nil
	}
	var looked []serving.VariantID
	running, profiled := make(map[serving.VariantID]serving.VariantID), make(map[serving.VariantID]serving.VariantID)
	for k, id := range at.Variants {
		v := serving.VariantID(k)
		switch before, same := c.before(x.Spec, was, d, v); {
		case same:
			if running[before] = id; c.refiner.pends(x.Spec, before) {
				later = append(later, id)
			}
		case before == serving.None && c.profiled(d, v):
			profiled[v] = id
		default:
			looked = append(looked, id)
		}
	}
	of := func(m serving.Measurements, to map[serving.VariantID]serving.VariantID) serving.Measurements {
		return m.Of(func(v serving.VariantID, _ serving.DeviceTypeID) (serving.VariantID, bool) {
			id, ok := to[v]
			return id, ok
		})
	}
	none := func(serving.VariantID, serving.DeviceTypeID) bool { return false }
	own = of(x.Measured, running).Replaced(none, of(d.measured, profiled))
	if len(looked) > 0 {
		var seen serving.Measurements
		if seen, err = c.lookAt(ctx, spec, at, d, looked); err == nil {
			own = own.Replaced(none, seen)
		}
	}
	return own, append(later, looked...), err
}

// before returns the running variant in whose place one of a definition comes, by its name, and whether that is of the
// same file and takes the same batches. It is None where there is none.
func (c *catalog) before(spec *serving.Spec, was *catalogEntry, d *definition, v serving.VariantID) (
	_ serving.VariantID, same bool) {
	name := d.tables.Spec.Variants[v].Name
	if was == nil {
		return serving.None, false
	}
	for _, a := range was.apps {
		for _, s := range spec.Apps[a].Stages {
			for _, before := range spec.Stages[s].Variants {
				if x := &spec.Variants[before]; x.Name == name && !x.Retired {
					return before, x.MaxBatch == d.tables.Spec.Variants[v].MaxBatch &&
						modelOf(was.written, name) == modelOf(d.written, name) &&
						lineOf(was.print, d.tables.Variants[v].Model) == lineOf(d.print, d.tables.Variants[v].Model)
				}
			}
		}
	}
	return serving.None, false
}

// modelOf is the model, with its version, that a file has for a variant.
func modelOf(apps []config.App, name string) (model [2]string) {
	of := func(list []config.Variant) {
		for k := range list {
			if v := &list[k]; v.Name == name {
				model = [2]string{v.Model, v.Version}
			}
		}
	}
	for a := range apps {
		of(apps[a].Variants)
		for s := range apps[a].Stages {
			of(apps[a].Stages[s].Variants)
		}
	}
	return model
}

// lineOf is what the fingerprint of several models has of one; see printOf.
func lineOf(print, model string) string {
	for line := range strings.Lines(print) {
		if name, one, _ := strings.Cut(strings.TrimSpace(line), " "); name == model {
			return one
		}
	}
	return ""
}

// profiled reports whether the profiles of a definition have a variant on all machines that may run it.
func (c *catalog) profiled(d *definition, v serving.VariantID) bool {
	sites, _ := c.base.Fleet().Sites()
	for _, s := range sites {
		if !slices.ContainsFunc(d.measured.Latency, func(p serving.LatencyPoint) bool {
			return p.Variant == v && p.DeviceType == s.Device
		}) {
			return false
		}
	}
	return true
}
