package monitor

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// declared are the rates that the clients of an app's session have declared (Scrooge §3.1: the rate of each is fixed,
// and the session's is their sum).
type declared struct {
	streams []openStream // ascending by stream
	sum     float64      // queries/s, added up anew after every change, so that closed streams leave no rounding errors
}

type openStream struct {
	stream uint64
	rate   float64
}

// Open records a stream of app and its rate in queries/s, or its new rate. It reports whether the declared rate has
// changed.
func (r *Rates) Open(app serving.AppID, stream uint64, rate float64) bool {
	d := &r.declared[app]
	at, found := slices.BinarySearchFunc(d.streams, stream, byStream)
	if !found {
		d.streams = slices.Insert(d.streams, at, openStream{stream: stream})
	}
	d.streams[at].rate = rate
	return d.add()
}

// Close records the end of a stream. It reports whether the declared rate has changed.
func (r *Rates) Close(app serving.AppID, stream uint64) bool {
	d := &r.declared[app]
	at, found := slices.BinarySearchFunc(d.streams, stream, byStream)
	if !found {
		return false
	}
	d.streams = slices.Delete(d.streams, at, at+1)
	return d.add()
}

func byStream(o openStream, stream uint64) int { return cmp.Compare(o.stream, stream) }

func (d *declared) add() bool {
	before := d.sum
	d.sum = 0
	for _, o := range d.streams {
		d.sum += o.rate
	}
	return d.sum != before
}

// Declared returns the sum of the rates of app's open streams, in queries/s.
func (r *View) Declared(app serving.AppID) float64 { return r.declared[app].sum }

// Streams returns how many streams of app are open.
func (r *View) Streams(app serving.AppID) int { return len(r.declared[app].streams) }
