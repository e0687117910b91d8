package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

func sharesOf(stages int) (*world, *shares) {
	w := &world{spec: &serving.Spec{
		Apps:    []serving.App{{SLO: serving.SLO{Latency: time.Second}, Stages: make([]serving.StageID, stages)}},
		Tenants: []serving.Tenant{{Name: "a", Weight: 1}, {Name: "b", Weight: 4}, {Name: "c", Weight: 0.5}},
	}}
	return w, newShares(w)
}

// Whatever comes and goes, accounts hold exactly what waits, and the level is max-min fair: it hands out what there is
// to share, no more to anybody than asked for.
func TestSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	w, s := sharesOf(1)
	var waiting []*record
	running := 0
	beyond := 0
	charged := [4]time.Duration{}
	for range 20_000 {
		w.now = w.now.Add(time.Duration(rng.IntN(int(5 * time.Millisecond))))
		if rng.IntN(3) > 0 {
			x := serving.Query{Tenant: int32(rng.IntN(4)), Items: 1 + rng.Int32N(4)}
			own := s.arrived(&x, running, 8, time.Millisecond)
			if own.beyond {
				beyond++
			}
			waiting = append(waiting, &record{query: x, share: own})
		} else if len(waiting) > 0 {
			k := rng.IntN(len(waiting))
			if r := waiting[k]; rng.IntN(2) == 0 {
				part := time.Duration(r.query.Items*(1+r.query.Tenant)) * time.Millisecond
				s.started(r, part)
				s.served(r)
				s.ran(r, part)
				charged[r.query.Tenant] += part
			} else {
				s.ended(waiting[k])
			}
			s.ended(waiting[k])
			waiting[k] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
		}
		a := &s.apps[0]
		var waits, within [4]time.Duration
		for _, r := range waiting {
			waits[r.query.Tenant] += r.share.estimate
			if !r.share.beyond {
				within[r.query.Tenant] += r.share.estimate
			}
		}
		room := a.room(running, 8, a.perItem(time.Millisecond))
		there, given, all := room, 0.0, 0.0
		for k := range a.tenants {
			if y := &a.tenants[k]; y.waits != waits[k] || y.within != within[k] || y.used != charged[k] {
				t.Fatalf("tenant %d: %v wait, %v within, %v used, counted as %v, %v and %v", k, waits[k], within[k],
					charged[k], y.waits, y.within, y.used)
			}
			there += a.tenants[k].got
		}
		s.fill(a, room)
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
	// Items of tenant k take 1+k ms: that is what the next ones are expected to take.
	for k := range s.apps[0].tenants {
		want := float64(1+k) / 1000
		if got := s.apps[0].tenants[k].perItem(0); math.Abs(got-want) > 1e-9 {
			t.Errorf("items of tenant %d are expected to take %v s, they took %v", k, got, want)
		}
	}
}

// A query of a graph counts as estimated from its first task on, as charged when its tasks took more, and as charged at
// its end when they took less. A repeated task is charged again; a time that is unknown stands as estimated.
func TestChargesOfGraphsSettle(t *testing.T) {
	const ms = time.Millisecond
	_, s := sharesOf(2)
	a := &s.apps[0]
	a.begin()
	for n, c := range []struct {
		parts        []time.Duration
		before, want time.Duration // got before the end, and after it
	}{
		{[]time.Duration{3 * ms}, 10 * ms, 3 * ms},
		{[]time.Duration{3 * ms, 4 * ms}, 10 * ms, 7 * ms},
		{[]time.Duration{3 * ms, 12 * ms}, 15 * ms, 15 * ms},
		{[]time.Duration{12 * ms, 12 * ms, 1 * ms}, 25 * ms, 25 * ms},
		{[]time.Duration{profile.Unknown}, 10 * ms, 10 * ms},
		{nil, 0, 0},
	} {
		a.begin()
		x := serving.Query{Tenant: 1, Items: 10}
		r := &record{query: x, share: s.arrived(&x, 0, 100, ms)}
		for _, p := range c.parts {
			s.started(r, p)
		}
		got := func() time.Duration { return time.Duration(math.Round(a.tenants[1].got * 1e9)) }
		if got() != c.before {
			t.Errorf("case %d: %v before the end, want %v", n, got(), c.before)
		}
		s.ended(r)
		s.ended(r) // a second time changes nothing
		if got() != c.want || a.tenants[1].waits != 0 || a.waits != 0 || a.queries != 0 {
			t.Errorf("case %d: %v after the end, want %v; %v wait", n, got(), c.want, a.waits)
		}
	}
}
