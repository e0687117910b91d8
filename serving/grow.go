package serving

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// CheckGrowth reports why s cannot replace old in a run; nil means that it can. Every identifier of old must keep its
// meaning: machines are the same, tables grow at their end, stages of old apps differ in added variants only, and
// nothing closed or retired comes back. Objectives and limits of apps may change.
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
		was, is := &old.Apps[a], &s.Apps[a]
		if was.Name != is.Name || !slices.Equal(was.Stages, is.Stages) || was.Closed && !is.Closed {
			return fmt.Errorf("apps[%d] %q: its name and its stages stay, and a closed app stays closed", a, was.Name)
		}
	}
	for i := range old.Stages {
		was, is := &old.Stages[i], &s.Stages[i]
		if was.App != is.App || was.Stateful != is.Stateful || was.EachQuery != is.EachQuery ||
			!slices.Equal(was.Next, is.Next) || len(is.Variants) < len(was.Variants) ||
			!slices.Equal(was.Variants, is.Variants[:len(was.Variants)]) {
			return fmt.Errorf("stages[%d] %q: variants are added at the end; its edges stay, and whether it is "+
				"stateful or called for each query", i, was.Name)
		}
	}
	for v := range old.Variants {
		was := old.Variants[v]
		if was.Retired = was.Retired || s.Variants[v].Retired; was != s.Variants[v] {
			return fmt.Errorf("variants[%d] %q: a variant changes only by being retired", v, was.Name)
		}
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
// variant. The stage takes the app's name. app.Stages and v.Stage are ignored.
func (s *Spec) WithApp(app App, v Variant) (*Spec, AppID, VariantID) {
	c := s.clone()
	a, stage, id := AppID(len(s.Apps)), StageID(len(s.Stages)), VariantID(len(s.Variants))
	v.Stage, app.Stages = stage, []StageID{stage}
	c.Apps = append(c.Apps, app)
	c.Stages = append(c.Stages, Stage{Name: app.Name, App: a, Variants: []VariantID{id}})
	c.Variants = append(c.Variants, v)
	return c, a, id
}

// Offsets translate the identifiers of a spec that was appended to another: each is added to.
type Offsets struct {
	App     AppID
	Stage   StageID
	Variant VariantID
}

// WithAppsOf returns a copy of s with all apps of o at its end. Device types and workers of o are left out.
func (s *Spec) WithAppsOf(o *Spec) (*Spec, Offsets) {
	c := s.clone()
	by := Offsets{AppID(len(s.Apps)), StageID(len(s.Stages)), VariantID(len(s.Variants))}
	for _, a := range o.Apps {
		a.Stages = slices.Clone(a.Stages)
		for k := range a.Stages {
			a.Stages[k] += by.Stage
		}
		c.Apps = append(c.Apps, a)
	}
	for _, st := range o.Stages {
		st.App += by.App
		st.Variants, st.Next = slices.Clone(st.Variants), slices.Clone(st.Next)
		for k := range st.Variants {
			st.Variants[k] += by.Variant
		}
		for k := range st.Next {
			st.Next[k].To += by.Stage
		}
		c.Stages = append(c.Stages, st)
	}
	for _, v := range o.Variants {
		v.Stage += by.Stage
		c.Variants = append(c.Variants, v)
	}
	return c, by
}

// WithVersion returns a copy of s in which v replaces all variants of app a, which has one stage. The old variants are
// retired. The app keeps its name and takes everything else from app.
func (s *Spec) WithVersion(a AppID, app App, v Variant) (*Spec, VariantID) {
	c := s.clone()
	stage, id := s.Source(a), VariantID(len(s.Variants))
	app.Name, app.Stages = s.Apps[a].Name, s.Apps[a].Stages
	c.Apps[a] = app
	for _, old := range s.Stages[stage].Variants {
		c.Variants[old].Retired = true
	}
	v.Stage = stage
	c.Stages[stage].Variants = append(slices.Clone(s.Stages[stage].Variants), id)
	c.Variants = append(c.Variants, v)
	return c, id
}

// WithObjective returns a copy of s in which the latency objective of app a is another.
func (s *Spec) WithObjective(a AppID, latency time.Duration) *Spec {
	c := s.clone()
	c.Apps[a].SLO.Latency = latency
	return c
}

// WithClosed returns a copy of s in which app a is closed.
func (s *Spec) WithClosed(a AppID) *Spec {
	c := s.clone()
	c.Apps[a].Closed = true
	return c
}
