package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// admission decides whether anything could ever serve some work: ready and launching instances, the plan, or a start by
// the scaler. It changes nothing.
type admission struct {
	*world
	force *inForce
	wakes bool // the scaler starts instances for calls
	rents bool // plans follow the demand, and machines come when they are needed
}

// admits reports whether an instance that is ready or launching may serve some work, and why not.
func (a *admission) admits(w *fleet.Work) (ok bool, why Reason) {
	if (w.MinAccuracy > 0 || w.Pin != serving.None) && !a.offered(w) {
		return false, NoVariant
	}
	for _, i := range a.fleet.Ready(w.Stage) {
		if a.fleet.ChooseFor(i, w) >= 0 {
			return true, 0
		}
	}
	large := false
	for _, i := range a.fleet.Live() {
		if i.Stage() != w.Stage || i.State() == fleet.Draining {
			continue
		}
		for k := range i.Variants() {
			l := i.Variant(k)
			switch {
			case !l.Wanted || !a.fleet.Meets(w, l.Variant):
			case int(w.Items) > l.Limit:
				large = true
			case !l.Warm || i.Standby() || i.RestUntil() > 0:
				return true, 0
			}
		}
	}
	if large {
		return false, TooLarge
	}
	return false, NothingLoaded
}

// offered reports whether the stage has a variant that meets the requirements of some work, loaded or not.
func (a *admission) offered(w *fleet.Work) bool {
	for _, v := range a.spec.Stages[w.Stage].Variants {
		if a.fleet.Meets(w, v) {
			return true
		}
	}
	return false
}

// longest returns the longest length with which some work would be in time if it started now, on any variant that may
// serve it and any machine. It is 0 where the work itself is in time on one, where no length is known, and where none
// would be in time.
func (a *admission) longest(w *fleet.Work) (longest int32) {
	if w.Length == 0 {
		return 0
	}
	left := w.LatestEnd.Sub(a.now)
	for _, v := range a.spec.Stages[w.Stage].Variants {
		if a.spec.Variants[v].Retired || !a.fleet.Meets(w, v) {
			continue
		}
		for d := range a.spec.DeviceTypes {
			x := a.fleet.LongestWithin(v, serving.DeviceTypeID(d), w, left)
			if x >= w.Length {
				return 0
			}
			longest = max(longest, x)
		}
	}
	return longest
}

// retry reports whether work that was refused for a reason may be admitted later.
func (a *admission) retry(w *fleet.Work, why Reason) bool {
	return why == NothingLoaded && (a.rents || a.force.outdated || a.force.serves(w))
}

// planned reports whether the plan in force has an instance for some work.
func (a *admission) planned(w *fleet.Work) bool { return a.force.serves(w) }

// startsOnDemand reports whether work lacks nothing but an instance at its stage, and the scaler starts one when it is
// called.
func (a *admission) startsOnDemand(s serving.StageID, lacks Reason) bool {
	if !a.wakes || lacks != NothingLoaded {
		return false
	}
	for _, i := range a.fleet.Live() {
		if i.Stage() == s && i.State() != fleet.Draining {
			return false
		}
	}
	return true
}

// floorMet reports whether every stage of an app has a variant with at least the given accuracy: a floor holds at each
// stage.
func (a *admission) floorMet(app *serving.App, floor float64) bool {
	for _, s := range app.Stages {
		if !a.offered(&fleet.Work{Stage: s, Pin: serving.None, MinAccuracy: floor}) {
			return false
		}
	}
	return true
}

// everyVariantMeets reports whether a floor excludes nothing: all variants of a stage have at least that accuracy.
func (a *admission) everyVariantMeets(s serving.StageID, floor float64) bool {
	for _, v := range a.spec.Stages[s].Variants {
		if a.spec.Variants[v].Accuracy < floor {
			return false
		}
	}
	return true
}
