// Package infless packs instances of many small models onto shared machines as INFless (ASPLOS 2022, §3.2 and §3.4)
// does. Every instance gets a batch size and a part of a machine of its own. The largest batches that the load fills
// come first. Each instance goes where its rate per resource is highest and the fragment that it leaves is smallest.
//
// An exact program (MinResources) and a bound of ours (CapacityBound) say how far from the best plan the greedy rule
// is.
package infless

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Options Options
}

// Options of a Planner. The zero value is INFless.
type Options struct {
	// Alpha places the edge of the band between a function's lower (0) and upper (1) bounds; 0 means 0.8.
	Alpha float64
	// Beta is the worth of a thread in per cent of an accelerator; 0 means 64/142, the GFLOP/s of each in the authors'
	// release.
	Beta float64
	// Headroom is the factor on the load; 0 means 1.
	Headroom float64
	// Share has functions share whole machines that the rule leaves with nothing (capacity.BatchRule.ShareLeftOut).
	Share bool
	// Latency is the factor on believed execution times; 0 means 1 (§5.2 tries 1.5 and 2).
	Latency float64
	// Merge is the part of its resources that a function must save for its instances to be replaced once its load has
	// settled; 0 means 0.2, negative never replaces any.
	Merge float64
	// Exact leaves out the rounding of Eq. 1 (ours): a batch of 0.3 s then counts 3.33 times a second and not 3.
	Exact bool
	// Balanced packs by a rule of ours instead of Algorithm 1, with the least resources by Beta; Dense does so with the
	// fewest servers. See packBalanced.
	Balanced, Dense bool
	// Undivided compares instances by their rate instead of their rate per resource, as the authors' release does.
	Undivided bool
	// Single plans for batches of one (§5.2, without BB).
	Single bool
	// Fastest uses for every batch size only the part that serves it fastest, on the first machine with room (§5.2,
	// without RS).
	Fastest bool
	// Threads and Percent leave only the part with so many of both, Percent alone all parts with so many of it; 0 of
	// both leaves all.
	Threads, Percent int
	// Uniform gives all instances of a function the same batch size and part: those that cost least per query (BATCH,
	// SC 2020, as §5.1 of INFless extends it).
	Uniform bool
	// First places on the first machine with room instead of by Eq. 10.
	First bool
}

const (
	defaultAlpha = 0.8
	defaultBeta  = 64.0 / 142
	defaultMerge = 0.2
)

func (o Options) filled() Options {
	o.Alpha = cmp.Or(o.Alpha, defaultAlpha)
	o.Beta = cmp.Or(o.Beta, defaultBeta)
	o.Headroom = cmp.Or(o.Headroom, 1)
	o.Latency = cmp.Or(o.Latency, 1)
	o.Merge = cmp.Or(o.Merge, defaultMerge)
	o.First = o.First || o.Fastest
	return o
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "infless" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.Holds | plan.Bands
}

// Plan implements plan.Planner. It keeps running instances as far as they are useful. A function whose load has grown
// beyond them gets more instances. One whose load has fallen below its band loses some. Shed is the load that the
// cluster has no room for. It fails when nothing can serve any of the functions that have a load.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(r)
	if err != nil {
		return nil, err
	}
	// Step 1: functions give up instances before any function takes more.
	for k := range x.functions {
		x.trim(&x.functions[k])
		x.release(&x.functions[k])
	}
	x.fill()
	// Step 2: functions that are short get more.
	x.serveShort()
	// Step 3: instances that waste resources are replaced, and the resources that become free are used.
	x.consolidateAll()
	x.fill()
	out := x.plan(r)
	if x.o.Share {
		x.shareLeftOut(&r, r.Believed(p.Profile), out)
	}
	return out, nil
}

// shareLeftOut has functions that have a load and got nothing share machines. Whatever comes is sent to them: a batch
// need not fill.
func (x *state) shareLeftOut(r *plan.Request, believed profile.Profile, out *plan.Plan) {
	rule := capacity.BatchRule{Single: x.o.Single}
	rule.ShareLeftOut(r, believed, out, capacity.Sharers{
		Stage: func(s serving.StageID) bool { return x.functions[s].load > 0 },
	})
	for n := range out.Instances {
		if i := &out.Instances[n]; slices.Contains(out.Sharing, i.Stage) {
			v := i.Variants[0]
			run := believed.Latency(v.Variant, i.DeviceType(x.spec), v.Limit, 1)
			i.Up = float64(v.Limit) / run.Seconds() / x.functions[i.Stage].items
		}
	}
}

func (x *state) rule() packingRule {
	if x.o.Dense {
		return fewestServers
	}
	return byBeta
}

// consolidateAll replaces instances that waste resources. New instances are placed beside the old ones or, if some
// function is short, also in their room.
func (x *state) consolidateAll() {
	if x.o.Merge < 0 {
		return
	}
	short := false
	for k := range x.functions {
		f := &x.functions[k]
		if f.served() {
			x.consolidate(f, false)
		} else {
			short = true
		}
	}
	if !short {
		return
	}
	for k := range x.functions {
		if f := &x.functions[k]; f.served() {
			x.consolidate(f, true)
		}
	}
	x.serveShort()
}

// serveShort gives instances to the functions that have too few.
func (x *state) serveShort() {
	x.addInstances()
	for k := range x.functions {
		if f := &x.functions[k]; !f.served() && f.bounds.max > 0 {
			x.enlarge(f)
		}
	}
}

func (x *state) addInstances() {
	var short []*function
	for k := range x.functions {
		if f := &x.functions[k]; !f.served() {
			short = append(short, f)
		}
	}
	if x.o.Balanced || x.o.Dense {
		x.packBalanced(short, x.rule())
		if before := unserved(short); before > tolerance {
			// Instances that are cheap by beta at first may take the room that later ones need.
			had := x.withdraw(short)
			x.packBalanced(short, byDuals)
			if unserved(short) > before {
				x.withdraw(short)
				x.restore(short, had)
			}
		}
		return
	}
	for _, f := range short {
		f.running = append(f.running, x.schedule(f, f.running, f.load-f.up())...)
	}
}
