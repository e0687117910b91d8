package symphony_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/papers/symphony"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// A worker does batches of 8 in 1 + 8 ms: 889 items/s. Of eight rented workers as many are kept as have four fifths of
// their time for the demand, those of the lowest numbers; owned ones all stay.
func TestGivesBackTheLast(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		tenure serving.Tenure
		want   int
	}{
		{0, serving.Rented, 1}, {700, serving.Rented, 1}, {720, serving.Rented, 2}, {2800, serving.Rented, 4},
		{1e5, serving.Rented, 8}, {0, serving.Owned, 8},
	} {
		w := simtest.Uniform(8, time.Millisecond, time.Millisecond, time.Second, 8)
		w.Spec.DeviceTypes[0].Tenure = c.tenure
		p := symphony.Planner{Profile: w.Profile}
		out, err := p.Plan(context.Background(), plan.Request{Spec: w.Spec, Rates: []float64{c.rate}})
		if err != nil {
			t.Fatal(err)
		}
		shares := 0.0
		for n, i := range out.Instances {
			shares += i.Share
			if int(i.Worker) != n {
				t.Errorf("%v/s: instance %d is on worker %d", c.rate, n, i.Worker)
			}
		}
		if len(out.Instances) != c.want || shares < 0.999 || shares > 1.001 {
			t.Errorf("%v/s: %d instances with shares of %v, want %d", c.rate, len(out.Instances), shares, c.want)
		}
	}
}
