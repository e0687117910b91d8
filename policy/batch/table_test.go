package batch_test

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
)

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		due     []int
		n       int
		variant serving.VariantID
	}{
		{[]int{45}, 1, 0},
		{[]int{45, 90}, 2, 1},
		{[]int{15, 90, 90}, 3, 2},
		{[]int{4, 90}, 2, 2}, // nothing is in time: the fastest
	} {
		d := (batch.Greedy{}).New().Decide(ruletest.Queue(c.due...))
		if d.Action != batch.Run || d.N != c.n || d.Variant != c.variant {
			t.Errorf("due at %v: %d queries on %d, want %d on %d", c.due, d.N, d.Variant, c.n, c.variant)
		}
	}
}
