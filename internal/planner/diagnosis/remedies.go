package diagnosis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// FoundMachines notes added machines of one type each, the cheapest first. A mix of types comes before them if it costs
// less, or the same with fewer machines.
func (s *Search) FoundMachines(singles []Remedy, mix Remedy) {
	slices.SortStableFunc(singles, func(a, b Remedy) int { return cmp.Compare(a.CostPerHour, b.CostPerHour) })
	if len(mix.Add)+len(mix.Most) > 1 && (len(singles) == 0 || mix.less(&singles[0])) {
		s.Found(mix)
	}
	s.Out.Remedies = append(s.Out.Remedies, singles...)
}

func (m *Remedy) less(than *Remedy) bool {
	count := func(list []Addition) (n int) {
		for _, x := range list {
			n += x.Workers
		}
		return n
	}
	if math.Abs(m.CostPerHour-than.CostPerHour) > 1e-9 {
		return m.CostPerHour < than.CostPerHour
	}
	return count(m.Add) < count(than.Add)
}

// LowerFloors finds for each app with a floor the highest lower one that is enough; if no app alone helps, such floors
// for all of them.
func (s *Search) LowerFloors() {
	floors := make([]float64, len(s.Request.Spec.Apps))
	var having []serving.AppID
	for a := range floors {
		x := &s.Request.Spec.Apps[a]
		if floors[a] = x.Floor; x.Floor > 0 && !x.Closed {
			having = append(having, serving.AppID(a))
		}
	}
	alone := false
	for _, a := range having {
		if to, ok := s.lowerFloor(slices.Clone(floors), a); ok {
			alone = true
			s.Found(Remedy{Floors: []Floor{{App: a, To: to}}})
		}
	}
	if alone || len(having) < 2 {
		return
	}
	for _, a := range having {
		floors[a] = 0
	}
	if !s.Enough(s.floored(floors)) {
		return
	}
	// One app after the other gets the highest possible floor while the apps after it have none.
	remedy := Remedy{}
	for _, a := range having {
		to, _ := s.lowerFloor(slices.Clone(floors), a)
		if floors[a] = to; to < s.Request.Spec.Apps[a].Floor {
			remedy.Floors = append(remedy.Floors, Floor{App: a, To: to})
		}
	}
	s.Found(remedy)
}

// lowerFloor finds the highest floor of an app that is enough beside those of others. Only accuracies of its variants
// make a difference. It changes floors.
func (s *Search) lowerFloor(floors []float64, a serving.AppID) (float64, bool) {
	spec := s.Request.Spec
	own := spec.Apps[a].Floor
	steps := []float64{own}
	for _, st := range spec.Apps[a].Stages {
		for _, v := range spec.Stages[st].Variants {
			if x := spec.Variants[v].Accuracy; x < own {
				steps = append(steps, x)
			}
		}
	}
	slices.SortFunc(steps, func(x, y float64) int { return cmp.Compare(y, x) })
	for _, to := range slices.Compact(steps) {
		if floors[a] = to; s.Enough(s.floored(floors)) {
			return to, true
		}
	}
	return 0, false
}

// floored is a change of the floors, by AppID.
func (s *Search) floored(floors []float64) *Change {
	return s.Altered(func(apps []serving.App) {
		for a := range apps {
			apps[a].Floor = floors[a]
		}
	})
}

const (
	// mostSearched is how many apps' objectives are searched one by one.
	mostSearched = 4
	// mostStretched is the largest factor on an objective that is considered, mostMemory that on memory.
	mostStretched, mostMemory = 64, 64
)

// Lengthen finds for apps with bottlenecks the shortest longer objective that is enough; if no app alone helps, such
// objectives for all of them by the same factor.
func (s *Search) Lengthen() {
	eachOrAll(s.Narrow(), mostSearched, func(of []serving.AppID) bool {
		var remedy Remedy
		with := func(factor float64) *Change {
			return s.Altered(func(apps []serving.App) {
				remedy.SLOs = nil
				for _, a := range of {
					x := &apps[a].SLO.Latency
					*x = RoundObjective(time.Duration(factor * float64(*x)))
					remedy.SLOs = append(remedy.SLOs, Objective{App: a, To: *x})
				}
			})
		}
		factor, ok := s.Smallest(mostStretched, true, with)
		if ok {
			with(factor)
			s.Found(remedy)
		}
		return ok
	})
}

// AddMemory finds the least memory that is enough of one of some device types, or else of all of them by the same
// factor.
func (s *Search) AddMemory(types []serving.DeviceTypeID) {
	eachOrAll(types, len(types), func(of []serving.DeviceTypeID) bool {
		var remedy Remedy
		with := func(factor float64) *Change {
			spec := *s.Request.Spec
			spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
			remedy.Memory = nil
			for _, t := range of {
				x := &spec.DeviceTypes[t].MemoryBytes
				*x = (int64(factor*float64(*x)) + mebibyte - 1) / mebibyte * mebibyte
				remedy.Memory = append(remedy.Memory, Memory{Device: t, To: *x})
			}
			return &Change{Spec: &spec}
		}
		factor, ok := s.Smallest(mostMemory, false, with)
		if ok {
			with(factor)
			s.Found(remedy)
		}
		return ok
	})
}

const mebibyte = 1 << 20

// Servable makes every unserved stage servable: by a lower floor where that is enough and by a longer objective
// elsewhere. ok is false where a stage has neither.
func (s *Search) Servable() (remedy Remedy, x *Change, ok bool) {
	for _, u := range s.Out.Unserved {
		switch {
		case u.Floor > 0:
			at := slices.IndexFunc(remedy.Floors, func(f Floor) bool { return f.App == u.App })
			if at < 0 {
				remedy.Floors = append(remedy.Floors, Floor{App: u.App, To: u.Floor})
			} else {
				remedy.Floors[at].To = min(remedy.Floors[at].To, u.Floor)
			}
		case u.SLO > 0:
			at := slices.IndexFunc(remedy.SLOs, func(o Objective) bool { return o.App == u.App })
			if at < 0 {
				remedy.SLOs = append(remedy.SLOs, Objective{App: u.App, To: u.SLO})
			} else {
				remedy.SLOs[at].To = max(remedy.SLOs[at].To, u.SLO)
			}
		default:
			return Remedy{}, nil, false
		}
	}
	return remedy, s.Altered(func(apps []serving.App) {
		for _, f := range remedy.Floors {
			apps[f.App].Floor = f.To
		}
		for _, o := range remedy.SLOs {
			apps[o.App].SLO.Latency = o.To
		}
	}), true
}
