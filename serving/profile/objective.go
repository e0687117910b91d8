package profile

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// shortestObjective is the shortest objective that is proposed: below it the noise of a busy machine decides.
	shortestObjective = 50 * time.Millisecond
	// objectiveRoom is how many times the latency of a lone item the proposed objective is: a query may wait for the
	// batch that runs, and then run in a larger one.
	objectiveRoom = 4
	// largestRoom is that of the largest query alone.
	largestRoom = 2
	// longestKnown is the longest latency that an objective is proposed from: beyond it nothing was measured.
	longestKnown = time.Hour
)

// Objective proposes a latency objective for an app: several times the latency of an item that runs alone, through all
// stages one after the other, rounded up to one or two digits that people write. items is the size of a query that is
// to be in time as well, 1 or less for none.
func Objective(spec *serving.Spec, p Profile, a serving.AppID, items int) time.Duration {
	one, largest, held := time.Duration(0), time.Duration(0), time.Duration(0)
	for _, st := range spec.Apps[a].Stages {
		one += alone(spec, p, spec.Stages[st].Variants, 1)
		if items > 1 {
			largest += alone(spec, p, spec.Stages[st].Variants, items)
		}
		if q := spec.Stages[st].Queue; q != nil {
			held += q.Delay // a query may be held back for so long
		}
	}
	return RoundObjective(max(objectiveRoom*one, largestRoom*largest) + held)
}

// alone is the latency of some items on the slowest of some variants, on the fastest machine for it. What a variant
// does not take in one batch it gets in several.
func alone(spec *serving.Spec, p Profile, variants []serving.VariantID, items int) time.Duration {
	slowest := time.Duration(0)
	for _, v := range variants {
		if spec.Variants[v].Retired {
			continue
		}
		fastest := time.Duration(math.MaxInt64)
		for d := range spec.DeviceTypes {
			fastest = min(fastest, p.Latency(v, serving.DeviceTypeID(d), min(items, spec.Variants[v].MaxBatch), 1))
		}
		if fastest < longestKnown {
			slowest = max(slowest, fastest)
		}
	}
	return slowest
}

// RoundObjective rounds up to 1, 2 or 5 times a power of ten milliseconds, and to the shortest objective.
func RoundObjective(d time.Duration) time.Duration {
	d = max(d, shortestObjective)
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if d <= n*unit {
				return n * unit
			}
		}
	}
}

// Stretched returns a copy of spec in which proposed objectives are at least what would be proposed by beliefs, so that
// no plan leaves an app out for an objective that nobody asked for. mixes are the sizes of queries, by AppID; a missing
// one is that of the app. It returns spec itself where nothing changes.
func Stretched(spec *serving.Spec, believed Profile, mixes []serving.Mix) *serving.Spec {
	out := spec
	for a := range spec.Apps {
		x := &spec.Apps[a]
		if !x.SLO.Proposed || x.Closed {
			continue
		}
		mix := &x.Mix
		if a < len(mixes) {
			mix = &mixes[a]
		}
		if d := Objective(spec, believed, serving.AppID(a), mix.Largest()); d > x.SLO.Latency {
			if out == spec {
				out = spec.WithObjective(serving.AppID(a), d)
			}
			out.Apps[a].SLO.Latency = d
		}
	}
	return out
}
