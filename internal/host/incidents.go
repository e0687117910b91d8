package host

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/provider/supplied"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/sim"
)

// Incident is something that goes wrong in a simulated run.
type Incident struct {
	Kind IncidentKind
	At   time.Duration // since the beginning
	// For is how long it lasts: of Leaves, until the machine is gone; of Lost, until another can be had, 0 for at once;
	// of the others, until it is over.
	For    time.Duration
	Worker string // that it happens to; "" for TakenOver, which happens to none
}

// IncidentKind says what goes wrong.
type IncidentKind string

// The kinds of incidents.
const (
	Lost      IncidentKind = "lost"      // a worker's machine is gone at once
	Leaves    IncidentKind = "leaves"    // it is announced to go, and its work can move before
	Missing   IncidentKind = "missing"   // no machine can be had for a worker
	TakenOver IncidentKind = "takenover" // the dispatcher dies, and another goes on after a while
)

// ParseIncident reads KIND@AT[+FOR][:WORKER], such as lost@20s:w-0, leaves@20s+30s:w-0 or takenover@20s+4s. An error
// is of kind fault.Usage.
func ParseIncident(text string) (x Incident, err error) {
	wrong := func(what string) (Incident, error) {
		return x, fault.Errorf(fault.Usage, "incident %q: %s; want KIND@AT[+FOR][:WORKER], such as lost@20s:w-0, with "+
			"kinds lost, leaves, missing, takenover", text, what)
	}
	kind, rest, ok := strings.Cut(text, "@")
	if !ok {
		return wrong("it does not say when")
	}
	x.Kind = IncidentKind(kind)
	if !slices.Contains([]IncidentKind{Lost, Leaves, Missing, TakenOver}, x.Kind) {
		return wrong("nothing of that kind happens")
	}
	times, worker, _ := strings.Cut(rest, ":")
	x.Worker = worker
	at, lasts, long := strings.Cut(times, "+")
	if x.At, err = time.ParseDuration(at); err != nil || x.At <= 0 {
		return wrong("when it happens is no duration above 0")
	}
	if x.For, err = time.ParseDuration(cmp.Or(lasts, "0s")); err != nil || x.For < 0 {
		return wrong("how long it lasts is no duration")
	}
	switch {
	case (x.Kind == TakenOver) != (worker == ""):
		return wrong("all but takenover happen to a worker")
	case x.Kind != Lost && (!long || x.For == 0):
		return wrong("it does not say how long it lasts")
	}
	return x, nil
}

// happen adds what goes wrong to a run.
func (p *Planned) happen(s *Simulation, c *sim.Config) error {
	if err := p.supplied(s, c); err != nil {
		return err
	}
	for _, x := range slices.SortedStableFunc(slices.Values(s.Incidents),
		func(a, b Incident) int { return cmp.Compare(a.At, b.At) }) {
		at := serving.Time(x.At)
		if x.Kind == TakenOver {
			if n := len(c.Takeovers); n > 0 && c.Takeovers[n-1].Until >= at {
				return fault.Errorf(fault.Usage, "incident %s@%v: the takeover before lasts longer", x.Kind, x.At)
			}
			c.Takeovers = append(c.Takeovers, sim.Takeover{At: at, Until: at.Add(x.For)})
			continue
		}
		w := serving.WorkerID(slices.IndexFunc(p.Spec().Workers,
			func(w serving.Worker) bool { return w.Name == x.Worker }))
		switch {
		case w < 0:
			return fault.Errorf(fault.Usage, "incident %s@%v: the configuration has no worker %q", x.Kind, x.At,
				x.Worker)
		case x.Kind == Lost:
			c.Faults = append(c.Faults, sim.Fault{At: at, Worker: w, Until: at.Add(x.For)})
		case x.Kind == Leaves:
			c.Faults = append(c.Faults, sim.Fault{At: at.Add(x.For), Worker: w, Notice: x.For})
		case c.Supply == nil:
			return fault.Errorf(fault.Usage, "incident missing@%v: no machine is asked for where none takes a time to "+
				"come: give its start, too", x.At)
		default:
			c.Supply.Gaps = append(c.Supply.Gaps, sim.Gap{Worker: w, From: at, Until: at.Add(x.For)})
		}
	}
	slices.SortStableFunc(c.Faults, func(a, b sim.Fault) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// supplied has machines come only after a while.
func (p *Planned) supplied(s *Simulation, c *sim.Config) error {
	if len(s.Starts) == 0 {
		return nil
	}
	types := p.Spec().DeviceTypes
	c.Supply = &sim.Supply{Starts: make([]time.Duration, len(types)), Timeout: pendingTimeout}
	for k := range p.tables.Backends {
		c.Supply.Linger = max(c.Supply.Linger, time.Duration(p.tables.Backends[k].Linger))
	}
	for name, d := range s.Starts {
		k := slices.IndexFunc(types, func(t serving.DeviceType) bool { return t.Name == name })
		if k < 0 {
			return fault.Errorf(fault.Usage, "machine start %s: the configuration has no device type %q", d, name)
		}
		c.Supply.Starts[k] = d
	}
	if c.Supply.Linger <= 0 {
		c.Supply.Linger = supplied.DefaultLinger
	}
	return nil
}

// pendingTimeout is how long simulated machines that do not come are waited for.
const pendingTimeout = 5 * time.Minute

// paid is the usage of a run. Where all machines are supplied it has the price of the time in which they were held,
// from being asked for to being given back.
func (p *Planned) paid(u report.Usage, s *Simulation, held []time.Duration) *report.Usage {
	types := p.Spec().DeviceTypes
	dollars := 0.0
	for k := range types {
		if types[k].Part {
			continue
		}
		if s.Starts[types[k].Name] <= 0 {
			return &u
		}
		if k < len(held) {
			dollars += types[k].PricePerHour * held[k].Hours()
		}
	}
	u.Dollars = dollars
	return &u
}
