package board

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Missed is a query that missed its objective.
type Missed struct {
	Query     serving.QueryID `json:"query"`
	App       string          `json:"app"`
	AtS       float64         `json:"at_s"` // its end, in s since the start
	LatencyMS float64         `json:"latency_ms"`
	Outcome   string          `json:"outcome"`
	Late      bool            `json:"late,omitempty"`
	Reason    string          `json:"reason"`
}

// missed has the latest of them.
type missed struct {
	ring []Missed
	n    int
}

func (m *missed) add(x Missed) {
	m.ring[m.n%len(m.ring)] = x
	m.n++
}

// Missed returns at most limit of the latest queries that missed their objective, latest first, of one app or of all
// where app is "".
func (b *Board) Missed(app string, limit int) []Missed {
	b.log.Lock()
	defer b.log.Unlock()
	out := []Missed{}
	for k := b.missed.n - 1; k >= max(0, b.missed.n-len(b.missed.ring)) && len(out) < limit; k-- {
		if x := b.missed.ring[k%len(b.missed.ring)]; app == "" || x.App == app {
			out = append(out, x)
		}
	}
	return out
}

// arrivals has the latest arrivals.
type arrivals struct {
	ring []workload.Arrival
	n    int
}

func newArrivals(n int) arrivals { return arrivals{ring: make([]workload.Arrival, n)} }

func (a *arrivals) add(q *serving.Query) {
	if len(a.ring) == 0 {
		return
	}
	a.ring[a.n%len(a.ring)] = workload.Arrival{
		At: q.Arrived, App: q.App, Items: q.Items, Length: q.Length, Priority: q.Priority, MinAccuracy: q.MinAccuracy,
		Variant: q.Variant, Sample: -1, Stream: q.Stream,
	}
	a.n++
}

// Arrivals returns the arrivals that are kept at or after from, oldest first, by time.
func (b *Board) Arrivals(from serving.Time) (out []workload.Arrival) {
	b.log.Lock()
	defer b.log.Unlock()
	r := &b.arrivals
	for k := max(0, r.n-len(r.ring)); k < r.n; k++ {
		if x := r.ring[k%len(r.ring)]; x.At >= max(from, 0) {
			out = append(out, x)
		}
	}
	return out
}
