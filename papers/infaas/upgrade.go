package infaas

import "github.com/sluice-serving/sluice/serving"

// upgrade spends spare capacity on accuracy, and reports whether it changed anything. As long as there is one, it takes
// the change of an instance to a more accurate variant, or the idle worker, that raises the weighted mean accuracy most
// and leaves the stage its slack.
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
					rate, accuracy := x.afterMove(serving.StageID(s), old, k)
					// A stage without demand has no weight. It still gets a small one, since its next queries are to be
					// accurate, too.
					gain := max(st.weight, tolerance) * (accuracy - st.accuracy())
					if accuracy > st.accuracy()+tolerance && st.carries(rate, 1+x.o.Slack) &&
						gain > best*(1+tolerance) {
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

// retire gives up instances of stages that are lightly loaded without them, the least accurate first, as long as the
// mean accuracy does not fall. Their workers become idle, and other stages take idle workers first. It reports whether
// it changed anything.
func (x *state) retire() (changed bool) {
	for s := range x.stages {
		st := &x.stages[s]
		for i := len(st.options) - 1; i >= 0; i-- {
			k := st.options[i]
			for x.counts[k] > 0 && st.workers > 1 {
				rate, accuracy := x.afterMove(serving.StageID(s), k, idle)
				if !st.carries(rate, 1/x.o.Down) || accuracy < st.accuracy()-tolerance {
					break
				}
				x.move(k, idle)
				changed = true
			}
		}
	}
	return changed
}
