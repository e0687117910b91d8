package fluid

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// running is what machines hold by a snapshot.
type running struct {
	held    map[serving.WorkerID][]bool // by option of the worker's kind; none for a machine without instances
	byPlace map[serving.WorkerID][]fleet.InstanceSnapshot
}

// running reads the snapshot. Instances with a part of a machine for themselves do not count: no plan has such ones.
func (m *problem) running() *running {
	x := &running{
		held:    make(map[serving.WorkerID][]bool),
		byPlace: make(map[serving.WorkerID][]fleet.InstanceSnapshot),
	}
	kindOf := make(map[serving.WorkerID]*kind)
	for k := range m.kinds {
		for _, w := range m.kinds[k].workers {
			kindOf[w] = &m.kinds[k]
		}
	}
	for _, i := range capacity.Reusable(m.r.Snapshot) {
		k := kindOf[i.Key.Worker]
		if k == nil || i.DeviceType != k.device {
			continue
		}
		x.byPlace[i.Key.Worker] = append(x.byPlace[i.Key.Worker], i)
		if x.held[i.Key.Worker] == nil {
			x.held[i.Key.Worker] = make([]bool, len(k.options))
		}
		for j := range k.options {
			if slices.ContainsFunc(i.Variants, func(l fleet.Loaded) bool {
				return l.Wanted && l.Variant == k.options[j].variant
			}) {
				x.held[i.Key.Worker][j] = true
			}
		}
	}
	return x
}

// chosen returns which machines of each kind are used: those that run something first.
func (m *problem) chosen(n counts, now *running) [][]serving.WorkerID {
	out := make([][]serving.WorkerID, len(m.kinds))
	for k := range m.kinds {
		list := slices.Clone(m.kinds[k].workers)
		slices.SortStableFunc(list, func(a, b serving.WorkerID) int {
			return cmp.Compare(min(len(now.byPlace[b]), 1), min(len(now.byPlace[a]), 1))
		})
		out[k] = list[:n[k]]
	}
	return out
}

const (
	// usualSites is into how many sites crowded machines are divided: those of a site hold the same.
	usualSites = 24
	// roomOfSites is how many times over the sites hold the smallest variant of each stage, if there are machines for
	// that.
	roomOfSites = 2
)

// mostSites is into how many sites crowded machines are divided: more than usual where many stages do not fit into
// these.
func (m *problem) mostSites() int {
	parts := 0.0 // of a machine, in the best case
	for s := range m.stages {
		if m.apps[m.stages[s].app].closed {
			continue
		}
		fits := int64(0)
		for k := range m.kinds {
			for j := range m.kinds[k].options {
				if o := &m.kinds[k].options[j]; o.stage == serving.StageID(s) && o.rates != nil {
					fits = max(fits, m.kinds[k].memory/max(o.need, 1))
				}
			}
		}
		if fits > 0 {
			parts += 1 / float64(fits)
		}
	}
	return max(usualSites, int(math.Ceil(roomOfSites*parts)))
}

// fresh returns empty sites for so many machines: one for each machine where there are few, or where memory does not
// hold everything.
func (m *problem) fresh(n counts) (out []site) {
	crowded := 0
	for k := range m.kinds {
		if m.crowded(k) {
			crowded += n[k]
		}
	}
	sites := m.mostSites()
	for k := range m.kinds {
		parts := min(n[k], 1)
		if m.crowded(k) {
			if parts = n[k]; crowded > sites {
				parts = min(max(n[k]*sites/crowded, min(n[k], 2)), n[k])
			}
		}
		for i := range parts {
			count := n[k]*(i+1)/parts - n[k]*i/parts
			out = append(out, m.empty(k, count))
		}
	}
	return out
}

func (m *problem) empty(k, count int) site {
	return site{
		kind: k, count: float64(count), holds: make([]bool, len(m.kinds[k].options)), free: m.kinds[k].memory,
	}
}

// crowded tells whether a machine of a kind cannot hold all options.
func (m *problem) crowded(k int) bool {
	if m.o.Apart {
		return true
	}
	need := int64(0)
	for j := range m.kinds[k].options {
		need += m.kinds[k].options[j].need
		if need > m.kinds[k].memory {
			return true
		}
	}
	return false
}

// kept returns sites for the used machines that hold what they hold now; nil where these are too many different ones,
// or hold more than fits.
func (m *problem) kept(used [][]serving.WorkerID, now *running) (out []site) {
	sites := m.mostSites()
	for k := range used {
		from := len(out)
		for _, w := range used[k] {
			held := now.held[w]
			if held == nil {
				held = make([]bool, len(m.kinds[k].options))
			}
			at := slices.IndexFunc(out[from:], func(s site) bool { return slices.Equal(s.holds, held) })
			if at >= 0 {
				s := &out[from+at]
				s.workers = append(s.workers, w)
				s.count++
				continue
			}
			s := m.empty(k, 1)
			copy(s.holds, held)
			for j, holds := range held {
				if holds {
					s.free -= m.kinds[k].options[j].need
				}
			}
			if s.workers = append(s.workers, w); s.free < 0 {
				return nil
			}
			if out = append(out, s); len(out) > 2*sites {
				return nil
			}
		}
	}
	return out
}

// assign gives the sites their machines: each machine to the site of which it holds most.
func (m *problem) assign(sites []site, used [][]serving.WorkerID, now *running) {
	for k := range used {
		type pair struct {
			site   int
			worker serving.WorkerID
			have   int64
		}
		var pairs []pair
		for i := range sites {
			if sites[i].kind != k {
				continue
			}
			sites[i].workers = nil
			for _, w := range used[k] {
				have := int64(0)
				for j, held := range now.held[w] {
					if held && sites[i].holds[j] {
						have += m.kinds[k].options[j].need + 1
					}
				}
				pairs = append(pairs, pair{i, w, have})
			}
		}
		slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.have, a.have) })
		taken := make(map[serving.WorkerID]bool)
		for _, p := range pairs {
			if s := &sites[p.site]; !taken[p.worker] && len(s.workers) < int(s.count) {
				s.workers = append(s.workers, p.worker)
				taken[p.worker] = true
			}
		}
	}
	for i := range sites {
		slices.Sort(sites[i].workers)
	}
}

// loads returns how many variants the sites' machines have to load, and for how long machines miss, in all, what was
// unloaded to make room, in seconds: as much of a machine as was unloaded of what it held. The rest goes on. What is
// loaded beside all that was there costs nothing.
func (m *problem) loads(sites []site, now *running) (n int, seconds float64) {
	for i := range sites {
		s := &sites[i]
		for _, w := range s.workers {
			held := now.held[w]
			had, dropped, takes := 0.0, 0.0, 0.0
			for j, holds := range s.holds {
				has := held != nil && held[j]
				if has {
					had++
				}
				if has && !holds {
					dropped++
				}
				if holds && !has {
					n++
					o := &m.kinds[s.kind].options[j]
					takes += (o.load - o.start).Seconds() // the machine is there
				}
			}
			if dropped > 0 {
				seconds += takes * dropped / had
			}
		}
	}
	return n, seconds
}
