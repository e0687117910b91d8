package plan

// Experience is what serving has shown of pools of machines. A planner that explores pools plans by it.
type Experience struct {
	Pools []PoolTrial
	// Explore allows a pool that was not tried. Without it the best of those tried is to serve.
	Explore bool
}

// PoolTrial is what came of serving with one pool.
type PoolTrial struct {
	Machines []int   // by DeviceTypeID
	Held     bool    // the objectives of all apps held
	InTime   float64 // queries/s served in time
	Answered float64 // queries/s answered, late ones included
}

// heldShare is how much of a rate a pool has carried that is believed to carry the rate.
const heldShare = 0.95

// Holds reports whether the pool has carried a rate in queries/s, or nearly that.
func (t *PoolTrial) Holds(rate float64) bool { return t.Held && t.InTime >= heldShare*rate }

// Best returns the index of the pool that was best for a rate in queries/s, the first of equal ones: one that holds it,
// the most carried, or else the one that answered most; -1 for none. Under overload even a pool that lacks little is
// late with nearly everything: what it answers tells more.
func (e *Experience) Best(rate float64) int {
	best := -1
	for i := range e.Pools {
		if best < 0 || e.Pools[i].better(&e.Pools[best], rate) {
			best = i
		}
	}
	return best
}

func (t *PoolTrial) better(u *PoolTrial, rate float64) bool {
	switch x, y := t.Holds(rate), u.Holds(rate); {
	case x != y:
		return x
	case x:
		return t.InTime > u.InTime
	}
	return t.Answered > u.Answered
}
