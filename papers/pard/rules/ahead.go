package rules

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// pace is what the ready instances of a stage do in their largest batches. The zero value stands for no instance.
type pace struct {
	holds float64       // items in one batch of each
	rate  float64       // items/s
	takes time.Duration // a batch
}

func paceOf(v *route.View, s serving.StageID) (out pace) {
	for _, i := range v.Fleet.Ready(s) {
		if i.Active() < 0 {
			continue
		}
		l := i.Variant(i.Active())
		takes := v.Fleet.Latency(l.Variant, i.DeviceType(), l.Limit, i.Slots())
		if takes <= 0 || takes >= profile.Unknown {
			continue
		}
		items := float64(l.Limit * i.Slots())
		out.holds += items
		out.rate += items / takes.Seconds()
	}
	if out.rate > 0 {
		out.takes = time.Duration(out.holds / out.rate * float64(time.Second))
	}
	return out
}

// way is the time that a query takes from a stage on.
type way struct {
	runs    time.Duration // batches, and queues longer than the batches that run next
	waits   time.Duration // twice the mean of the waits for batches to end
	squares float64       // sum of the squares of the longest such waits, in s^2
}

// after returns the longest way through the stages behind s; the zero way behind the last. Stages without a ready
// instance count nothing.
func after(v *route.View, s serving.StageID) (out way) {
	for _, e := range v.Fleet.Spec().Stages[s].Next {
		x, p := after(v, e.To), paceOf(v, e.To)
		x.runs += p.takes
		if more := float64(v.Fleet.Central(e.To).Items()) - p.holds; more > 0 && p.rate > 0 {
			x.runs += time.Duration(more / p.rate * float64(time.Second))
		}
		x.waits += p.takes
		x.squares += p.takes.Seconds() * p.takes.Seconds()
		if x.runs > out.runs {
			out = x
		}
	}
	return out
}

// within is the time of the way when the batch waits are what they stay below in a tenth of all cases (the paper's
// lambda is 0.1): a query is given up when nine tenths of the courses that they may take would make it late. A query
// waits for the batch in which it goes for a time that is uniform between nothing and a batch's time; the sum over the
// stages is taken as normal.
func (w *way) within() time.Duration {
	const z = -1.2815515655446004 // the normal distribution's quantile for 0.1
	wait := w.waits.Seconds()/2 + z*math.Sqrt(w.squares/12)
	return w.runs + time.Duration(max(wait, 0)*float64(time.Second))
}
