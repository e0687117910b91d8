package rules

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

func TestPolicyTable(t *testing.T) {
	pick := func(v serving.VariantID, n int32) plan.Choice { return plan.Choice{Variant: v, Queries: n} }
	tables := &plan.Plan{Policies: []plan.Policies{{ByRate: []plan.Policy{
		{
			Rate: 10, Slacks: []time.Duration{0, 30 * time.Millisecond}, Choices: []plan.Choice{
				pick(2, 1), pick(0, 1), pick(2, 2), pick(1, 1),
			},
		},
		{
			Rate: 20, Slacks: []time.Duration{0, 30 * time.Millisecond}, Choices: []plan.Choice{
				pick(2, 1), pick(1, 1), pick(2, 2), pick(1, 2),
			},
		},
	}}}}
	b := PolicyTable{}.New()
	for _, c := range []struct {
		load int // queries within the half second before
		due  []int
		want plan.Choice
	}{
		{5, []int{40}, pick(0, 1)},
		{5, []int{30}, pick(0, 1)},
		{5, []int{29}, pick(2, 1)},
		{5, []int{40, 50}, pick(1, 1)},
		{5, []int{40, 50, 60}, pick(2, 2)}, // longer than the table: the longest without slack
		{6, []int{40}, pick(1, 1)},         // 12 queries/s: the policy for 20
		{10, []int{40, 50}, pick(1, 2)},
		{50, []int{40, 50}, pick(1, 2)}, // beyond the table: the policy for most
	} {
		for i := range c.due {
			c.due[i] += 1000
		}
		v := ruletest.Queue(c.due...)
		v.Plan, v.Now = tables, serving.Time(time.Second)
		seen := monitor.NewRates(1)
		for range c.load {
			seen.Add(v.Now, 0)
		}
		v.Monitor = &seen.View
		if d := b.Decide(v); d.Action != batch.Run || d.N != int(c.want.Queries) || d.Variant != c.want.Variant ||
			d.Reason != batch.FromPolicy {
			t.Errorf("%d queries within half a second, due at %v: %d on %d, want %v", c.load, c.due, d.N, d.Variant,
				c.want)
		}
	}
}

// The cost of a decision: a look-up of the rate and of the table.
func BenchmarkPolicyTable(b *testing.B) {
	v := ruletest.Queue(45, 50, 60)
	x := plan.Policy{Rate: 4000}
	for j := range 101 {
		x.Slacks = append(x.Slacks, time.Duration(j)*1500*time.Microsecond)
	}
	for n := range 32 {
		for range x.Slacks {
			x.Choices = append(x.Choices, plan.Choice{Variant: 1, Queries: int32(n + 1)})
		}
	}
	set := plan.Policies{}
	for k := range 20 {
		x.Rate = float64(200 * (k + 1))
		set.ByRate = append(set.ByRate, x)
	}
	v.Plan = &plan.Plan{Policies: []plan.Policies{set}}
	seen := monitor.NewRates(1)
	for k := range 1000 {
		seen.Add(serving.Time(k)*500_000, 0)
	}
	v.Monitor = &seen.View
	v.Now = serving.Time(20 * time.Millisecond)
	rule := PolicyTable{}.New()
	b.ReportAllocs()
	for b.Loop() {
		rule.Decide(v)
	}
}
