package engine

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// Clients of an app may declare the rates of their open streams (Scrooge §3.1). Plans are then made for their sum at
// least. A stream that is opened or closed is a reason to plan (§3.4: when a client joins or leaves).

// streamOpened records the rate, in queries/s, that the client of a stream declares.
func (r *replanning) streamOpened(a serving.AppID, stream uint64, rate float64) {
	if a < 0 || int(a) >= len(r.spec.Apps) || stream == 0 || !(rate >= 0) || math.IsInf(rate, 0) {
		r.violated(fmt.Errorf("engine: stream %d of app %d opened at %v queries/s: the app must exist, the stream not "+
			"be 0 and the rate be finite and at least 0", stream, a, rate))
		return
	}
	if !r.spec.Apps[a].Closed && r.monitor.Open(a, stream, rate) {
		r.agenda.declare()
	}
}

// streamClosed records that the client of a stream has left.
func (r *replanning) streamClosed(a serving.AppID, stream uint64) {
	if a >= 0 && int(a) < len(r.spec.Apps) && r.monitor.Close(a, stream) {
		r.agenda.declare()
	}
}
