package scrooge_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/papers/scrooge"
)

// Exact finds what brute force finds: on small graphs, and on those of Figure 1 with the modes of one type.
func TestExactIsBrute(t *testing.T) {
	kept := 0
	for seed := uint64(1); seed <= 450; seed++ {
		p := scrooge.Small(rand.New(rand.NewPCG(seed, 7)))
		if seed > 400 {
			p = scrooge.Many(rand.New(rand.NewPCG(seed, 7)), scrooge.Figure1[scrooge.Names()[seed%7]], 1)
		}
		want, fail := scrooge.BruteForce(context.Background(), p)
		got, err := scrooge.Exact(p)
		var no *scrooge.Infeasible
		if fail != nil || err != nil {
			if !errors.As(fail, &no) || !errors.As(err, &no) {
				t.Errorf("seed %d: %v, brute force says %v", seed, err, fail)
			}
			continue
		}
		kept++
		if math.Abs(got.Cost-want.Cost) > 1e-9*max(1, want.Cost) {
			t.Errorf("seed %d: costs %v, brute force %v", seed, got.Cost, want.Cost)
		}
		if !got.Proven {
			t.Errorf("seed %d: not proven", seed)
		}
		for _, a := range []*scrooge.Allocation{got, want} {
			if err := a.Verify(p); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			if err := holds(p, a); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		if bound := scrooge.Bound(p); bound > got.Cost*(1+1e-9) {
			t.Errorf("seed %d: costs %v, the bound is %v", seed, got.Cost, bound)
		}
	}
	t.Logf("%d of 450 graphs can be served", kept)
	if kept < 200 {
		t.Errorf("only %d graphs could be compared", kept)
	}
}
