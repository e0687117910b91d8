package telemetry

import "github.com/sluice-serving/sluice/serving"

// Waiting is a query that waited at a stage when a batch of it began.
type Waiting struct {
	Query       serving.QueryID
	Items       int
	Due         serving.Time
	MinAccuracy float64
	Pin         serving.VariantID // the only variant that may serve it, or serving.None
	In          bool              // it is in the batch
}

// waitingPiece is how many queries are looked at at a time: steps of the engine wait no longer than for that.
const waitingPiece = 1024

// WaitingAt returns the queries that are remembered and waited at the stage of r when its batch began, those of the
// batch included. Queries that ended before they ever began at a later stage of a graph are left out: nothing says when
// they came there.
func (t *Telemetry) WaitingAt(r *Run) (out []Waiting) {
	m := t.recent
	for from := 0; from < len(m.ring); from += waitingPiece {
		m.mu.Lock()
		st := &m.spec.Stages[r.stage]
		first := m.spec.Source(st.App) == r.stage
		for k := from; k < min(from+waitingPiece, len(m.ring)); k++ {
			x := &m.ring[k]
			if x.Query == 0 || x.app != st.App || x.arrived > r.started {
				continue
			}
			w := Waiting{Query: x.Query, Due: x.deadline, MinAccuracy: x.MinAccuracy, Pin: x.pin}
			if w.Items = x.waitedFor(r, first); w.Items == 0 {
				continue
			}
			for n := range x.Runs {
				w.In = w.In || x.Runs[n].Batch == r.Batch
			}
			out = append(out, w)
		}
		m.mu.Unlock()
	}
	return out
}

// waitedFor returns how many items of a query waited at the stage of a run when that began; 0 for none.
func (x *Explanation) waitedFor(r *Run, first bool) (items int) {
	been := false
	for k := range x.Runs {
		y := &x.Runs[k]
		if y.stage != r.stage {
			continue
		}
		been = true
		if y.ready <= r.started && (y.started > r.started || y.started == r.started && y.Batch >= r.Batch) {
			items += int(y.own)
		}
	}
	if !been && first && x.ended > r.started {
		return int(x.Items)
	}
	return items
}
