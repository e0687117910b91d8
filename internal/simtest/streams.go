package simtest

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
)

// remember makes some stages of every other world stateful. It draws from what it finds, as cut does.
func remember(spec *serving.Spec, m *serving.Measurements) {
	rng := rand.New(rand.NewPCG(uint64(m.Latency[0].Mean), 8))
	if rng.IntN(2) == 0 {
		return
	}
	for s := range spec.Stages {
		spec.Stages[s].Stateful = rng.IntN(2) == 0
	}
}

// stream makes queries part of one of a few streams, in every app the same names; some are of none.
func (c *Cluster) stream(load []workload.Arrival) {
	rng := rand.New(rand.NewPCG(uint64(c.Measurements.Latency[0].Mean), uint64(len(load))))
	streams := 2 + rng.Uint64N(6)
	for k := range load {
		load[k].Stream = rng.Uint64N(streams)
	}
}
