package telemetry

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// An ensemble of one step and the step's model count as Triton counts them: a query that ends without an answer is
// OTHER for the ensemble, once for itself and once for its member, and has its reason at the member.
func TestEnsembleAndMemberAreCounted(t *testing.T) {
	told, r := watched(t, "earliestfinish+mostaccurate", func(a *serving.App) { a.Ensemble = true })
	o := r.Overall
	if o.Dropped+o.Refused == 0 || o.Failed == 0 || o.Served == 0 {
		t.Fatalf("the run is too tame to tell anything: %+v", o)
	}
	m := told.metrics
	failed := func(model, reason string) float64 { return value(m.nvFailure.WithLabelValues(model, "1", reason)) }
	for what, x := range map[string]struct {
		got  float64
		want int64
	}{
		"ensemble, OTHER":    {failed("app", "OTHER"), 2 * (o.Dropped + o.Refused + o.Failed)},
		"ensemble, REJECTED": {failed("app", "REJECTED"), 0},
		"member, REJECTED":   {failed("model", "REJECTED"), o.Dropped + o.Refused},
		"member, BACKEND":    {failed("model", "BACKEND"), o.Failed},
		"ensemble, success":  {value(m.apps[0].nv.success), o.Served},
		"member, success":    {value(m.byV[0].nv.success), o.Served},
	} {
		if x.got != float64(x.want) {
			t.Errorf("%s: %v, the report says %d", what, x.got, x.want)
		}
	}
	s := told.Statistics(0)
	if len(s) != 2 || s[0].Variant != serving.None || s[1].Variant != 0 {
		t.Fatalf("statistics are %+v, want the ensemble's and the member's", s)
	}
	if s[0].Success != uint64(o.Served) || s[1].Success != uint64(o.Served) || s[1].Fail != uint64(o.Failed) ||
		s[0].Fail != uint64(o.Dropped+o.Refused+o.Failed) {
		t.Errorf("statistics are %+v, the report says %+v", s, o)
	}
}
