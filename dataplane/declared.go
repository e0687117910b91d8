package dataplane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// session names a stream that is open.
type session struct {
	app    serving.AppID
	stream uint64
}

// opened is a stream whose client has declared a rate.
type opened struct {
	rate   float64
	leased bool         // declared by a query: it lapses when no more of them come
	heard  serving.Time // when the last query of it came, of leased ones
}

const (
	// mostStreams bounds the streams that may be open at a time.
	mostStreams = 10_000
	// silence is how long nothing may come of a stream that was declared by a query before its client counts as gone. A
	// machine is paid for as long; a stream that pauses and comes back is a reason for two plans.
	silence = 30 * time.Second
)

// OpenStream tells that a client of an app will send the queries of a stream at a rate in queries/s, until CloseStream:
// plans are made for that. A rate of 0 says nothing of it. Opening a stream that is open changes its rate.
func (p *Plane) OpenStream(app serving.AppID, stream string, rate float64) error {
	switch {
	case app < 0 || int(app) >= len(p.spec().Apps):
		return fmt.Errorf("dataplane: app %d does not exist", app)
	case stream == "":
		return errors.New("dataplane: a stream that is opened needs a name")
	case !(rate >= 0) || math.IsInf(rate, 0):
		return fmt.Errorf("dataplane: stream %.64q declares %v queries/s, want a finite number of at least 0", stream,
			rate)
	}
	key := session{app, StreamNumber(stream)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.open[key]; x != nil && x.leased {
		x.leased = false
		p.leased.Add(-1)
	} else if x == nil {
		if len(p.open) >= mostStreams {
			return fmt.Errorf("dataplane: %d streams are open, which is the most: close some", mostStreams)
		}
		p.open[key] = &opened{}
	}
	p.declare(key, rate)
	return nil
}

// CloseStream tells that the client of a stream has left. A stream that is not open is left alone.
func (p *Plane) CloseStream(app serving.AppID, stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(session{app, StreamNumber(stream)})
}

// declare hands a rate to the engine. The caller holds the lock.
func (p *Plane) declare(key session, rate float64) {
	p.open[key].rate = rate
	p.hand(message{in: engine.NewStreamOpened(key.app, key.stream, rate)})
}

// leave closes a stream, if it is open. The caller holds the lock.
func (p *Plane) leave(key session) {
	x := p.open[key]
	if x == nil {
		return
	}
	if x.leased {
		p.leased.Add(-1)
	}
	delete(p.open, key)
	p.hand(message{in: engine.NewStreamClosed(key.app, key.stream)})
}

// heard takes note of a query of a stream: what it declares, that its client is there, and that it is the last. Where
// as many streams are open as may be, one more is served and its declaration left. The caller holds the lock.
func (p *Plane) heard(r *Request, q *serving.Query) {
	if q.Stream == 0 || q.App < 0 || int(q.App) >= len(p.spec().Apps) {
		return
	}
	declares := r.Rate > 0 && !math.IsInf(r.Rate, 0)
	key := session{q.App, q.Stream}
	x := p.open[key]
	if x == nil && declares && len(p.open) < mostStreams {
		x = &opened{leased: true}
		p.open[key] = x
		p.leased.Add(1)
	}
	if x == nil || !x.leased {
		return
	}
	x.heard = q.Arrived
	if declares && r.Rate != x.rate {
		p.declare(key, r.Rate)
	}
	if r.Ends {
		p.leave(key)
	}
}

// lapse closes the streams that were declared by a query and of which nothing has come for long.
func (p *Plane) lapse(now serving.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if x.leased && now.Sub(x.heard) >= silence {
			p.leave(key)
		}
	}
}
