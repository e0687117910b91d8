package kairos

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/workload"
)

// arrivals is what comes between queries.
type arrivals int

const (
	whole   arrivals = iota // Poisson-distributed whole milliseconds, as the authors' code draws them
	poisson                 // exponential gaps, as the paper says
)

func (a arrivals) String() string { return [...]string{"whole ms", "Poisson"}[a] }

// source draws the queries of a seed at a rate: the same sizes at every rate, and the same gaps, stretched.
func (a arrivals) source(rate float64, drawn workload.Sizes, seed uint64) workload.Source {
	constant, r := workload.Constant(rate), workload.Stream(seed, "arrivals")
	out := &workload.App{Sizes: drawn, SizeRand: workload.Stream(seed, "items"), Template: workload.Arrival{Variant: serving.None, Sample: -1}}
	if a == whole {
		out.Times = workload.NewWholeMilliseconds(constant, r)
	} else {
		out.Times = workload.NewProcess(constant, workload.Poisson{}, r)
	}
	return out
}
