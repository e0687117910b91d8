package sim

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
)

// streamChange is the opening or the closing of a stream.
type streamChange struct {
	at serving.Time
	in engine.Input
}

// streamChanges turns stays into what the engine is told, in the order of time.
func streamChanges(clients []workload.Client) []streamChange {
	var out []streamChange
	for _, s := range clients {
		q := serving.Query{App: s.App, Stream: s.Stream}
		out = append(out, streamChange{
			s.From, engine.Input{Kind: engine.StreamOpened, Query: q, Rate: s.Rate, Variant: serving.None},
		},
			streamChange{s.Until, engine.Input{Kind: engine.StreamClosed, Query: q, Variant: serving.None}})
	}
	slices.SortStableFunc(out, func(a, b streamChange) int { return cmp.Compare(a.at, b.at) })
	return out
}
