package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Simulation are the options of a simulated run. Equal options and configurations give equal reports.
type Simulation struct {
	Seed uint64 // of service times; the report repeats it
	// PlanDelay is the time that planning takes during the run; with 0 plans are ready at once.
	PlanDelay time.Duration
	// Overhead is added to the time of every batch, beside the overheads that the profile has.
	Overhead time.Duration
	// Exact makes every service time its mean. Otherwise service times scatter as they were measured.
	Exact bool
	// Journal is a file that all inputs and decisions are written to; an existing one is replaced. Empty writes none.
	Journal string
	// NoBound leaves out the bound beside the report (see report.Bound), which takes up to about a second a run.
	NoBound bool
	// Foresight puts the bound by foresight there instead of the fluid bound. It takes ten seconds and more.
	Foresight bool
	// Starts is by device type how long a machine takes from being asked for to ready; those of other types are there.
	// Where all types have one, costs are those of the time in which machines were held, the time to start and to
	// linger included.
	Starts map[string]time.Duration
	// ProfileError is by which part the service times of a variant on a device type may be off from those of the
	// profile: each pair has a factor of its own, drawn by the seed, whose logarithm has this standard deviation.
	ProfileError float64
	// Incidents are what goes wrong.
	Incidents []Incident
}

// DefaultPlanDelay exceeds the usual time of the solver for some dozen workers.
const DefaultPlanDelay = 500 * time.Millisecond

// Simulate runs the configuration on a virtual clock under a load. Machines behave as they were measured; the engine is
// that of a server. The report has the given name. Planners may remember earlier requests, so that a second simulation
// of the same Planned may differ: call Plan again for a fresh one. An error is of kind fault.Config when the load does
// not fit the configuration.
func (p *Planned) Simulate(s Simulation, name string, load *workload.Spec) (*report.Report, error) {
	load = p.withTenants(load)
	src, err := load.Source(p.AppID)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	stays, err := load.Clients(p.AppID)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return p.SimulateArrivals(s, name, Offered{Queries: src, sessions: stays, Span: load.Duration()})
}

// withTenants returns a load whose entries may name the configuration's tenants. As at a server, queries of nobody are
// those of the tenant named default, if there is one.
func (p *Planned) withTenants(load *workload.Spec) *workload.Spec {
	own := *load
	own.Tenants = []string{}
	for _, t := range p.Spec().Tenants {
		own.Tenants = append(own.Tenants, t.Name)
	}
	if slices.Contains(own.Tenants, access.DefaultTenant) {
		own.Apps = slices.Clone(load.Apps)
		for k := range own.Apps {
			own.Apps[k].Tenant = cmp.Or(own.Apps[k].Tenant, access.DefaultTenant)
		}
	}
	return &own
}

// tenantInfo is what a report says of the tenants of a run that has ended; nil where there are none.
func (p *Planned) tenantInfo(e *engine.Engine) []report.TenantInfo {
	tenants := p.Spec().Tenants
	if len(tenants) == 0 {
		return nil
	}
	out := make([]report.TenantInfo, len(tenants)+1)
	for k := range out {
		if k > 0 {
			out[k].Name = tenants[k-1].Name
		}
		for a := range p.Spec().Apps {
			out[k].Machine += e.MachineTime(serving.AppID(a), k)
		}
	}
	return out
}

// Offered is the load of a simulated run.
type Offered struct {
	Queries  workload.Source
	sessions []workload.Client
	Span     time.Duration // in which queries are offered
	content  truth.Content // of the queries; nil derives it from the fan-outs
	recorded bool          // the report says of which parts latency is made up, as that of the recorded run does
}

// SimulateArrivals is Simulate for a load that was made already.
func (p *Planned) SimulateArrivals(s Simulation, name string, load Offered) (*report.Report, error) {
	e, err := p.Engine()
	if err != nil {
		return nil, err
	}
	noise := truth.Lognormal
	if s.Exact {
		noise = truth.Exact
	}
	really := p.measurements
	if s.ProfileError > 0 {
		really = truth.Erring(really, s.ProfileError, workload.Rand(s.Seed, "profile error"))
	}
	machines, err := truth.NewTable(p.Spec(), really, noise, workload.Rand(s.Seed, "service times"))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	machines.Overhead = s.Overhead
	if x := profile.NewStretches(p.Spec(), p.measurements); x != nil {
		machines.Stretch = x.Latency
	}
	recorder := report.NewRecorder(p.AppInfo(), report.Options{Parts: load.recorded})
	watch := bounds.NewWatch(p.Spec(), machines)
	c := sim.Config{
		Spec: p.Spec(), Engine: e, Truth: watch.Machines(), Source: watch.Source(load.Queries),
		Clients: load.sessions, Initial: p.first, Warm: true, Planner: p.planner, PlanDelay: s.PlanDelay,
		Recorder: recorder, Content: load.content, Outside: p.outside(),
	}
	if err := p.happen(&s, &c); err != nil {
		return nil, err
	}
	var j *JournalFile
	if s.Journal != "" {
		if j, err = p.OpenJournal(s.Journal, 0o666, math.MaxInt64, &JournalCounts{}, func(error) {}); err != nil {
			return nil, err
		}
		c.Observe = j.Record
	}
	result, err := sim.Run(c)
	if err = errors.Join(err, j.Close()); err != nil {
		return nil, err
	}
	meta := report.Meta{
		Name: name, Seed: s.Seed, Duration: load.Span, Usage: p.paid(result.Usage, &s, result.Held),
		Variants: p.VariantNames(), PlanFailures: result.PlanFailures, Tenants: p.tenantInfo(e),
	}
	if !s.NoBound {
		if meta.Bound, err = p.bound(watch, s.Foresight, recorder.Report(meta), result.Usage.Span); err != nil {
			return nil, err
		}
	}
	return recorder.Report(meta), nil
}

// outside is what clients wait beside the time that their queries are with the scheduler: the most that was measured on
// any device type, and 0 where nothing was.
func (p *Planned) outside() (out time.Duration) {
	for _, o := range p.measurements.Overhead {
		out = max(out, o.Query)
	}
	return out
}

// bound computes what no run could have passed that had the load and the machines of the watched one. The money is per
// hour of the span over which that of the run was counted.
func (p *Planned) bound(watch *bounds.Watch, foresight bool, found *report.Report,
	span time.Duration) (*report.Bound, error) {
	solver, err := Solver()
	if err != nil {
		return &report.Bound{Skipped: err.Error()}, nil //nolint:nilerr // the report says it
	}
	ctx := context.Background()
	options := bounds.Fluid()
	if foresight {
		options = bounds.Foresight()
	}
	b, err := watch.Utility(ctx, solver, options)
	if err != nil || b.Skipped != "" {
		return b, err
	}
	b.CostPerHour, err = watch.Cost(ctx, solver, found, span)
	return b, err
}

// RecordedRun is a run that a load generator has recorded in a file.
type RecordedRun struct {
	Live     *report.Report
	arrivals []workload.Arrival
	span     time.Duration
}

// ReadRun reads a recorded run. An error is of kind fault.Config when the file cannot be read, or names apps or
// variants that the configuration does not have.
func (o *Opened) ReadRun(path string) (*RecordedRun, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	pinned := func(a serving.AppID, name string) (serving.VariantID, error) {
		if v, ok := o.tables.VariantOf(a, name); ok {
			return v, nil
		}
		return serving.None, fmt.Errorf("variant %q is not in %s", name, o.Name())
	}
	arrivals, header, err := workload.ReadArrivals(f, o.AppID, pinned)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	live, err := loadgen.ReadReport(f, o.AppInfo(), report.Options{Parts: true})
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	return &RecordedRun{Live: live, arrivals: arrivals, span: time.Duration(header.DurationNS)}, nil
}

// SimulateRun simulates the arrivals of a recorded run.
func (p *Planned) SimulateRun(s Simulation, run *RecordedRun) (*report.Report, error) {
	return p.SimulateArrivals(s, "simulated", Offered{
		Queries: workload.FromSlice(run.arrivals), Span: run.span, content: p.recorded(run.arrivals), recorded: true,
	})
}

// recorded returns the content of the queries of a recorded run: how many items each had at each stage, and how
// long they were. It is nil when the record has none.
func (p *Planned) recorded(arrivals []workload.Arrival) truth.Content {
	spec := p.Spec()
	known := false
	seen := make([][]truth.StageSeen, len(arrivals))
	for k := range arrivals {
		a := &arrivals[k]
		if a.Stages == nil {
			continue
		}
		known = true
		for _, st := range spec.Apps[a.App].Stages {
			name := spec.Stages[st].Name
			seen[k] = append(seen[k], truth.StageSeen{Items: a.Stages[name], Length: a.Lengths[name]})
		}
	}
	if !known {
		return nil
	}
	return truth.NewRecorded(spec, seen)
}
