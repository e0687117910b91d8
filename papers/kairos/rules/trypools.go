package rules

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// poolSettles is how long all machines of a pool have served, beside twice the longest objective, before what they
	// do counts: queries that have waited for them are through by then.
	poolSettles = 2 * time.Second
	// poolLeast is the shortest time, and poolMost the longest one, by which a pool is judged. The monitor looks no
	// further back.
	poolLeast, poolMost = 5 * time.Second, 29 * time.Second
	// poolSigmas is how many standard deviations of the count more queries than allowed are missed on a pool that does
	// not hold. It is judged many times.
	poolSigmas = 3
)

// TryPools asks for plans as MixShift does, and judges the pool of machines that serves (Kairos §5.2, Algorithm 1): an
// app misses more of its queries than its objective allows, or none does for half a minute. Where it is missed, another
// pool is asked for. What has been seen of pools is forgotten when the sizes of queries have changed.
//
// A pool on trial that is worse than the best one known may break the objective for the share Explore of all the time.
// When that is used up, the best one serves until there is time again.
type TryPools struct {
	MixShift
	Explore float64

	seen    plan.Experience
	plan    *plan.Plan   // that is judged
	pool    []int        // its machines, by DeviceTypeID
	settled serving.Time // from when what it does counts; serving.Never while machines are missing
	missed  bool         // it does not hold
	rate    float64      // that comes, in queries/s
	looked  serving.Time
	broken  time.Duration // that pools worse than the best one have missed the objective
	counted []uint64      // by app, the answers when the pool had settled
}

// NewTryPools returns the rule. Every engine needs its own.
func NewTryPools(pause time.Duration, explore float64) *TryPools {
	return &TryPools{MixShift: MixShift{Pause: pause}, Explore: explore}
}

// Name implements scale.Scaler.
func (*TryPools) Name() string { return "trypools" }

// Traits implements scale.Scaler.
func (x *TryPools) Traits() scale.Traits { return scale.Traits{Judge: x} }

// Experience implements scale.Judge.
func (x *TryPools) Experience() *plan.Experience {
	out := x.seen
	out.Pools = slices.Clone(out.Pools)
	return &out
}

// Forget implements engine.Forgetter.
func (x *TryPools) Forget(now serving.Time, f *serving.Fresh) {
	x.MixShift.Forget(now, f)
	x.plan, x.counted = nil, nil
}

// Decide implements scale.Scaler.
func (x *TryPools) Decide(v *scale.View) (bool, serving.Time) {
	x.look(v)
	replan, wake := x.MixShift.Decide(v)
	if replan && v.Changed() <= v.LastRequest {
		x.seen = plan.Experience{} // the sizes have changed, and with them what any pool carries
		x.missed = false
	}
	x.seen.Explore = x.broken <= time.Duration(x.Explore*float64(v.Now))
	if replan || v.Requested || !x.missed || v.Now < v.LastRequest.Add(poolLeast) {
		return replan, wake
	}
	best := x.seen.Best(x.rate)
	return x.seen.Explore || best >= 0 && !slices.Equal(x.seen.Pools[best].Machines, x.pool), wake
}

// look judges the pool that serves.
func (x *TryPools) look(v *scale.View) {
	if v.Plan == nil {
		return
	}
	if best := x.seen.Best(x.rate); x.missed && best >= 0 && !slices.Equal(x.seen.Pools[best].Machines, x.pool) {
		x.broken += v.Now.Sub(x.looked)
	}
	x.looked = v.Now
	if v.Plan != x.plan {
		pool := make([]int, len(v.Spec.DeviceTypes))
		for _, i := range v.Plan.Instances {
			pool[v.Spec.Workers[i.Worker].DeviceType]++
		}
		if x.plan = v.Plan; !slices.Equal(pool, x.pool) {
			x.pool, x.settled, x.missed = pool, serving.Never, false
		}
	}
	switch ready := x.ready(v); {
	case !ready:
		x.settled = serving.Never
	case x.settled == serving.Never:
		longest := time.Duration(0)
		for a := range v.Spec.Apps {
			longest = max(longest, v.Spec.Apps[a].SLO.Latency)
		}
		x.settled = v.Now.Add(poolSettles + 2*longest)
		x.counted = nil
	case v.Now >= x.settled:
		x.judge(v)
	}
}

// ready reports whether all machines of the pool serve.
func (x *TryPools) ready(v *scale.View) bool {
	left := slices.Clone(x.pool)
	for s := range v.Spec.Stages {
		for _, i := range v.Fleet.Ready(serving.StageID(s)) {
			left[i.DeviceType()]--
		}
	}
	return !slices.ContainsFunc(left, func(n int) bool { return n > 0 })
}

// judge notes what the pool does, once enough is seen of it.
func (x *TryPools) judge(v *scale.View) {
	if x.counted == nil {
		for a := range v.Spec.Apps {
			n, _ := v.Monitor.Answers(serving.AppID(a))
			x.counted = append(x.counted, n)
		}
	}
	window := min(v.Now.Sub(x.settled), poolMost)
	if window < poolLeast {
		return
	}
	now := plan.PoolTrial{Machines: x.pool, Held: true}
	x.rate = 0
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		came, missed := v.Monitor.Rate(v.Now, app, window), v.Monitor.Missed(v.Now, app, window)
		allowed := v.Spec.Apps[a].SLO.Allowed() * came * window.Seconds()
		if missed*window.Seconds() > allowed+poolSigmas*math.Sqrt(allowed)+1 {
			now.Held = false
		}
		x.rate += came
		now.InTime += max(came-missed, 0)
		n, _ := v.Monitor.Answers(app)
		now.Answered += float64(n-x.counted[a]) / v.Now.Sub(x.settled).Seconds()
	}
	if now.Held && window < poolMost {
		return
	}
	x.missed = !now.Held
	at := slices.IndexFunc(x.seen.Pools, func(t plan.PoolTrial) bool { return slices.Equal(t.Machines, x.pool) })
	if at < 0 {
		x.seen.Pools = append(x.seen.Pools, now)
		return
	}
	if was := &x.seen.Pools[at]; was.Held && now.Held {
		now.InTime = max(now.InTime, was.InTime) // it carries more than comes
	}
	x.seen.Pools[at] = now
}
