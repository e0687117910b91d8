package access

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Tenant is what a tenant may ask for. Zero limits nothing.
type Tenant struct {
	Name        string
	Weight      float64 // of its part of connections and memory; 0 is 1
	Rate        float64 // queries/s
	Burst       int     // queries at once beyond Rate; 0 means one second's worth
	Work        float64 // items times length in a second
	Concurrency int     // queries under way at once
	// MaxTimeout is the longest timeout of a query; longer ones count as this.
	MaxTimeout time.Duration
	// Priority is the highest (smallest) priority of a query; higher ones count as this. 0 means that its priorities do
	// not count.
	Priority int32
	// SequenceRate is the highest rate that a stream may declare, in queries/s; higher ones count as this.
	SequenceRate float64
}

// tenant is a tenant's state.
type tenant struct {
	Tenant
	bucket *rate.Limiter // nil for no limit
	active atomic.Int64
	left   func() // leave, made once

	mu     sync.Mutex
	credit float64   // of Work: what may be spent at since, a second's worth at most; below 0 after a large query
	since  time.Time // of credit
}

func newTenant(t Tenant) *tenant {
	out := &tenant{Tenant: t, credit: t.Work}
	out.left = out.leave
	if t.Rate > 0 {
		if out.Burst <= 0 {
			out.Burst = max(int(math.Ceil(t.Rate)), 1)
		}
		out.bucket = rate.NewLimiter(rate.Limit(t.Rate), out.Burst)
	}
	return out
}

// Quota is what is left of a tenant's rate; Limit is 0 for a tenant without one.
type Quota struct {
	Limit     int // queries that may come at once
	Remaining int
	Reset     time.Duration // until all of them may come again
}

// quota reports the bucket after a query.
func (t *tenant) quota(now time.Time) Quota {
	if t.bucket == nil {
		return Quota{}
	}
	left := max(t.bucket.TokensAt(now), 0)
	return Quota{t.Burst, int(left), time.Duration((float64(t.Burst) - left) / t.Rate * float64(time.Second))}
}

// busyRetry is when a tenant whose queries are all under way may try again: nobody knows when one ends.
const busyRetry = time.Second

// admit takes a query in, or says why not and when to try again. The caller calls leave for one that was taken.
func (t *tenant) admit(now time.Time) (why Reason, retry time.Duration) {
	if n := t.active.Add(1); t.Concurrency > 0 && n > int64(t.Concurrency) {
		t.active.Add(-1)
		return TooManyAtOnce, busyRetry
	}
	if t.bucket != nil && !t.bucket.AllowN(now, 1) {
		t.active.Add(-1)
		left := t.bucket.TokensAt(now)
		return TooFast, max(time.Duration((1-left)/t.Rate*float64(time.Second)), time.Millisecond)
	}
	return Admitted, 0
}

// spend takes work off what the tenant may do in a second, or says when there is some left again. A query of more than
// a second's work is taken all the same: what comes after it waits for longer.
func (t *tenant) spend(now time.Time, work float64) (retry time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.since.IsZero() {
		t.credit = min(t.credit+t.Work*now.Sub(t.since).Seconds(), t.Work)
	}
	t.since = now
	if t.credit <= 0 {
		return max(time.Duration(-t.credit/t.Work*float64(time.Second)), time.Millisecond)
	}
	t.credit -= work
	return 0
}

func (t *tenant) leave() { t.active.Add(-1) }
