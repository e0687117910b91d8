package fluid

import (
	"cmp"
	"slices"
)

// scenario is a demand that may come: rates by AppID in queries/s, and how much it counts.
type scenario struct {
	rates  []float64
	weight float64
}

const (
	// roomy is the factor on the present demand: what comes by chance.
	roomy = 1.2
	// doubled is the factor on the demand of an app, or some, in its scenario; grown that on all demand.
	doubled, grown = 2, 1.3
	// mostScenarios is how many scenarios of single apps there are: with more apps, some share one.
	mostScenarios = 6
	// mostForeseen is for how many stages there are scenarios beside the present demand. With more, the programs of all
	// scenarios take seconds, and what an app may grow by is little of what all machines do.
	mostForeseen = 350
	// calledRate is, as a part of the mean rate of an app, the demand of an app in its scenario that is hardly called.
	calledRate = 0.2
	// The weights of the present demand, of growth, and of all scenarios of apps together: the best of a dozen in the
	// generated worlds with little memory.
	presentWeight, growthWeight, movedWeight = 1, 0.2, 3
)

// scenarios lists the demand of the request, with what comes by chance, and what may come beside it: growth of all, and
// of each app alone.
func (m *problem) scenarios() []scenario {
	now := m.demand()
	var open []int
	total := 0.0
	for a := range m.apps {
		if !m.apps[a].closed {
			total += now[a]
			open = append(open, a)
		}
	}
	present := slices.Clone(now)
	for a := range present {
		present[a] *= roomy
	}
	out := []scenario{{present, presentWeight}}
	if m.o.Certain || len(open) == 0 || len(m.stages) > mostForeseen {
		return out
	}
	more := slices.Clone(now)
	for a := range more {
		more[a] *= grown
	}
	out = append(out, scenario{more, growthWeight})
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(now[b], now[a]) })
	n := min(len(open), mostScenarios)
	for k := range n {
		moved := slices.Clone(now)
		for at := k; at < len(open); at += n {
			a := open[at]
			moved[a] = max(doubled*now[a], calledRate*total/float64(len(open)))
		}
		out = append(out, scenario{moved, movedWeight / float64(n)})
	}
	return out
}

// demand is the present demand, by AppID in queries/s; 0 for closed apps.
func (m *problem) demand() []float64 {
	now := make([]float64, len(m.apps))
	for a := range m.apps {
		if !m.apps[a].closed {
			now[a] = m.apps[a].rate
		}
	}
	return now
}
