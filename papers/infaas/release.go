package infaas

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// scalePeriod is how often the release scales; between, only arrivals start instances. A request within scaleWindow of
// the start of a period counts as one at which it scales.
const scalePeriod, scaleWindow = 10 * time.Second, time.Second

// release plans as the code that the Proteus authors released does for INFaaS-Accuracy ("infaas_v2"). It differs from
// the papers' description:
//
//   - Both directions of scaling run every ten seconds, down right after up, and not while queries arrive. Here a
//     request in the first second of every ten counts as such a moment, since a planner keeps no count of its plans.
//   - Between these moments the assignment of queries starts instances: see arrive.
//   - up sizes by a latency, down by a queue, and an instance that is not removed becomes the least accurate: see
//     there.
//
// Two things of the release are left out. It starts variants on devices where they never meet the objective and then
// cannot use them; a plan has no batch limit of zero. And it tries smaller batches and slower devices for the least
// accurate variant; down does not.
func (x *state) release(believed profile.Profile, snapshot *fleet.Snapshot) {
	queued := make([]int, len(x.stages))
	hasRoom := make([]bool, len(x.stages))
	var now serving.Time
	if snapshot != nil {
		now = snapshot.At
	}
	for _, i := range x.running {
		queued[i.Stage] += i.Queued
	}
	if time.Duration(now)%scalePeriod < scaleWindow {
		for s := range x.stages {
			x.up(believed, s)
		}
		for s := range x.stages {
			x.down(s, float64(queued[s]))
		}
	}
	for g := range x.groups {
		for _, w := range x.groups[g].workers {
			if k := x.hosted(g, w); k != idle {
				o := &x.options[k]
				hasRoom[o.stage] = hasRoom[o.stage] || o.accuracy == 1 && x.counts[k] > 0 &&
					o.rate > float64(x.running[w].Queued)
			}
		}
	}
	x.arrive(hasRoom)
}

// up starts instances of a stage when the floor of its usable capacity is below its rate. The release compares two
// actions, each at the accuracy that its instances lose against the best variant, times their number, and takes the
// cheaper; on a tie it upgrades.
//
//   - Upgrade: for some variant, instances on the device type that needs the fewest. Their number is the rate over the
//     variant's *latency in milliseconds*, where its throughput is meant: the slower a device, the fewer seem to be
//     needed. The best variant loses nothing, so it costs nothing however many are needed.
//   - Replicate the first instance. But the copies are of the *least accurate* variant, as are all instances for which
//     no variant is named.
func (x *state) up(believed profile.Profile, s int) {
	st := &x.stages[s]
	if st.workers == 0 || math.Floor(x.o.Factor*st.rate) >= st.Rate {
		return
	}
	needed := func(throughput float64) float64 { return math.Ceil(st.Rate / (throughput * x.o.Factor)) }
	chosen, number, cost := idle, 0.0, math.Inf(1)
	for _, v := range x.spec.Stages[s].Variants {
		least, at := math.Inf(1), idle
		for k, o := range x.options {
			if o.variant != v || x.idle[o.group] == 0 {
				continue
			}
			milliseconds := believed.Latency(v, x.groups[o.group].device, 1, 1).Seconds() * 1e3
			if n := needed(milliseconds); n < least {
				least, at = n, k
			}
		}
		if at == idle {
			continue
		}
		if c := (1 - x.options[at].accuracy) * least; c < cost {
			chosen, number, cost = at, least, c
		}
	}
	if chosen == idle {
		return
	}
	first := x.hosting(s)[0]
	if copies := needed(x.options[first].rate); cost > (1-x.options[first].accuracy)*copies {
		chosen, number = x.leastAccurate(first), copies
	}
	for ; number > 0 && x.idle[x.options[chosen].group] > 0; number-- {
		x.move(idle, chosen)
	}
}

// down goes through a stage's instances in order. It removes one if the rest can take *what is queued* in a second; on
// a stage that keeps up, whose queues are short, that is nearly all of them. What stays is replaced by the *least
// accurate* variant, since the search for a better one, which the code prepares, is missing. It looks at the load only
// at an instance that is the least accurate already, and ends when less than Down asks for would be to spare.
func (x *state) down(s int, queued float64) {
	st := &x.stages[s]
	for _, k := range x.hosting(s) {
		o := &x.options[k]
		worst := x.leastAccurate(k)
		switch {
		case (st.rate-o.rate)*x.o.Factor > queued:
			x.move(k, idle)
		case worst != k:
			x.move(k, worst)
		case st.rate*x.o.Factor*x.o.Down <= st.Rate:
			return
		}
	}
}

// arrive does what assigning a query does to the placement. Queries ask for an accuracy of 100 %, which only the best
// variant of a family has. If no instance of that has room, the release starts the first variant that runs nowhere yet,
// on the first device type with an idle worker, not the best one. Stages take turns, as their queries do, until none
// finds a variant or a worker. hasRoom is by StageID.
func (x *state) arrive(hasRoom []bool) {
	for started := true; started; {
		started = false
		for s := range x.stages {
			if hasRoom[s] {
				continue
			}
			if k := x.inactive(s); k != idle {
				x.move(idle, k)
				hasRoom[s] = x.options[k].accuracy == 1
				started = true
			}
		}
	}
}

// inactive returns the first variant of a stage that runs nowhere and for which a worker is idle; idle when there is
// none.
func (x *state) inactive(s int) int {
	for _, v := range x.spec.Stages[s].Variants {
		at, running := idle, false
		for k, o := range x.options {
			if o.variant == v {
				running = running || x.counts[k] > 0
				if at == idle && x.idle[o.group] > 0 {
					at = k
				}
			}
		}
		if !running && at != idle {
			return at
		}
	}
	return idle
}

// hosting lists the options that a stage's workers host, one entry for each worker.
func (x *state) hosting(s int) []int {
	var out []int
	for k, o := range x.options {
		if int(o.stage) == s {
			for range x.counts[k] {
				out = append(out, k)
			}
		}
	}
	return out
}

// leastAccurate returns the least accurate option of an option's stage and group.
func (x *state) leastAccurate(of int) int {
	out := of
	for k, o := range x.options {
		if o.group == x.options[of].group && o.stage == x.options[of].stage && o.accuracy < x.options[out].accuracy {
			out = k
		}
	}
	return out
}
