package host

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// once shows every sentence once, however many plans are made of a configuration.
type once struct {
	mu    sync.Mutex
	shown map[string]bool
}

// Notice shows a warning unless it was shown before.
func (o *Opened) Notice(format string, args ...any) {
	o.say("warning: " + fmt.Sprintf(format, args...))
}

// say shows a sentence unless it was shown before.
func (o *Opened) say(text string) {
	o.shown.mu.Lock()
	before := o.shown.shown[text]
	if o.shown.shown == nil {
		o.shown.shown = make(map[string]bool)
	}
	o.shown.shown[text] = true
	o.shown.mu.Unlock()
	if !before {
		o.options.Notice(text)
	}
}

// NoticeTooSlow shows, once for each configuration that was opened, the variants that are too slow for some kinds of
// machine. Planners do not place them there; what made places all the same, since it splits objectives otherwise, is
// left out. A nil plan places nothing.
func (p *Profiled) NoticeTooSlow(made *plan.Plan) {
	spec := p.Spec()
	if p.StartsUnprofiled() {
		return
	}
	budgets := capacity.ServableDemands(p.latencies, spec, nil)
	for v := range spec.Variants {
		x := &spec.Variants[v]
		within := budgets[x.Stage].Budget
		var slow []string
		for d := range spec.DeviceTypes {
			id := serving.DeviceTypeID(d)
			took := p.latencies.Latency(serving.VariantID(v), id, 1, 1)
			if took > within && took < profile.Unknown && p.hasWorker(id) &&
				!places(spec, made, serving.VariantID(v), id) {
				slow = append(slow, fmt.Sprintf("%v on device type %q", took.Round(10*time.Microsecond),
					spec.DeviceTypes[d].Name))
			}
		}
		if len(slow) > 0 && !x.Retired {
			p.Notice("variant %q takes %s for one item, and the objective leaves %v: it is not placed there", x.Name,
				strings.Join(slow, ", "), within.Round(10*time.Microsecond))
		}
	}
}

// places tells whether a plan holds a variant on some worker, or part of one, of a device type.
func places(spec *serving.Spec, made *plan.Plan, v serving.VariantID, d serving.DeviceTypeID) bool {
	return made != nil && slices.ContainsFunc(made.Instances, func(i plan.Instance) bool {
		return i.DeviceType(spec) == d &&
			slices.ContainsFunc(i.Variants, func(l plan.Variant) bool { return l.Variant == v })
	})
}

func (p *Profiled) hasWorker(d serving.DeviceTypeID) bool {
	return slices.ContainsFunc(p.Spec().Workers, func(w serving.Worker) bool { return w.DeviceType == d })
}

// noticeLeftOut names what the first plan leaves out for want of memory or of workers.
func (p *Planned) noticeLeftOut() {
	spec := p.Spec()
	if len(p.first.Sharing) > 0 {
		var names []string
		for _, s := range p.first.Sharing {
			names = append(names, fmt.Sprintf("%q", spec.Stages[s].Name))
		}
		p.Notice("the rule of planner %s leaves nothing to some stages on %d workers: %s share workers with others",
			p.first.Planner, len(spec.Workers), strings.Join(names, ", "))
	}
	for a, part := range p.first.TooLarge {
		if part > 0 {
			p.Notice("app %q: %s of its queries bring more items than any machine serves within %v, or more than "+
				"max_batch: they are refused", spec.Apps[a].Name, quantity.Percent(part), spec.Apps[a].SLO.Latency)
		}
	}
	for a, demand := range p.Demand() {
		x := &spec.Apps[a]
		if within := demand * x.SLO.Latency.Seconds(); within > float64(x.QueueLimit) {
			p.Notice("app %q refuses queries while %d wait, and %.0f of its demand come within its objective of %v: "+
				"give it a larger queue_limit", x.Name, x.QueueLimit, within, x.SLO.Latency)
		}
	}
	if !p.tables.Proposed || !systems.Written(p.system.Planner) {
		return
	}
	budgets := capacity.ServableDemands(p.latencies, spec, nil)
	for v := range spec.Variants {
		id, x := serving.VariantID(v), &spec.Variants[v]
		placed := slices.ContainsFunc(p.first.Instances, func(i plan.Instance) bool {
			return slices.ContainsFunc(i.Variants, func(l plan.Variant) bool { return l.Variant == id })
		})
		runs := slices.ContainsFunc(spec.Workers, func(w serving.Worker) bool {
			memory := spec.DeviceTypes[w.DeviceType].MemoryBytes
			return (memory <= 0 || x.MemoryBytes+x.ItemBytes <= memory) &&
				p.latencies.Latency(id, w.DeviceType, 1, 1) <= budgets[x.Stage].Budget
		})
		if !placed && runs && !x.Retired {
			p.Notice("variant %q is not loaded: no worker has memory for it beside the others", x.Name)
		}
	}
}
