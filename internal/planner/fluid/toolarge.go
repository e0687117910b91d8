package fluid

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// cutClasses cuts the sizes of each app where the machines of a kind can serve no larger query. Otherwise a class would
// count as one that nobody serves because of its largest queries alone.
func (m *problem) cutClasses() {
	cut := false
	for a := range m.apps {
		mix := m.r.Mix(serving.AppID(a))
		if m.apps[a].closed || mix.Classes() == 1 {
			continue
		}
		var limits []int
		for k := range m.kinds {
			if n := m.largestAlone(&m.kinds[k], m.spec.Source(serving.AppID(a))); n > 0 && n < mix.Largest() {
				limits = append(limits, n)
			}
		}
		if limits != nil {
			m.apps[a].classes, cut = classes(mix, limits), true
		}
	}
	if cut {
		m.readStages() // by the sizes of small queries
	}
}

// largestAlone is the size of the largest query that machines of a kind serve in time by itself at a stage, with any
// variant that any query may use.
func (m *problem) largestAlone(k *kind, s serving.StageID) (most int) {
	for _, v := range m.spec.Stages[s].Variants {
		x := &m.spec.Variants[v]
		if x.Retired || m.broken[v] || m.spec.BelowFloor(v) || x.MemoryBytes > k.memory {
			continue
		}
		n := profile.BatchLimit(m.believed, m.spec, v, k.device, 1, m.stages[s].longest)
		if x.ItemBytes > 0 {
			n = min(n, int((k.memory-x.MemoryBytes)/x.ItemBytes))
		}
		most = max(most, n)
	}
	return most
}

// leaveLost leaves out the queries of each app that no machine serves in time because they are too large. They are
// refused, whatever is planned.
func (m *problem) leaveLost() {
	for a := range m.apps {
		x := &m.apps[a]
		n := len(x.classes)
		for n > 0 && !m.servesClass(serving.AppID(a), n-1) {
			n--
		}
		if n == 0 || n == len(x.classes) {
			continue // the app is served nowhere, or whole
		}
		for _, c := range x.classes[n:] {
			x.lost += c.share
		}
		x.classes = x.classes[:n]
		for c := range x.classes {
			x.classes[c].share /= 1 - x.lost
		}
		m.worth -= x.weight * x.rate * x.lost
		x.rate *= 1 - x.lost
		m.eachOption(serving.AppID(a), func(o *option) { o.rates = o.rates[:n] })
	}
}

// servesClass tells whether each stage of an app serves a class of its queries on some machine.
func (m *problem) servesClass(a serving.AppID, c int) bool {
	return !slices.ContainsFunc(m.spec.Apps[a].Stages, func(s serving.StageID) bool {
		if m.stages[s].fan <= 0 {
			return false
		}
		some := false
		m.eachOption(a, func(o *option) { some = some || o.stage == s && o.rates[c] > 0 })
		return !some
	})
}

// servableRequest returns the request without the queries that nothing serves: plans are compared by what they do for
// the others. On owned machines its rates are what has come of late, where that is known.
func (m *problem) servableRequest() plan.Request {
	out := *m.r
	out.Beliefs, out.Rates, out.Mixes = m.believed, slices.Clone(m.r.Rates), nil
	if !m.rents() {
		copy(out.Rates, m.r.Recent)
	}
	for a := range m.apps {
		x, id := &m.apps[a], serving.AppID(a)
		mix := m.r.Mix(id)
		switch {
		case a >= len(out.Rates) || x.closed:
		case !m.servedAnywhere(a):
			out.Rates[a] = 0
		case x.lost > 0:
			out.Rates[a] *= 1 - x.lost
			mix = upTo(mix, x.classes[len(x.classes)-1].size)
		}
		out.Mixes = append(out.Mixes, *mix)
	}
	return out
}

// upTo returns the part of a mix up to a size.
func upTo(mix *serving.Mix, size int) *serving.Mix {
	out := &serving.Mix{Count: mix.Count}
	total := 0.0
	for i := range mix.Classes() {
		if items, share := mix.Class(i); items <= size {
			out.Sizes, out.Shares = append(out.Sizes, int32(items)), append(out.Shares, share)
			total += share
		}
	}
	for i := range out.Shares {
		out.Shares[i] /= total
	}
	return out
}

// withLost adds to a forecast of the other queries those that nothing serves.
func (m *problem) withLost(f *plan.Forecast) {
	all, lost := 0.0, 0.0
	f.Late = slices.Clone(f.Late)
	for a := range m.apps {
		x := &m.apps[a]
		if x.closed || a >= len(m.r.Rates) || a >= len(f.Late) {
			continue
		}
		part := x.lost
		if !m.servedAnywhere(a) {
			part = 1
		}
		all += m.r.Rates[a]
		lost += m.r.Rates[a] * part
		f.Late[a] = part + (1-part)*f.Late[a]
	}
	if lost > 0 {
		f.Violation = (lost + (all-lost)*f.Violation) / all
		f.Deviation *= (all - lost) / all
	}
}
