package sim

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// streamChange is the opening or the closing of a stream.
type streamChange struct {
	at serving.Time
	in engine.Input
}

// streamChanges returns the inputs that open and close the streams of clients, in the order of time.
func streamChanges(clients []workload.Client) []streamChange {
	var out []streamChange
	for _, s := range clients {
		out = append(out, streamChange{s.From, engine.NewStreamOpened(s.App, s.Stream, s.Rate)},
			streamChange{s.Until, engine.NewStreamClosed(s.App, s.Stream)})
	}
	slices.SortStableFunc(out, func(a, b streamChange) int { return cmp.Compare(a.at, b.at) })
	return out
}
