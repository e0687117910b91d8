package proteus

import (
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// place gives counts to workers with the fewest loads.
func (m *problem) placeCounts(counts []int) (hosts map[serving.WorkerID]int, loads int) {
	groups := make([][]serving.WorkerID, len(m.groups))
	for g := range m.groups {
		groups[g] = m.groups[g].workers
	}
	list := make([]capacity.GroupVariant, len(m.pairs))
	for k, p := range m.pairs {
		list[k] = capacity.GroupVariant{Group: p.group, Stage: p.stage, Variant: p.variant}
	}
	return capacity.PlaceCounts(groups, list, counts, m.byWorker)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
