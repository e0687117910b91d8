package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

const (
	defaultRange    = 7  // plans in a range
	defaultFrontier = 20 // plans on a frontier: each 5 % of what the fleet carries
	mostPoints      = 1000
)

// ask reads what the flags say about the demand, the systems and the fleets.
func (p *planning) ask(demands []string, scale, compare string, chosen bool, changes []string) error {
	from, to := p.world.demand(), p.world.demand()
	for _, d := range demands {
		a, low, high, err := p.world.parseDemand(d)
		if err != nil {
			return exit(ExitUsage, "--demand %s: %v", d, err)
		}
		from[a], to[a] = low, high
	}
	low, high, err := parseSpan(scale, 1e6)
	if err != nil {
		return exit(ExitUsage, "--scale %s: %v", scale, err)
	}
	if p.points < 0 || p.points > mostPoints {
		return exit(ExitUsage, "--points is %d, want 2 to %d", p.points, mostPoints)
	}
	if !(p.after >= 0) || p.after > 1e6 {
		return exit(ExitUsage, "--after is %v, want a factor on the demand, at least 0", p.after)
	}
	ranged := low != high || !slices.Equal(from, to)
	steps := 1
	if ranged && p.frontier {
		return exit(ExitUsage,
			"--frontier goes from nothing to all that the fleet carries: give it one demand, not a range")
	}
	if ranged {
		if steps = p.points; steps == 0 {
			steps = defaultRange
		}
		if steps < 2 {
			return exit(ExitUsage, "--points is %d, want at least 2 for a range", steps)
		}
	}
	for i := range steps {
		at := 0.0
		if steps > 1 {
			at = float64(i) / float64(steps-1)
		}
		between := func(a, b float64) float64 { return a*(1-at) + b*at }
		s := step{rates: make([]float64, len(from))}
		factor := between(low, high)
		if low != high || low != 1 {
			s.scale = factor
		}
		for a := range s.rates {
			s.rates[a] = between(from[a], to[a]) * factor
		}
		p.steps = append(p.steps, s)
	}
	if last := &p.steps[len(p.steps)-1]; last.total() == 0 && (ranged || p.frontier || low != 1 || p.after > 0) {
		return &status{ExitUsage, errNoDemand}
	}
	if err := p.choose(compare, chosen); err != nil {
		return err
	}
	p.base = from
	p.fleets = []variation{{world: p.world}}
	for _, c := range changes {
		f, err := p.world.vary(c)
		if err != nil {
			return exit(ExitUsage, "--what-if %q: %v", c, err)
		}
		p.fleets = append(p.fleets, f)
	}
	return nil
}

// choose reads the systems to compare; the one asked for by --system comes first.
func (p *planning) choose(compare string, chosen bool) error {
	if compare == "" || chosen {
		p.systems = append(p.systems, p.world.system)
	}
	if compare == "" {
		return nil
	}
	for _, name := range strings.Split(compare, ",") {
		name = strings.TrimSpace(name)
		if name == p.world.system.Name {
			if !chosen {
				p.systems = append(p.systems, p.world.system) // with the options of the file
			}
			continue
		}
		s, err := systems.Named(name)
		if err != nil {
			return exit(ExitUsage, "--compare: %w", err)
		}
		p.systems = append(p.systems, s)
	}
	return nil
}

// parseDemand reads APP=RATE or APP=FROM..TO.
func (w *world) parseDemand(text string) (a serving.AppID, low, high float64, err error) {
	name, rate := "", text
	if at := strings.LastIndex(text, "="); at >= 0 {
		name, rate = text[:at], text[at+1:]
	} else if len(w.Spec.Apps) > 1 {
		return 0, 0, 0, fmt.Errorf("say for which app, as APP=RATE: there are %s", strings.Join(w.appNames(), ", "))
	}
	if name != "" {
		if a, err = w.resolve(name); err != nil {
			return 0, 0, 0, fmt.Errorf("%w: it has %s", err, strings.Join(w.appNames(), ", "))
		}
	}
	low, high, err = parseSpan(rate, 1e9)
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

// variation is the fleet, or one with other workers.
type variation struct {
	name   string // the change; empty for the fleet as it is
	world  *world
	change []int              // workers by DeviceTypeID; nil for none
	moved  []serving.WorkerID // by WorkerID before; nil when nothing changed
}

// vary reads a change such as '+2 gpu,-1 cpu' and returns the world with it.
func (w *world) vary(text string) (variation, error) {
	v := variation{change: make([]int, len(w.Spec.DeviceTypes))}
	var names, parts []string
	for _, d := range w.Spec.DeviceTypes {
		names = append(names, d.Name)
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		digits := strings.IndexFunc(part, func(r rune) bool { return !strings.ContainsRune("+-0123456789", r) })
		if digits < 0 {
			digits = len(part)
		}
		n, err := strconv.Atoi(part[:digits])
		if err != nil || n == 0 || part[0] != '+' && part[0] != '-' || max(n, -n) > most {
			return v, fmt.Errorf("%q is not understood: write +N or -N and a device type, such as '+2 %s', several "+
				"separated by commas", part, names[0])
		}
		name := strings.TrimSpace(part[digits:])
		d := slices.Index(names, name)
		if d < 0 {
			return v, fmt.Errorf("device type %q does not exist: use one of %s", name, strings.Join(names, ", "))
		}
		v.change[d] += n
		parts = append(parts, fmt.Sprintf("%+d %s", n, name))
	}
	v.name = strings.Join(parts, ", ")
	spec, moved, err := w.Spec.Resized(v.change)
	if err != nil {
		return v, err
	}
	if len(spec.Workers) == 0 {
		return v, fmt.Errorf("no worker would be left")
	}
	other, resolved := *w, *w.World
	resolved.Spec = spec
	other.World, other.placement = &resolved, nil
	for _, i := range w.placement {
		if to := moved[i.Worker]; to != serving.None {
			i.Worker = to
			other.placement = append(other.placement, i)
		}
	}
	v.world, v.moved = &other, moved
	return v, nil
}

// most workers that a change may add or take of a type.
const most = 100_000

// warn tells of added workers that no plan can use.
func (v *variation) warn(e *Env) {
	for d, n := range v.change {
		if n <= 0 {
			continue
		}
		measured := false
		for x := range v.world.Spec.Variants {
			measured = measured || v.world.profile.Latency(serving.VariantID(x), serving.DeviceTypeID(d), 1,
				1) < profile.Unknown
		}
		if !measured {
			name := v.world.Spec.DeviceTypes[d].Name
			fmt.Fprintf(e.Stderr,
				"sluice plan: no variant was measured on device type %q, so that added ones stay idle: run 'sluice "+
					"profile' on one\n", name)
		}
	}
}

// snapshot is what runs of a plan that was made for base, on this fleet.
func (v *variation) snapshot(base *world, p *plan.Plan) *fleet.Snapshot {
	out := &fleet.Snapshot{Seq: 1}
	seen := make(map[serving.WorkerID]int32)
	for n, i := range p.Instances {
		worker := i.Worker
		if v.moved != nil {
			if worker = v.moved[i.Worker]; worker == serving.None {
				continue
			}
		}
		seen[worker]++
		place := i.Place
		if place == 0 {
			place = seen[worker]
		}
		x := fleet.InstanceSnapshot{ID: serving.InstanceID(n + 1), Key: fleet.Key{Worker: worker, Ordinal: place},
			DeviceType: i.DeviceType(base.Spec),
			Stage:      i.Stage, State: fleet.Ready, Slots: i.Slots, Cores: i.Cores, Accelerator: i.Accelerator,
			Share: i.Share}
		for _, l := range i.Variants {
			x.Variants = append(x.Variants, fleet.Loaded{Variant: l.Variant, Limit: l.Limit, Warm: true, Wanted: true})
		}
		out.Instances = append(out.Instances, x)
	}
	return out
}
