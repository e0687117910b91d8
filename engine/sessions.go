package engine

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// Clients of an app may say at what rate their streams will send while they are open (Scrooge §3.1). Plans are then
// made for the sum at least, and a stream that is opened or closed is a reason to plan anew (§3.4: when a client joins
// or leaves).

func (e *Engine) streamOpened(in *Input) {
	q := &in.Query
	if q.App < 0 || int(q.App) >= len(e.spec.Apps) || q.Stream == 0 || !(in.Rate >= 0) || math.IsInf(in.Rate, 0) {
		e.blame(fmt.Errorf("engine: stream %d of app %d opened at %v queries/s: the app must exist, the stream not "+
			"be 0 and the rate be finite and at least 0", q.Stream, q.App, in.Rate))
		return
	}
	if e.monitor.Open(q.App, q.Stream, in.Rate) {
		e.shifted, e.scaleDirty = e.now, true
	}
}

func (e *Engine) streamClosed(in *Input) {
	q := &in.Query
	if q.App >= 0 && int(q.App) < len(e.spec.Apps) && e.monitor.Close(q.App, q.Stream) {
		e.shifted, e.scaleDirty = e.now, true
	}
}

// raise lifts the demand of a plan to what clients have declared.
func (e *Engine) raise(rates []float64) {
	for a := range rates {
		if !e.spec.Apps[a].Closed {
			rates[a] = max(rates[a], e.monitor.Declared(serving.AppID(a)))
		}
	}
}

// Declared returns at which rate, in queries/s, the clients of an app have said that they will send.
func (e *Engine) Declared(a serving.AppID) float64 { return e.monitor.Declared(a) }
