package serving

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// CheckGrowth reports why s cannot replace old in a run; nil means that it can. Every identifier of old keeps its
// meaning, or its place has another generation and held something closed or retired: machines are the same, other
// entries are added at the end, stages of old apps differ in their variants only, and nothing closed or retired comes
// back. Objectives and limits of apps may change.
func (s *Spec) CheckGrowth(old *Spec) error {
	if len(s.Apps) < len(old.Apps) || len(s.Stages) < len(old.Stages) || len(s.Variants) < len(old.Variants) {
		return fmt.Errorf("the tables shrink: %d apps, %d stages and %d variants, there were %d, %d and %d",
			len(s.Apps), len(s.Stages), len(s.Variants), len(old.Apps), len(old.Stages), len(old.Variants))
	}
	if !reflect.DeepEqual(s.DeviceTypes, old.DeviceTypes) || !slices.Equal(s.Workers, old.Workers) {
		return fmt.Errorf("device types or workers change: a run keeps its machines")
	}
	if !slices.Equal(s.Tenants, old.Tenants) {
		return fmt.Errorf("tenants change: a run keeps them")
	}
	for a := range old.Apps {
		if err := s.checkApp(old, AppID(a)); err != nil {
			return err
		}
	}
	for i := range old.Stages {
		if err := s.checkStage(old, StageID(i)); err != nil {
			return err
		}
	}
	for v := range old.Variants {
		if err := s.checkVariant(old, VariantID(v)); err != nil {
			return err
		}
	}
	return nil
}

// checkApp is CheckGrowth for an app of old.
func (s *Spec) checkApp(old *Spec, a AppID) error {
	was, is := &old.Apps[a], &s.Apps[a]
	switch {
	case is.Generation != was.Generation:
		if is.Generation != was.Generation+1 || !was.Closed {
			return fmt.Errorf("apps[%d] %q: it is open, and its place is used again", a, was.Name)
		}
	case was.Name != is.Name || !slices.Equal(was.Stages, is.Stages) || was.Closed && !is.Closed:
		return fmt.Errorf("apps[%d] %q: its name and its stages stay, and a closed app stays closed", a, was.Name)
	}
	return nil
}

// checkStage is CheckGrowth for a stage of old.
func (s *Spec) checkStage(old *Spec, i StageID) error {
	was, is := &old.Stages[i], &s.Stages[i]
	if is.Generation != was.Generation {
		if is.Generation != was.Generation+1 || !old.Apps[was.App].Closed {
			return fmt.Errorf("stages[%d] %q: its app is open, and its place is used again", i, was.Name)
		}
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(was.Variants), func(v VariantID) bool {
		return s.Variants[v].Generation != old.Variants[v].Generation
	})
	if was.App != is.App || was.Stateful != is.Stateful || was.EachQuery != is.EachQuery ||
		!slices.Equal(was.Next, is.Next) ||
		len(is.Variants) < len(left) || !slices.Equal(left, is.Variants[:len(left)]) {
		return fmt.Errorf("stages[%d] %q: variants are added at the end; its edges stay, and whether it is stateful, "+
			"or called for each query", i, was.Name)
	}
	return nil
}

// checkVariant is CheckGrowth for a variant of old. One of a closed app is retired with a stage that is used again.
func (s *Spec) checkVariant(old *Spec, v VariantID) error {
	was, is := old.Variants[v], s.Variants[v]
	if is.Generation != was.Generation {
		if is.Generation != was.Generation+1 || !was.Retired && !old.Apps[old.Stages[was.Stage].App].Closed {
			return fmt.Errorf("variants[%d] %q: it is not retired, and its place is used again", v, was.Name)
		}
		return nil
	}
	if was.Retired = was.Retired || is.Retired; was != is {
		return fmt.Errorf("variants[%d] %q: a variant changes only by being retired", v, was.Name)
	}
	return nil
}

// clone copies the tables that growth changes.
func (s *Spec) clone() *Spec {
	c := *s
	c.Apps, c.Stages, c.Variants = slices.Clone(s.Apps), slices.Clone(s.Stages), slices.Clone(s.Variants)
	return &c
}

// WithApp returns a copy of s with one more app of one stage with one variant, and the identifiers of the new app and
// variant. The stage takes the app's name. app.Stages and v.Stage are ignored. They take places of free, if there are
// any; nil has none.
func (s *Spec) WithApp(app App, v Variant, free *Free) (*Spec, AppID, VariantID) {
	app.Stages, v.Stage = []StageID{0}, 0
	c, at := s.WithAppsOf(&Spec{
		Apps: []App{app}, Stages: []Stage{{Name: app.Name, Variants: []VariantID{0}}}, Variants: []Variant{v},
	}, free)
	return c, at.Apps[0], at.Variants[0]
}

// WithAppsOf returns a copy of s with all apps of o, in places of free and at the end. Device types and workers of o
// are left out.
func (s *Spec) WithAppsOf(o *Spec, free *Free) (*Spec, *Placed) {
	c := s.clone()
	x := c.slots(free)
	at := &Placed{
		Apps: make([]AppID, len(o.Apps)), Stages: make([]StageID, len(o.Stages)),
		Variants: make([]VariantID, len(o.Variants)),
	}
	for a := range o.Apps {
		var variants []VariantID
		stages := slices.Sorted(slices.Values(o.Apps[a].Stages))
		for _, st := range stages {
			variants = append(variants, o.Stages[st].Variants...)
		}
		slices.Sort(variants)
		p := x.app(len(stages), len(variants))
		at.Apps[a] = p.app
		for k, st := range stages {
			at.Stages[st] = p.stages[k]
		}
		for k, v := range variants {
			at.Variants[v] = p.variants[k]
		}
	}
	for k, a := range o.Apps {
		a.Stages, a.Generation = translated(a.Stages, at.Stages), c.Apps[at.Apps[k]].Generation
		c.Apps[at.Apps[k]] = a
	}
	for k, st := range o.Stages {
		was := &c.Stages[at.Stages[k]]
		st.App, st.Generation = at.Apps[st.App], was.Generation
		st.Variants = append(slices.Clone(was.Variants), translated(st.Variants, at.Variants)...)
		st.Confidences = translatedConfidences(st.Confidences, at.Variants)
		st.Next = slices.Clone(st.Next)
		for e := range st.Next {
			st.Next[e].To = at.Stages[st.Next[e].To]
		}
		*was = st
	}
	for k, v := range o.Variants {
		v.Stage, v.Generation = at.Stages[v.Stage], c.Variants[at.Variants[k]].Generation
		c.Variants[at.Variants[k]] = v
	}
	return c, at
}

func translated[T ~int32](list, by []T) []T {
	out := make([]T, len(list))
	for k := range list {
		out[k] = by[list[k]]
	}
	return out
}

// WithVersion returns a copy of s in which v replaces all variants of app a, which has one stage. The old variants are
// retired. The app keeps its name and takes everything else from app. v takes a place of free, if there is one.
func (s *Spec) WithVersion(a AppID, app App, v Variant, free *Free) (*Spec, VariantID) {
	c := s.clone()
	stage := s.Source(a)
	x := c.slots(free)
	id := x.variant()
	app.Name, app.Stages, app.Generation = s.Apps[a].Name, s.Apps[a].Stages, s.Apps[a].Generation
	c.Apps[a] = app
	st := &c.Stages[stage]
	for _, old := range st.Variants {
		c.Variants[old].Retired = true
	}
	v.Stage, v.Generation = stage, c.Variants[id].Generation
	st.Variants = append(slices.Clone(st.Variants), id)
	c.Variants[id] = v
	return c, id
}

// WithObjective returns a copy of s in which the latency objective of app a is another.
func (s *Spec) WithObjective(a AppID, latency time.Duration) *Spec {
	c := s.clone()
	c.Apps[a].SLO.Latency = latency
	return c
}

// WithLimits returns a copy of s in which the objective of app a, its bounds of instances and how long its queries wait
// for one are those of another app.
func (s *Spec) WithLimits(a AppID, of *App) *Spec {
	c := s.clone()
	x := &c.Apps[a]
	x.SLO, x.ColdWait, x.MinInstances, x.MaxInstances = of.SLO, of.ColdWait, of.MinInstances, of.MaxInstances
	return c
}

// WithClosed returns a copy of s in which app a is closed.
func (s *Spec) WithClosed(a AppID) *Spec {
	c := s.clone()
	c.Apps[a].Closed = true
	return c
}
