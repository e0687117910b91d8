// Package packing packs instances of many small models onto shared machines. Every instance gets a batch size and a
// part of a machine of its own, as in INFless (ASPLOS 2022, §3.2 and §3.4). A rule of ours chooses and places parts so
// that they save what the load makes scarce (packBalanced); Options.Rule puts another rule in its place.
package packing

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

// Options of a Planner.
type Options struct {
	// Name is the planner's name in plans; empty means "packing".
	Name string
	// Alpha places the edge of the band between a function's lower (0) and upper (1) bounds; 0 means 0.8.
	Alpha float64
	// Beta is the worth of a thread in per cent of an accelerator; 0 means 64/142, the GFLOP/s of each in the release
	// of INFless.
	Beta float64
	// Headroom is the factor on the load; 0 means 1.
	Headroom float64
	// Share has functions share whole machines that the rule leaves with nothing (capacity.BatchRule.ShareLeftOut).
	Share bool
	// Latency is the factor on believed execution times; 0 means 1.
	Latency float64
	// Merge is the part of its resources that a function must save for its instances to be replaced once its load has
	// settled; 0 means 0.2, negative never replaces any.
	Merge float64
	// Exact leaves out the rounding of Eq. 1 (ours): a batch of 0.3 s then counts 3.33 times a second and not 3.
	Exact bool
	// Dense packs onto the fewest servers instead of with the least resources. See packBalanced.
	Dense bool
	// Single plans for batches of one.
	Single bool
	// Threads and Percent leave only the part with so many of both, Percent alone all parts with so many of it; 0 of
	// both leaves all.
	Threads, Percent int
	// Late has batches take all of the objective, and need not fill in time.
	Late bool
	// Choose leaves some of the configurations of a function; nil leaves all.
	Choose func(all []Configuration, f *Function) []Configuration
	// Rule chooses and places instances; nil means packBalanced.
	Rule Rule
}

// Rule chooses instances and places them.
type Rule interface {
	// Schedule allocates and returns instances for a load in queries/s of a function that has some already.
	Schedule(x *State, f *Function, has []Placed, load float64) []Placed
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
	o.Name = cmp.Or(o.Name, "packing")
	return o
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return p.Options.filled().Name }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Bands
}

// Plan implements plan.Planner. It keeps running instances as far as they are useful. A function whose load has grown
// beyond them gets more instances. One whose load has fallen below its band loses some. Shed is the load that the
// cluster has no room for. It fails when nothing can serve any of the functions that have a load.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.Read(r)
	if err != nil {
		return nil, err
	}
	// Step 1: functions give up instances before any function takes more.
	for k := range x.Functions {
		x.trim(&x.Functions[k])
		x.release(&x.Functions[k])
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
func (x *State) shareLeftOut(r *plan.Request, believed profile.Profile, out *plan.Plan) {
	rule := capacity.BatchRule{Single: x.o.Single}
	rule.ShareLeftOut(r, believed, out, capacity.Sharers{
		Stage: func(s serving.StageID) bool { return x.Functions[s].Load > 0 },
	})
	for n := range out.Instances {
		if i := &out.Instances[n]; slices.Contains(out.Sharing, i.Stage) {
			v := i.Variants[0]
			run := believed.Latency(v.Variant, i.DeviceType(x.Spec), v.Limit, 1)
			i.Up = float64(v.Limit) / run.Seconds() / x.Functions[i.Stage].Items
		}
	}
}

func (x *State) rule() packingRule {
	if x.o.Dense {
		return fewestServers
	}
	return byBeta
}

// consolidateAll replaces instances that waste resources. New instances are placed beside the old ones or, if some
// Function is short, also in their room.
func (x *State) consolidateAll() {
	if x.o.Merge < 0 {
		return
	}
	short := false
	for k := range x.Functions {
		f := &x.Functions[k]
		if f.served() {
			x.consolidate(f, false)
		} else {
			short = true
		}
	}
	if !short {
		return
	}
	for k := range x.Functions {
		if f := &x.Functions[k]; f.served() {
			x.consolidate(f, true)
		}
	}
	x.serveShort()
}

// serveShort gives instances to the functions that have too few.
func (x *State) serveShort() {
	x.addInstances()
	for k := range x.Functions {
		if f := &x.Functions[k]; !f.served() && f.bounds.max > 0 {
			x.enlarge(f)
		}
	}
}

func (x *State) addInstances() {
	var short []*Function
	for k := range x.Functions {
		if f := &x.Functions[k]; !f.served() {
			short = append(short, f)
		}
	}
	if x.o.Rule == nil {
		x.packBalanced(short, x.rule())
		if before := unserved(short); before > Tolerance {
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
		f.running = append(f.running, x.o.Rule.Schedule(x, f, f.running, f.Load-f.up())...)
	}
}
