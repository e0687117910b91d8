package simtest

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// makeStateful makes some stages of every other cluster stateful. It draws from a random source of its own, as addParts
// does.
func makeStateful(spec *serving.Spec, m *serving.Measurements) {
	rng := rand.New(rand.NewPCG(uint64(m.Latency[0].Mean), 8))
	if rng.IntN(2) == 0 {
		return
	}
	for s := range spec.Stages {
		spec.Stages[s].Stateful = rng.IntN(2) == 0
	}
}

// assignStreams assigns queries to a few streams, which have the same names in every app; some queries have no stream.
func (c *Cluster) assignStreams(load []workload.Arrival) {
	rng := rand.New(rand.NewPCG(uint64(c.Measurements.Latency[0].Mean), uint64(len(load))))
	streams := 2 + rng.Uint64N(6)
	for k := range load {
		load[k].Stream = rng.Uint64N(streams)
	}
}
