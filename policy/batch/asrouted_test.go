package batch

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// What is queued runs on the router's choice, also one that no rule here would make; where that cannot be, as
// mostaccurate says.
func TestAsRouted(t *testing.T) {
	for _, c := range []struct {
		name   string
		choice serving.VariantID
		spoil  func(v *View)
		want   serving.VariantID
		why    Reason
	}{
		{"a slow one though all will be late", 0, func(*View) {}, 0, Routed},
		{"a fast one though there is time", 2, func(v *View) { v.Now = -1000 * ms }, 2, Routed},
		{"left open", serving.None, func(*View) {}, 2, None},
		{"gone meanwhile", 1, func(v *View) { v.Instance.Variants[1].Wanted = false }, 2, None},
		{"not loaded", 1, func(v *View) { v.Instance.Variants[1].Warm = false }, 2, None},
		{"too many for it", 1, func(v *View) { v.Instance.Variants[1].Limit = 2 }, 2, None},
		{"never heard of", 7, func(*View) {}, 2, None},
	} {
		v := queue(16, 18, 20)
		v.Instance.Choice = c.choice
		c.spoil(v)
		d := (AsRouted{}).New().Decide(v)
		if d.Action != Run || d.N != 3 || d.Variant != c.want || (d.Reason == Routed) != (c.why == Routed) {
			t.Errorf("%s: %+v, want all 3 on %d", c.name, d, c.want)
		}
	}
}
