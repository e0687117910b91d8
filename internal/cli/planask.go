package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/serving"
)

const (
	defaultRange = 7       // plans in a range
	maxScale     = 1e6     // of a demand
	maxRate      = 1e9     // queries/s
	maxWorkers   = 100_000 // that a change may add or remove of a type
)

var errNoDemand = errors.New("there is no demand to scale: give --demand APP=RATE, or set apps[].demand in the file")

// read makes the question from the flags.
func (p *planFlags) read() error {
	from, to := p.of.Demand(), p.of.Demand()
	for _, d := range p.demands {
		a, low, high, err := parseDemand(p.of.Opened, d)
		if err != nil {
			return fault.Errorf(fault.Usage, "--demand %s: %v", d, err)
		}
		from[a], to[a] = low, high
	}
	p.question.Of = p.of
	if err := p.readSteps(from, to); err != nil {
		return err
	}
	if err := p.readSystems(); err != nil {
		return err
	}
	if p.after > 0 {
		p.question.Running = make([]float64, len(from))
		for a, rate := range from {
			p.question.Running[a] = rate * p.after
		}
	}
	for _, c := range p.changes {
		f, err := parseChange(p.of, c)
		if err != nil {
			return fault.Errorf(fault.Usage, "--what-if %q: %v", c, err)
		}
		p.question.Changed = append(p.question.Changed, f)
	}
	return nil
}

// readSteps makes the demands from from to to, in queries/s by AppID, and those of --scale.
func (p *planFlags) readSteps(from, to []float64) error {
	low, high, err := parseSpan(p.scale, maxScale)
	if err != nil {
		return fault.Errorf(fault.Usage, "--scale %s: %v", p.scale, err)
	}
	if p.points < 0 || p.points > mostPoints {
		return fault.Errorf(fault.Usage, "--points is %d, want 2 to %d", p.points, mostPoints)
	}
	if !(p.after >= 0) || p.after > maxScale {
		return fault.Errorf(fault.Usage, "--after is %v, want a factor on the demand, at least 0", p.after)
	}
	ranged := low != high || !slices.Equal(from, to)
	steps := 1
	if ranged && p.frontier {
		return fault.Errorf(fault.Usage,
			"--frontier goes from nothing to all that the fleet carries: give it one demand, not a range")
	}
	if ranged {
		if steps = p.points; steps == 0 {
			steps = defaultRange
		}
		if steps < 2 {
			return fault.Errorf(fault.Usage, "--points is %d, want at least 2 for a range", steps)
		}
	}
	demands := &p.question.Demands
	for i := range steps {
		at := 0.0
		if steps > 1 {
			at = float64(i) / float64(steps-1)
		}
		between := func(a, b float64) float64 { return a*(1-at) + b*at }
		d := planning.Demand{Rates: make([]float64, len(from))}
		factor := between(low, high)
		if low != high || low != 1 {
			d.Scale = factor
		}
		for a := range d.Rates {
			if d.Rates[a] = between(from[a], to[a]) * factor; !(d.Rates[a] >= 0 && d.Rates[a] <= limits.Demand) {
				return fault.Errorf(fault.Usage, "the demand of app %q is %v, want 0 to %g queries/s",
					p.of.Spec().Apps[a].Name, d.Rates[a], limits.Demand)
			}
		}
		*demands = append(*demands, d)
	}
	last := &(*demands)[len(*demands)-1]
	if last.Total() == 0 && (ranged || p.frontier || low != 1 || p.after > 0) {
		return fault.Wrap(fault.Usage, errNoDemand)
	}
	return nil
}

// readSystems reads the systems to compare; the one asked for by --system comes first.
func (p *planFlags) readSystems() error {
	own, chosen := p.of.System(), p.system != ""
	list := &p.question.Systems
	if p.compare == "" || chosen {
		*list = append(*list, own)
	}
	if p.compare == "" {
		return nil
	}
	for _, name := range strings.Split(p.compare, ",") {
		name = strings.TrimSpace(name)
		if name == own.Name {
			if !chosen {
				*list = append(*list, own) // with the options of the file
			}
			continue
		}
		s, err := host.ParseSystem(name)
		if err != nil {
			return fault.Errorf(fault.Usage, "--compare: %w", err)
		}
		*list = append(*list, s)
	}
	return nil
}

// parseDemand reads APP=RATE or APP=FROM..TO.
func parseDemand(o *host.Opened, text string) (a serving.AppID, low, high float64, err error) {
	name, rate := "", text
	if at := strings.LastIndex(text, "="); at >= 0 {
		name, rate = text[:at], text[at+1:]
	} else if len(o.Spec().Apps) > 1 {
		return 0, 0, 0, fmt.Errorf("say for which app, as APP=RATE: there are %s", strings.Join(o.AppNames(), ", "))
	}
	if name != "" {
		if a, err = o.AppID(name); err != nil {
			return 0, 0, 0, fmt.Errorf("%w: it has %s", err, strings.Join(o.AppNames(), ", "))
		}
	}
	low, high, err = parseSpan(rate, maxRate)
	return a, low, high, err
}

// parseSpan reads X or FROM..TO.
func parseSpan(text string, most float64) (low, high float64, err error) {
	parts := strings.Split(text, "..")
	if len(parts) > 2 {
		return 0, 0, fmt.Errorf("want a number, or FROM..TO")
	}
	var v [2]float64
	for i, p := range parts {
		v[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(v[i] >= 0) || v[i] > most {
			return 0, 0, fmt.Errorf("%q is not a number from 0 to %g", p, most)
		}
	}
	if len(parts) == 1 {
		return v[0], v[0], nil
	}
	return v[0], v[1], nil
}

// parseChange reads a change of the fleet such as '+2 gpu,-1 cpu'.
func parseChange(p *host.Profiled, text string) (planning.Fleet, error) {
	types := p.Spec().DeviceTypes
	change := make([]int, len(types))
	var names, parts []string
	for _, d := range types {
		names = append(names, d.Name)
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		digits := strings.IndexFunc(part, func(r rune) bool { return !strings.ContainsRune("+-0123456789", r) })
		if digits < 0 {
			digits = len(part)
		}
		n, err := strconv.Atoi(part[:digits])
		if err != nil || n == 0 || part[0] != '+' && part[0] != '-' || max(n, -n) > maxWorkers {
			return planning.Fleet{}, fmt.Errorf("%q is not understood: write +N or -N and a device type, such as "+
				"'+2 %s', several separated by commas", part, names[0])
		}
		name := strings.TrimSpace(part[digits:])
		d := slices.Index(names, name)
		if d < 0 {
			return planning.Fleet{}, fmt.Errorf("device type %q does not exist: use one of %s", name,
				strings.Join(names, ", "))
		}
		change[d] += n
		parts = append(parts, fmt.Sprintf("%+d %s", n, name))
	}
	return planning.Changed(p, strings.Join(parts, ", "), change)
}
