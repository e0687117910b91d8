package serving

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Validate reports every inconsistency of the tables, joined into one error. Each part names the field by its path.
func (s *Spec) Validate() error {
	c := check{spec: s}
	c.deviceTypes()
	c.workers()
	c.tenants()
	c.variants()
	joins := c.stages()
	for a := range s.Apps {
		c.app(a)
		c.order(a, joins)
	}
	return errors.Join(c.errs...)
}

// check collects the problems of a spec.
type check struct {
	spec *Spec
	errs []error
}

func (c *check) bad(format string, args ...any) { c.errs = append(c.errs, fmt.Errorf(format, args...)) }

func (c *check) deviceTypes() {
	for i, d := range c.spec.DeviceTypes {
		if !(d.PricePerHour >= 0) || math.IsInf(d.PricePerHour, 0) {
			c.bad("device_types[%d] %q: price_per_hour is %v, want a finite number >= 0", i, d.Name, d.PricePerHour)
		}
		if d.Accelerators < 0 || d.Percent < 0 || d.Percent > 100 || d.Part && d.Accelerators > 0 || !d.Part &&
			d.Percent > 0 {
			c.bad("device_types[%d] %q: %d accelerators and %d per cent of one: machines have at least 0 and no per "+
				"cent, parts none and 0 to 100", i, d.Name, d.Accelerators, d.Percent)
		}
		if d.Tenure > Rented {
			c.bad("device_types[%d] %q: tenure is %d, want at most %d", i, d.Name, d.Tenure, Rented)
		}
		if d.MaxMachines < 0 {
			c.bad("device_types[%d] %q: most is %d, want at least 0", i, d.Name, d.MaxMachines)
		}
	}
}

func (c *check) tenants() {
	names := make(map[string]bool, len(c.spec.Tenants))
	for i, t := range c.spec.Tenants {
		if !(t.Weight > 0) || math.IsInf(t.Weight, 0) {
			c.bad("tenants[%d] %q: weight is %v, want a finite number > 0", i, t.Name, t.Weight)
		}
		if t.Name == "" || names[t.Name] {
			c.bad("tenants[%d]: the name %q is empty or given twice", i, t.Name)
		}
		names[t.Name] = true
	}
}

func (c *check) workers() {
	types := c.spec.DeviceTypes
	for i, w := range c.spec.Workers {
		if w.DeviceType < 0 || int(w.DeviceType) >= len(types) {
			c.bad("workers[%d] %q: device type %d does not exist", i, w.Name, w.DeviceType)
		} else if types[w.DeviceType].Part {
			c.bad("workers[%d] %q: device type %q is a part of a machine", i, w.Name, types[w.DeviceType].Name)
		}
	}
}

func (c *check) variants() {
	for i, v := range c.spec.Variants {
		if v.Stage < 0 || int(v.Stage) >= len(c.spec.Stages) {
			c.bad("variants[%d] %q: stage %d does not exist", i, v.Name, v.Stage)
		}
		if !(v.Accuracy >= 0 && v.Accuracy <= 1) {
			c.bad("variants[%d] %q: accuracy is %v, want a number in [0, 1]", i, v.Name, v.Accuracy)
		}
		if v.MaxBatch < 1 {
			c.bad("variants[%d] %q: max_batch is %d, want at least 1", i, v.Name, v.MaxBatch)
		}
	}
}

// stages checks the stages by themselves. It returns the number of edges that lead to each, by StageID.
func (c *check) stages() (joins []int) {
	s := c.spec
	joins = make([]int, len(s.Stages))
	inUse := func(v VariantID) bool { return v >= 0 && int(v) < len(s.Variants) && !s.Variants[v].Retired }
	for i, st := range s.Stages {
		switch {
		case len(st.Variants) == 0:
			c.bad("stages[%d] %q: has no variant", i, st.Name)
		case !slices.ContainsFunc(st.Variants, inUse):
			c.bad("stages[%d] %q: all its variants are retired", i, st.Name)
		}
		if st.Queue != nil {
			if err := st.Queue.check(); err != nil {
				c.bad("stages[%d] %q: queue: %w", i, st.Name, err)
			}
		}
		c.confidences(i)
		for _, v := range st.Variants {
			if v < 0 || int(v) >= len(s.Variants) || s.Variants[v].Stage != StageID(i) {
				c.bad("stages[%d] %q: variant %d does not belong to it", i, st.Name, v)
			}
		}
		for _, e := range st.Next {
			if e.To < 0 || int(e.To) >= len(s.Stages) || s.Stages[e.To].App != st.App {
				c.bad("stages[%d] %q: next stage %d does not exist in its app", i, st.Name, e.To)
				continue
			}
			if !(e.FanOut >= 0) || math.IsInf(e.FanOut, 0) {
				c.bad("stages[%d] %q: fan_out to %q is %v, want a finite number >= 0", i, st.Name, s.Stages[e.To].Name,
					e.FanOut)
			}
			joins[e.To]++
		}
	}
	return joins
}

// app checks the objective and the limits of an app.
func (c *check) app(i int) {
	a := &c.spec.Apps[i]
	bad := func(format string, args ...any) {
		c.bad("apps[%d] %q: %w", i, a.Name, fmt.Errorf(format, args...))
	}
	if a.SLO.Latency <= 0 {
		bad("slo.latency is %v, want more than 0", a.SLO.Latency)
	}
	if !(a.SLO.Percentile > 0 && a.SLO.Percentile <= 100) {
		bad("slo.percentile is %v, want a number in (0, 100]", a.SLO.Percentile)
	}
	if a.QueueLimit < 1 {
		bad("queue_limit is %d, want at least 1", a.QueueLimit)
	}
	if err := a.Mix.Validate(); err != nil {
		bad("mix: %w", err)
	}
	if a.MinInstances < 0 || a.MaxInstances < 0 || a.MaxInstances > 0 && a.MinInstances > a.MaxInstances ||
		a.ColdWait < 0 {
		bad("%d to %d instances, cold wait %v: want 0 <= least <= most and no negative time", a.MinInstances,
			a.MaxInstances, a.ColdWait)
	}
	if !(a.Weight > 0) {
		bad("weight is %v, want more than 0", a.Weight)
	}
	if !(a.Floor >= 0 && a.Floor <= 1) {
		bad("accuracy floor is %v, want a number in [0, 1]", a.Floor)
	}
	if !(a.AccuracyTarget >= 0 && a.AccuracyTarget <= 1) {
		bad("accuracy target is %v, want a number in [0, 1]", a.AccuracyTarget)
	}
}

// order checks that an app's stages are a graph in topological order with one source. joins are by StageID.
func (c *check) order(i int, joins []int) {
	s, a := c.spec, &c.spec.Apps[i]
	bad := func(format string, args ...any) {
		c.bad("apps[%d] %q: %w", i, a.Name, fmt.Errorf(format, args...))
	}
	if len(a.Stages) == 0 {
		bad("has no stage")
	}
	place := make(map[StageID]int, len(a.Stages))
	for at, st := range a.Stages {
		if st < 0 || int(st) >= len(s.Stages) || s.Stages[st].App != AppID(i) {
			bad("stage %d does not belong to it", st)
			continue
		}
		place[st] = at
		if (joins[st] == 0) != (at == 0) {
			bad("stage %q must be fed by an edge exactly when it is not the first", s.Stages[st].Name)
		}
		if joins[st] != s.Stages[st].Joins {
			bad("stage %q counts %d incoming edges, there are %d", s.Stages[st].Name, s.Stages[st].Joins, joins[st])
		}
	}
	for _, st := range a.Stages {
		at, ok := place[st]
		if !ok {
			continue
		}
		for _, e := range s.Stages[st].Next {
			if to, ok := place[e.To]; ok && to <= at {
				bad("edge %q -> %q goes backwards: stages must be in topological order", s.Stages[st].Name,
					s.Stages[e.To].Name)
			}
		}
	}
}
