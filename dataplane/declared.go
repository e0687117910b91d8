package dataplane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// streamKey names a stream of an app.
type streamKey struct {
	app    serving.AppID
	stream uint64
}

type openStream struct {
	rate      float64      // queries/s
	leased    bool         // declared by a query, not by OpenStream: it is closed when no query comes for leaseTime
	lastQuery serving.Time // when its last query came, if it is leased
}

const (
	// maxOpenStreams bounds the streams that are open at a time.
	maxOpenStreams = 10_000
	// leaseTime is how long a leased stream stays open without a query. A longer one pays for machines that nobody
	// uses. A shorter one makes two plans when a client pauses and comes back.
	leaseTime = 30 * time.Second
)

// OpenStream declares that a client of an app will send the queries of a stream at a rate, in queries/s, until
// CloseStream. Plans are made for the rates that are declared; a rate of 0 adds nothing. Opening a stream that is open
// changes its rate.
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
	key := streamKey{app, StreamNumber(stream)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.open[key]; x != nil && x.leased {
		x.leased = false
		p.leased.Add(-1)
	} else if x == nil {
		if len(p.open) >= maxOpenStreams {
			return fmt.Errorf("dataplane: %d streams are open, which is the most: close some", maxOpenStreams)
		}
		p.open[key] = &openStream{}
	}
	p.declare(key, rate)
	return nil
}

// CloseStream declares that the client of a stream has left. It does nothing when the stream is not open.
func (p *Plane) CloseStream(app serving.AppID, stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeStream(streamKey{app, StreamNumber(stream)})
}

// declare sets the rate of an open stream, and tells the engine. The caller holds p.mu.
func (p *Plane) declare(key streamKey, rate float64) {
	p.open[key].rate = rate
	p.sendLocked(message{in: engine.NewStreamOpened(key.app, key.stream, rate)})
}

// closeStream closes a stream, if it is open, and tells the engine. The caller holds p.mu.
func (p *Plane) closeStream(key streamKey) {
	x := p.open[key]
	if x == nil {
		return
	}
	if x.leased {
		p.leased.Add(-1)
	}
	delete(p.open, key)
	p.sendLocked(message{in: engine.NewStreamClosed(key.app, key.stream)})
}

// noteQuery opens the stream of a query that declares a rate, renews the lease of its stream, and closes the stream
// after its last query. Where maxOpenStreams are open, it ignores the declaration; the query is served all the same.
// The caller holds p.mu.
func (p *Plane) noteQuery(r *Request, q *serving.Query) {
	if q.Stream == 0 || q.App < 0 || int(q.App) >= len(p.spec().Apps) {
		return
	}
	declares := r.Rate > 0 && !math.IsInf(r.Rate, 0)
	key := streamKey{q.App, q.Stream}
	x := p.open[key]
	if x == nil && declares && len(p.open) < maxOpenStreams {
		x = &openStream{leased: true}
		p.open[key] = x
		p.leased.Add(1)
	}
	if x == nil || !x.leased {
		return
	}
	x.lastQuery = q.Arrived
	if declares && r.Rate != x.rate {
		p.declare(key, r.Rate)
	}
	if r.Ends {
		p.closeStream(key)
	}
}

// expireLeases closes the leased streams of which no query has come for leaseTime.
func (p *Plane) expireLeases(now serving.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if x.leased && now.Sub(x.lastQuery) >= leaseTime {
			p.closeStream(key)
		}
	}
}
