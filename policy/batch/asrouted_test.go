package batch_test

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Queued queries run on the router's choice, even on one that no rule here would make. Without a usable choice
// mostaccurate decides.
func TestAsRouted(t *testing.T) {
	for _, c := range []struct {
		name   string
		choice serving.VariantID
		spoil  func(f *fleet.Fleet, v *batch.View)
		want   serving.VariantID
		why    batch.Reason
	}{
		{"a slow one though all will be late", 0, func(*fleet.Fleet, *batch.View) {}, 0, batch.Routed},
		{
			"a fast one though there is time", 2,
			func(_ *fleet.Fleet, v *batch.View) { v.Now = -1000 * ms }, 2, batch.Routed,
		},
		{"left open", serving.None, func(*fleet.Fleet, *batch.View) {}, 2, batch.None},
		{"no longer wanted", 1, func(f *fleet.Fleet, v *batch.View) {
			f.UnwantAll(v.Instance)
			f.Want(v.Instance, 0)
			f.Want(v.Instance, 2)
			f.Refresh(v.Instance)
		}, 2, batch.None},
		{"not loaded", 1, func(f *fleet.Fleet, v *batch.View) {
			f.RemoveVariant(v.Instance, 1)
			f.AddVariant(v.Instance, fleet.Loaded{Variant: 1, Limit: 8, Wanted: true})
			f.Refresh(v.Instance)
		}, 2, batch.None},
		{"too many for it", 1, func(f *fleet.Fleet, v *batch.View) {
			f.SetLimit(v.Instance, 1, 2)
			f.Refresh(v.Instance)
		}, 2, batch.None},
		{"never heard of", 7, func(*fleet.Fleet, *batch.View) {}, 2, batch.None},
	} {
		f, v := ruletest.QueueOf(16, 18, 20)
		f.SetChoice(v.Instance, c.choice)
		c.spoil(f, v)
		d := (batch.AsRouted{}).New().Decide(v)
		if d.Action != batch.Run || d.N != 3 || d.Variant != c.want ||
			(d.Reason == batch.Routed) != (c.why == batch.Routed) {
			t.Errorf("%s: %+v, want all 3 on %d", c.name, d, c.want)
		}
	}
}
