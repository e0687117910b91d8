package infaas

import "github.com/sluice-serving/sluice/serving"

// upgrade spends what stages have to spare on accuracy: while there is one, the change of an instance to a more
// accurate variant, or the idle worker, that raises the weighted mean value most and leaves the stage its slack. It
// tells whether anything was changed.
func (x *state) upgrade() (changed bool) {
	for {
		best, from, to := 0.0, idle, idle
		for s := range x.stages {
			st := &x.stages[s]
			if st.workers == 0 {
				continue
			}
			for _, k := range st.options {
				try := func(old int) {
					able, value := x.afterMove(serving.StageID(s), old, k)
					// A stage that nothing is asked of has no weight, but should be accurate too when its queries come.
					gain := max(st.weight, tolerance) * (value - st.accuracy())
					if value > st.accuracy()+tolerance && st.carries(able, 1+x.o.Slack) && gain > best*(1+tolerance) {
						best, from, to = gain, old, k
					}
				}
				if x.idle[x.options[k].group] > 0 {
					try(idle)
				}
				for _, old := range st.options {
					if x.counts[old] > 0 && x.options[old].group == x.options[k].group {
						try(old)
					}
				}
			}
		}
		if to == idle {
			return changed
		}
		x.move(from, to)
		changed = true
	}
}

// retire gives up instances of stages that are loaded little without them, as long as accuracy does not suffer: the
// least accurate first. Their workers are what other stages look for first. It tells whether anything was changed.
func (x *state) retire() (changed bool) {
	for s := range x.stages {
		st := &x.stages[s]
		for i := len(st.options) - 1; i >= 0; i-- {
			k := st.options[i]
			for x.counts[k] > 0 && st.workers > 1 {
				able, value := x.afterMove(serving.StageID(s), k, idle)
				if !st.carries(able, 1/x.o.Down) || value < st.accuracy()-tolerance {
					break
				}
				x.move(k, idle)
				changed = true
			}
		}
	}
	return changed
}
