package dataplane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/serving"
)

// streamKey names a stream of an app.
type streamKey struct {
	app    serving.AppID
	stream uint64
}

type openStream struct {
	tenant    int32        // of the query that opened it
	rate      float64      // queries/s, of what was declared as much as counts
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
	x := p.open[key]
	if x == nil && len(p.open) >= maxOpenStreams {
		return fmt.Errorf("dataplane: %d streams are open, which is the most: close some", maxOpenStreams)
	}
	if x == nil {
		x = &openStream{}
	}
	if counts := p.counting(app, x, rate, limits.Announced); counts < rate {
		return fmt.Errorf("dataplane: stream %.64q declares %v queries/s, of which %v are left: the streams of an app "+
			"declare at most %g together, and so do those of a tenant", stream, rate, counts, limits.Announced)
	}
	if x.leased {
		x.leased = false
		p.leased.Add(-1)
	}
	p.open[key] = x
	p.declare(key, rate)
	return nil
}

// CloseStream declares that the client of a stream has left. It does nothing when the stream is not open.
func (p *Plane) CloseStream(app serving.AppID, stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeStream(streamKey{app, StreamNumber(stream)})
}

// declarations are the rates that open streams declare, in queries/s.
type declarations struct {
	byApp    map[serving.AppID]float64
	byTenant map[int32]float64
}

// counting returns how much of a rate counts that a stream of an app declares: the streams of an app, and those of a
// tenant, declare at most so much together. A client that opens many must not have machines rented without end. The
// caller holds p.mu.
func (p *Plane) counting(app serving.AppID, x *openStream, rate, byTenant float64) float64 {
	left := min(limits.Announced-p.declared.byApp[app], byTenant-p.declared.byTenant[x.tenant])
	return min(rate, x.rate+max(left, 0))
}

// declare sets the rate of an open stream, and tells the engine. The caller holds p.mu.
func (p *Plane) declare(key streamKey, rate float64) {
	p.setRate(key, rate)
	p.sendLocked(message{in: engine.NewStreamOpened(key.app, key.stream, rate)})
}

// setRate sets the rate of an open stream. The caller holds p.mu.
func (p *Plane) setRate(key streamKey, rate float64) {
	x, d := p.open[key], &p.declared
	add(d.byApp, key.app, rate-x.rate)
	add(d.byTenant, x.tenant, rate-x.rate)
	x.rate = rate
}

// leastDeclared is a sum, in queries/s, below which what is left are rounding errors.
const leastDeclared = 1e-6

func add[K comparable](sums map[K]float64, of K, more float64) {
	if sums[of] += more; sums[of] < leastDeclared {
		delete(sums, of)
	}
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
	p.setRate(key, 0)
	delete(p.open, key)
	p.sendLocked(message{in: engine.NewStreamClosed(key.app, key.stream)})
}

// closeStreams closes the streams of apps that are closed, or are no more, in a spec. The caller holds p.mu.
func (p *Plane) closeStreams(spec *serving.Spec) {
	for key := range p.open {
		if int(key.app) >= len(spec.Apps) || spec.Apps[key.app].Closed {
			p.closeStream(key)
		}
	}
}

// noteQuery opens the stream of a query that declares a rate, renews the lease of its stream, and closes the stream
// after its last query. Where maxOpenStreams are open, it ignores the declaration, and what is beyond the bounds of the
// app or the tenant does not count; the query is served all the same.
// The caller holds p.mu.
func (p *Plane) noteQuery(r *Request, q *serving.Query) {
	if q.Stream == 0 || q.App < 0 || int(q.App) >= len(p.spec().Apps) || p.spec().Apps[q.App].Closed {
		return
	}
	declares := r.Rate > 0 && !math.IsInf(r.Rate, 0)
	key := streamKey{q.App, q.Stream}
	x := p.open[key]
	if x == nil && declares && len(p.open) < maxOpenStreams {
		x = &openStream{leased: true, tenant: q.Tenant}
		p.open[key] = x
		p.leased.Add(1)
	}
	if x == nil || !x.leased {
		return
	}
	x.lastQuery = q.Arrived
	if declares {
		of := limits.Announced
		if r.Declares > 0 {
			of = min(of, r.Declares)
		}
		if rate := p.counting(q.App, x, r.Rate, of); rate != x.rate {
			p.declare(key, rate)
		}
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
