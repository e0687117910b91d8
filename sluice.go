package sluice

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Options say how a configuration is read. The zero value reads it as it is.
type Options struct {
	// System replaces the configuration's system: a name that `sluice systems` lists, or ROUTER+BATCHER.
	System string
	// Profiles are files with measured latencies, instead of those that the configuration names.
	Profiles []string
	// Notice is told in a sentence what a person should know that is no error. Nil discards it.
	Notice func(sentence string)
	// Progress is told the share in [0, 1] of a long operation that is done, and its present step. It should return at
	// once. Nil discards it.
	Progress func(share float64, doing string)
}

// Configuration is a sluice.yaml that was checked. It does not change, and is safe for concurrent use.
type Configuration struct {
	opened   *host.Opened
	profiles []string
}

// Open reads a sluice.yaml and checks it as a whole. The error lists all that is wrong, with lines.
func Open(path string, o Options) (*Configuration, error) {
	opened, err := host.Open(path, host.Options{Notice: o.Notice, Progress: o.Progress})
	if err == nil && o.System != "" {
		opened, err = opened.WithSystem(o.System)
	}
	if err != nil {
		return nil, err
	}
	return &Configuration{opened, slices.Clone(o.Profiles)}, nil
}

// Apps are the names of the apps, in the order of the file.
func (c *Configuration) Apps() []string { return c.opened.AppNames() }

// System is the name of the system that plans and schedules.
func (c *Configuration) System() string { return c.opened.System().Name }

// Measure measures every variant on this machine and writes the profile to a file. It runs the models, which takes
// seconds for each variant and batch size. An interrupted run leaves what it has beside the file, and the next one goes
// on from there. The configuration that is returned has this profile instead of others.
func (c *Configuration) Measure(ctx context.Context, file string) (*Configuration, error) {
	if _, err := measuring.Measure(ctx, c.opened, measuring.Measuring{File: file}); err != nil {
		return nil, err
	}
	return &Configuration{c.opened, []string{file}}, nil
}

// Plan makes the plan that a run starts with: what every machine holds and serves. It needs profiles of all variants
// that may run.
func (c *Configuration) Plan(ctx context.Context) (*Plan, error) {
	profiled, err := c.opened.Profile(c.profiles...)
	if err != nil {
		return nil, err
	}
	planned, err := profiled.Plan(ctx)
	if err != nil {
		return nil, err
	}
	return &Plan{planned}, nil
}

// Plan is the state that a run starts with: latencies, a planner and its first plan.
type Plan struct{ planned *host.Planned }

// Data is the plan. It is shared: do not change it. Its numbers of apps and variants are places in Apps of the
// configuration and in the order of the file.
func (p *Plan) Data() *plan.Plan { return p.planned.FirstPlan() }

// Simulation says how a run is simulated. Equal simulations of equal configurations have equal reports.
type Simulation struct {
	Seed uint64 // of service times
	// PlanDelay is how long the making of a plan takes during the run; with 0 plans are ready at once.
	PlanDelay time.Duration
	// Exact makes every service time its mean. Else they scatter as they were measured.
	Exact bool
	// Journal is a file that all inputs and decisions are written to; `sluice replay` and `sluice explain` read it. ""
	// writes none.
	Journal string
	// NoBound leaves out the most that any run could have had, which takes up to a second.
	NoBound bool
}

// Simulate serves a load on a virtual clock, with machines that take as long as they were measured. A planner may
// remember what it was asked: for equal reports, simulate a new Plan.
func (p *Plan) Simulate(load *workload.Spec, s Simulation) (*report.Report, error) {
	return p.planned.Simulate(host.Simulation{
		Seed: s.Seed, PlanDelay: s.PlanDelay, Exact: s.Exact, Journal: s.Journal, NoBound: s.NoBound,
	}, "simulated", load)
}

// Kind is a class of errors by what the person who runs the program has to do.
type Kind int

// The kinds of errors.
const (
	Failed  = Kind(fault.Failed)  // the operation failed
	Usage   = Kind(fault.Usage)   // what was asked is wrong: a name, a number, two things that exclude each other
	Config  = Kind(fault.Config)  // a file that a person wrote is wrong, or does not fit the others
	Missing = Kind(fault.Missing) // something has to be installed, fetched or measured first
)

// KindOf returns the kind of an error of this package.
func KindOf(err error) Kind {
	switch k := Kind(fault.Of(err)); k {
	case Usage, Config, Missing:
		return k
	default:
		return Failed
	}
}

// Version is the version of the module that the program was built with.
func Version() string { return host.Version() }
