package engine

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Forgetter is a router or a scaler that keeps something by app, stage or variant from call to call. Forget is called
// when the spec has grown. Identifiers of fresh that it knows mean something else from now on.
type Forgetter interface {
	Forget(now serving.Time, fresh *serving.Fresh)
}

// Free lists the entries of the spec that are closed or retired and that nothing refers to any more: no query, task,
// batch, instance, open stream or plan. The next growth may use their places again. What the plan in force was made
// for, and was closed or retired since, is not free yet.
func (e *Engine) Free() serving.Free {
	var out serving.Free
	of := e.force.of
	if of == nil {
		return out
	}
	apps, variants := e.referred()
	for a := range of.Apps {
		if x := &of.Apps[a]; x.Closed && x.Generation == e.spec.Apps[a].Generation && !apps[a] {
			out.Apps = append(out.Apps, serving.AppID(a))
		}
	}
	for v := range of.Variants {
		x := &of.Variants[v]
		if x.Retired && x.Generation == e.spec.Variants[v].Generation && !variants[v] &&
			!e.spec.Apps[e.spec.Stages[e.spec.Variants[v].Stage].App].Closed {
			out.Variants = append(out.Variants, serving.VariantID(v))
		}
	}
	return out
}

// referred returns, by identifier, the apps that are open or that something refers to, and the variants that something
// refers to.
func (e *Engine) referred() (apps, variants []bool) {
	apps, variants = make([]bool, len(e.spec.Apps)), make([]bool, len(e.spec.Variants))
	for a := range apps {
		id := serving.AppID(a)
		apps[a] = !e.spec.Apps[a].Closed || e.queries.pending[a] > 0 || e.monitor.Streams(id) > 0
	}
	for _, i := range e.fleet.Live() {
		apps[e.spec.Stages[i.Stage()].App] = true
		for k := range i.Variants() {
			variants[i.Variant(k).Variant] = true
		}
		for k := range i.Running() {
			variants[i.Batch(k).Variant] = true
		}
	}
	for _, i := range e.force.wants {
		apps[e.spec.Stages[i.Stage].App] = true
		for _, v := range i.Variants {
			variants[v.Variant] = true
		}
	}
	for r := range e.queries.records.list {
		rec := &e.queries.records.list[r]
		if rec.first == fleet.Nil {
			continue
		}
		apps[rec.query.App] = true
		if v := rec.query.Variant; v >= 0 && int(v) < len(variants) {
			variants[v] = true
		}
		if rec.flow >= 0 {
			for _, st := range e.queries.flows.list[rec.flow].stages {
				if st.total > 0 {
					variants[st.last.Variant] = true
				}
			}
		}
	}
	return apps, variants
}

// checkFresh reports a place that a growth uses again and that is not free.
func (e *Engine) checkFresh(fresh *serving.Fresh) error {
	if !fresh.Within(e.spec) {
		return nil
	}
	free := e.Free()
	for _, a := range fresh.Apps {
		if int(a) < len(e.spec.Apps) && !slices.Contains(free.Apps, a) {
			return fmt.Errorf("the place of app %q is used again while something refers to it", e.spec.Apps[a].Name)
		}
	}
	for _, s := range fresh.Stages {
		if int(s) < len(e.spec.Stages) && !slices.Contains(free.Apps, e.spec.Stages[s].App) {
			return fmt.Errorf("the place of stage %q is used again while something refers to it", e.spec.Stages[s].Name)
		}
	}
	for _, v := range fresh.Variants {
		if int(v) >= len(e.spec.Variants) {
			break
		}
		x := &e.spec.Variants[v]
		if !slices.Contains(free.Variants, v) && !slices.Contains(free.Apps, e.spec.Stages[x.Stage].App) {
			return fmt.Errorf("the place of variant %q is used again while something refers to it", x.Name)
		}
	}
	return nil
}
