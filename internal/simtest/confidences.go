package simtest

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
)

// makeConfident has the variants of some stages know how sure they are, by an output "sure". It draws from a
// random source of its own, as addParts does.
func makeConfident(spec *serving.Spec, m *serving.Measurements) {
	rng := rand.New(rand.NewPCG(uint64(m.Latency[0].Mean), 9))
	for s := range spec.Stages {
		stage := &spec.Stages[s]
		if rng.IntN(3) == 0 || stage.Stateful || len(stage.Variants) < 2 {
			continue
		}
		for _, v := range stage.Variants {
			c := serving.Confidence{Variant: v, Output: "sure", By: serving.ByValue}
			for b, share := range []float64{0.25, 0.25, 0.5} {
				bin := serving.ConfidenceBin{From: float64(b) / 4, Share: share, Accuracy: rng.Float64()}
				for _, o := range stage.Variants {
					if o != v {
						bin.Others = append(bin.Others, serving.VariantAccuracy{Variant: o, Accuracy: rng.Float64()})
					}
				}
				c.Bins = append(c.Bins, bin)
			}
			stage.Confidences = append(stage.Confidences, c)
		}
	}
}
