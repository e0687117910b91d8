package batch

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// byVariant is a profile in which n items take n times the variant's number of milliseconds.
type byVariant []int

func (b byVariant) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return time.Duration(b[v]*items) * time.Millisecond
}

func (byVariant) Learner() profile.Learner { return nil }

func (b byVariant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// queue returns the view of an instance with three variants of 40, 20 and 5 ms an item, best first, and queries with
// the given deadlines in ms.
func queue(due ...int) *View {
	_, v := queueOf(due...)
	return v
}

// queueOf is queue and returns the instance's fleet as well.
func queueOf(due ...int) (*fleet.Fleet, *View) {
	spec := &serving.Spec{Apps: []serving.App{{}}, Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
		Variants: []serving.Variant{
			{Accuracy: 0.9, MaxBatch: 8}, {Accuracy: 0.8, MaxBatch: 8}, {Accuracy: 0.7, MaxBatch: 8},
		}}
	f := fleet.New(spec, byVariant{40, 20, 5})
	i := f.Launch(fleet.Placement{
		Terms: fleet.Terms{Slots: 1}, Variants: []fleet.Loaded{
			{Variant: 0, Limit: 8, Wanted: true}, {Variant: 1, Limit: 8, Wanted: true},
			{Variant: 2, Limit: 8, Wanted: true},
		},
	}, 0)
	for v := range spec.Variants {
		f.Warm(i, serving.VariantID(v))
	}
	for k, d := range due {
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(k + 1), Items: 1, Pin: serving.None, Deadline: serving.Time(d) * ms,
		})
		f.Wait(r)
		f.Assign(r, i, 0)
	}
	return f, &View{
		Fleet: &f.View, Instance: i, Monitor: &monitor.NewRates(1).View, Limit: 8, Ready: len(due), Items: len(due),
	}
}

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
		if d := (Greedy{}).New().Decide(queue(c.due...)); d.Action != Run || d.N != c.n || d.Variant != c.variant {
			t.Errorf("due at %v: %d queries on %d, want %d on %d", c.due, d.N, d.Variant, c.n, c.variant)
		}
	}
}

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
		v := queue(c.due...)
		v.Plan, v.Now = tables, serving.Time(time.Second)
		seen := monitor.NewRates(1)
		for range c.load {
			seen.Add(v.Now, 0)
		}
		v.Monitor = &seen.View
		if d := b.Decide(v); d.Action != Run || d.N != int(c.want.Queries) || d.Variant != c.want.Variant ||
			d.Reason != FromPolicy {
			t.Errorf("%d queries within half a second, due at %v: %d on %d, want %v", c.load, c.due, d.N, d.Variant,
				c.want)
		}
	}
}

// The cost of a decision: a look-up of the rate and of the table.
func BenchmarkPolicyTable(b *testing.B) {
	v := queue(45, 50, 60)
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
	v.Now = 20 * ms
	rule := PolicyTable{}.New()
	b.ReportAllocs()
	for b.Loop() {
		rule.Decide(v)
	}
}
