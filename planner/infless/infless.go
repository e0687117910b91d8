// Package infless packs instances of many small models onto shared machines as INFless (ASPLOS 2022, §3.2 and §3.4)
// does: every instance gets a batch size and a part of a machine of its own, the largest batches that the load fills
// come first, and each instance goes where it serves most for what it takes and leaves least behind. Beside the greedy
// rule stand an exact program and a bound of ours, which say how far from the best it is.
package infless

import (
	"context"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Options Options
}

// Options of a Planner. The zero value is INFless.
type Options struct {
	// Alpha is the place of the edge of the band between a function's lower and upper bounds; 0 means 0.8.
	Alpha float64
	// Beta is what a thread is worth in per cent of an accelerator; 0 means 64/142, the GFLOP/s of each in the authors'
	// release.
	Beta float64
	// Headroom is the factor on the load; 0 means 1.
	Headroom float64
	// Latency is the factor on what is believed of execution times; 0 means 1 (§5.2 tries 1.5 and 2).
	Latency float64
	// Merge is the part of its resources that a function must save for its instances to be replaced by others once its
	// load has settled; 0 means 0.2, negative never replaces any.
	Merge float64
	// Exact leaves out the rounding of Eq. 1 (ours): a batch of 0.3 s then counts 3.33 times a second and not 3.
	Exact bool
	// Balanced packs by a rule of ours instead of Algorithm 1, with least resources by Beta; Dense does so with the
	// fewest servers. See balanced.
	Balanced, Dense bool
	// Undivided compares instances by what they serve and not by what they serve for what they take, as the authors'
	// release does.
	Undivided bool
	// Single plans for batches of one (§5.2, without BB).
	Single bool
	// Fastest takes of every batch size only the part on which it is served fastest, on the first machine that has room
	// (§5.2, without RS).
	Fastest bool
	// Threads and Percent leave only the part with so many of both, Percent alone those with so many of it; 0 of both
	// leave all.
	Threads, Percent int
	// Uniform gives all instances of a function the same batch size and part, those that cost least for each query
	// (BATCH, SC 2020, as §5.1 of INFless extends it).
	Uniform bool
	// First places on the first machine that has room instead of by Eq. 10.
	First bool
}

const (
	defaultAlpha = 0.8
	defaultBeta  = 64.0 / 142
	defaultMerge = 0.2
)

func (o Options) filled() Options {
	or := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	or(&o.Alpha, defaultAlpha)
	or(&o.Beta, defaultBeta)
	or(&o.Headroom, 1)
	or(&o.Latency, 1)
	or(&o.Merge, defaultMerge)
	o.First = o.First || o.Fastest
	return o
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "infless" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.Holds | plan.Bands
}

// Plan implements plan.Planner. What runs is kept as far as it still serves; a function whose load is beyond that gets
// more instances, one whose load has fallen below its band loses some. What the cluster has no room for stands in Shed.
// It fails when nothing can serve any of the functions that have a load.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(r)
	if err != nil {
		return nil, err
	}
	// Everybody gives up what is not needed before anybody takes more.
	for k := range x.functions {
		x.trim(&x.functions[k])
		x.release(&x.functions[k])
	}
	x.fill()
	x.serveShort()
	x.consolidateAll()
	x.fill() // with what has been given up meanwhile
	return x.plan(r), nil
}

func (x *state) rule() packingRule {
	if x.o.Dense {
		return fewestServers
	}
	return byBeta
}

// settle replaces what wastes resources: beside what runs, and where a function has too little, also in the place of
// it.
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

// more gives instances to the functions that have too few.
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
			// What is cheap by beta at first may take the room that the rest would have needed.
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
