package kairos

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// arrivals is the distribution of the time between queries.
type arrivals int

const (
	wholeMillis arrivals = iota // Poisson-distributed whole milliseconds, as the authors' code draws them
	poisson                     // exponential gaps, as the paper says
)

func (a arrivals) String() string { return [...]string{"whole ms", "Poisson"}[a] }

// burstiness returns the deviation of gaps over their mean at a rate (vary), and how many queries arrive at the same
// moment on average (together). The deviation of Poisson-distributed milliseconds is the root of their mean, and a gap
// is 0 with probability exp(-mean).
func (a arrivals) burstiness(rate float64) (vary, together float64) {
	if a == poisson {
		return 1, 1
	}
	mean := 1000 / rate // ms
	return 1 / math.Sqrt(mean), 1 / (1 - math.Exp(-mean))
}

// source draws the queries of a seed at a rate. At every rate the sizes are the same, and so are the gaps, stretched.
func (a arrivals) source(rate *workload.Rate, drawn workload.Sizes, seed uint64) workload.Source {
	r := workload.Rand(seed, "arrivals")
	out := &workload.App{
		Sizes: drawn, SizeRand: workload.Rand(seed, "items"), Template: workload.Arrival{Variant: serving.None,
			Sample: -1},
	}
	if a == wholeMillis {
		out.Times = workload.NewWholeMilliseconds(rate, r)
	} else {
		out.Times = workload.NewProcess(rate, workload.Poisson{}, r)
	}
	return out
}
