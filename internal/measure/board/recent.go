package board

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// Recent has the latest batches of some workers.
type Recent struct {
	Schema  int           `json:"schema"`
	NowS    float64       `json:"now_s"`
	Batches []RecentBatch `json:"batches"` // without order
}

// RecentBatch is a batch that runs or has ended lately.
type RecentBatch struct {
	Worker   int32    `json:"w"` // index of Machines.Workers
	Batch    uint64   `json:"id"`
	Variant  int32    `json:"v"` // index of Machines.Variants
	Items    int32    `json:"items"`
	StartedS float64  `json:"from_s"`
	ExpectS  float64  `json:"to_s"` // its end, as believed when it began
	EndS     *float64 `json:"end_s"`
}

// MostRecent is the most batches of one answer; those that ended first are left out.
const MostRecent = 512

// Recent returns the batches of some workers that run, or that ended after an instant.
func (b *Board) Recent(workers []int, since serving.Time) *Recent {
	b.log.Lock()
	defer b.log.Unlock()
	out := &Recent{Schema: Schema, NowS: b.now.Seconds(), Batches: []RecentBatch{}}
	add := func(e *steps.Batch) {
		x := RecentBatch{
			Worker: int32(e.Worker), Batch: uint64(e.ID), Variant: int32(e.Variant), Items: e.Items,
			StartedS: e.Started.Seconds(), ExpectS: e.Due().Seconds(),
		}
		if e.Ended != serving.Never {
			end := e.Ended.Seconds()
			x.EndS = &end
		}
		out.Batches = append(out.Batches, x)
	}
	m := &b.machines
	for _, w := range workers {
		if w < 0 || w >= len(m.workers) {
			continue
		}
		for _, i := range m.workers[w].instances {
			for _, e := range i.running[:min(len(i.running), mostRuns)] {
				add(e)
			}
		}
	}
	b.log.Ended(func(e *steps.Batch) bool {
		if e.Ended > since && slices.Contains(workers, int(e.Worker)) {
			add(e)
		}
		return e.Ended > since && len(out.Batches) < MostRecent
	})
	return out
}
