package access

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// A tenant may do a second's work at once. A larger query is taken, and what comes after it waits until its work is
// paid for. In the long run no more work is taken than the quota, but for the last query.
func TestWork(t *testing.T) {
	x, now := newTenant(Tenant{Name: "x", Work: 100}), time.Unix(1, 0)
	if got := x.spend(now, 250); got != 0 {
		t.Errorf("a first query waits %v", got)
	}
	if got := x.spend(now, 1); got != 1500*time.Millisecond {
		t.Errorf("after it %v, want 1.5s", got)
	}
	if got := x.spend(now.Add(1499*time.Millisecond), 1); got <= 0 || got > 2*time.Millisecond {
		t.Errorf("just before its time %v", got)
	}
	if got := x.spend(now.Add(1510*time.Millisecond), 1); got != 0 {
		t.Errorf("at its time %v", got)
	}
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, now, taken, largest := newTenant(Tenant{Name: "x", Work: 1000}), time.Unix(1, 0), 0.0, 0.0
		begun := now
		for range 5000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(10*time.Millisecond)))
			if work := 1 + 400*rng.Float64()*rng.Float64(); x.spend(now, work) == 0 {
				taken, largest = taken+work, max(largest, work)
			}
		}
		if most := 1000*(now.Sub(begun).Seconds()+1) + largest; taken > most || taken < 0.9*most {
			t.Errorf("seed %d: %.0f were taken, at most %.0f may be", seed, taken, most)
		}
	}
	g := New(Config{Tenants: []Tenant{{Name: "x", Work: 10}}})
	c := &Caller{Tenant: 1}
	if err := g.Spend(c, 20); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if err := g.Spend(c, 1); !errors.As(err, &refused) || refused.Reason != TooMuchWork || refused.Retry <= 0 {
		t.Errorf("%v", err)
	}
	if err := g.Spend(&Caller{}, 1e9); err != nil {
		t.Errorf("a caller without a tenant: %v", err)
	}
}
