package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// world is what every owner reads: the present time, the spec, the fleet, and the demand seen. Every owner embeds it.
type world struct {
	now     serving.Time
	spec    *serving.Spec
	fleet   fleet.Fleet
	monitor monitor.Rates
	expires bool // a query came that its client does not wait for beyond some time, and that may start late
	// violation is the first breach of the contract by the driver or a policy.
	violation error
}

func newWorld(spec *serving.Spec, p profile.Profile) *world {
	return &world{spec: spec, fleet: *fleet.New(spec, p), monitor: *monitor.NewRates(len(spec.Apps))}
}

// violated notes that a driver or a policy has broken its contract. Check reports the first such error.
func (w *world) violated(err error) {
	if w.violation == nil {
		w.violation = err
	}
}

// app returns the app of a stage.
func (w *world) app(s serving.StageID) *serving.App { return &w.spec.Apps[w.spec.Stages[s].App] }

// drops reports whether a query that waits at a stage for too long is given up, or put back, in the end.
func (w *world) drops(s serving.StageID) bool {
	return w.app(s).Drops() || w.spec.Stages[s].Queue.Ends()
}

// timesOut reports whether a waiting task of a stage may be given up because of the time.
func (w *world) timesOut(s serving.StageID) bool { return w.expires || w.drops(s) }

// lengthened returns s with zero values added up to length n.
func lengthened[T any](s []T, n int) []T { return append(s, make([]T, n-len(s))...) }
