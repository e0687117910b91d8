package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Whatever comes and goes, accounts hold exactly what waits, and the level is max-min fair: it hands out what there is
// to share, no more to anybody than asked for.
func TestSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	w := &world{spec: &serving.Spec{
		Apps:    []serving.App{{SLO: serving.SLO{Latency: time.Second}}},
		Tenants: []serving.Tenant{{Name: "a", Weight: 1}, {Name: "b", Weight: 4}, {Name: "c", Weight: 0.5}},
	}}
	s := newShares(w)
	var waiting []*record
	running := 0
	beyond := 0
	for range 20_000 {
		w.now = w.now.Add(time.Duration(rng.IntN(int(5 * time.Millisecond))))
		if rng.IntN(3) > 0 {
			x := serving.Query{Tenant: int32(rng.IntN(4)), Items: 1 + rng.Int32N(4)}
			own := s.arrived(&x, running, 8)
			if own.beyond {
				beyond++
			}
			waiting = append(waiting, &record{query: x, share: own})
		} else if len(waiting) > 0 {
			k := rng.IntN(len(waiting))
			if rng.IntN(2) == 0 {
				s.started(waiting[k])
				s.started(waiting[k]) // a second task changes nothing
			} else {
				s.ended(waiting[k])
			}
			s.ended(waiting[k])
			waiting[k] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
		}
		a := &s.apps[0]
		var waits, within [4]float64
		for _, r := range waiting {
			waits[r.query.Tenant] += float64(r.query.Items)
			if !r.share.beyond {
				within[r.query.Tenant] += float64(r.query.Items)
			}
		}
		there, given, all := a.room(running, 8), 0.0, 0.0
		for k := range a.tenants {
			if y := &a.tenants[k]; y.waits != waits[k] || y.within != within[k] {
				t.Fatalf("tenant %d: %v wait, %v within, counted as %v and %v", k, waits[k], within[k], y.waits,
					y.within)
			}
			there += a.tenants[k].got
		}
		s.fill(a, a.room(running, 8))
		for k := range a.tenants {
			given += min(a.tenants[k].asked, a.level*s.weight(k))
			all += a.tenants[k].asked
		}
		if math.Abs(given-min(there, all)) > 1e-6*max(there, 1) {
			t.Fatalf("%v are given, there are %v, asked for are %v", given, there, all)
		}
	}
	if beyond == 0 {
		t.Error("no query was beyond its share: nothing was tested")
	}
}
