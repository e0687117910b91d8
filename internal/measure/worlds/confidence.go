package worlds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// WithConfidences is added to the number of a world to have it with confidences: a world of the same traits but for
// those with which no query has a second answer.
const WithConfidences = 1 << 21

const (
	// drawnQueries is from how many queries confidences are measured, confidenceBins into how many bins.
	drawnQueries, confidenceBins = 4000, 10
)

// confidences has all variants but the best of each stage know how sure they are. Whether a variant answers a
// query well follows from its ability and the query's difficulty (item response theory: Rasch 1960, with a slope). The
// difficulties are those of one kind of query, or of many easy ones and some hard ones. What a variant is sure of is
// its chance to be right, seen with an error.
func (g *generator) confidences() {
	r := workload.Rand(g.w.Seed, fmt.Sprintf("world %d, confidences", g.w.Number))
	spec := g.w.Spec
	for s := range spec.Stages {
		stage := &spec.Stages[s]
		difficulty, easy := make([]float64, drawnQueries), 1.0
		if r.IntN(2) == 0 {
			easy = 0.5 + 0.4*r.Float64()
		}
		for k := range difficulty {
			switch {
			case easy == 1:
				difficulty[k] = r.NormFloat64()
			case r.Float64() < easy:
				difficulty[k] = -1 + 0.4*r.NormFloat64()
			default:
				difficulty[k] = 1.2 + 0.5*r.NormFloat64()
			}
		}
		slope, unsure := 1.5+3*r.Float64(), 0.3+1.2*r.Float64()
		chances := make([][]float64, len(stage.Variants))
		for k, v := range stage.Variants {
			chances[k] = chancesOf(difficulty, slope, spec.Variants[v].Accuracy)
		}
		best := spec.BestOfStage(serving.StageID(s))
		for k, v := range stage.Variants {
			if spec.Variants[v].Accuracy < best {
				stage.Confidences = append(stage.Confidences, confidenceOf(r, stage.Variants, chances, k, unsure))
			}
		}
	}
	g.w.Traits = append(g.w.Traits, Confidences)
}

// chancesOf returns how likely a variant is right for queries of these difficulties, if it is so often right on
// average.
func chancesOf(difficulty []float64, slope, accuracy float64) []float64 {
	out := make([]float64, len(difficulty))
	low, high := -20.0, 20.0
	for range 60 {
		ability, sum := (low+high)/2, 0.0
		for k, d := range difficulty {
			out[k] = 1 / (1 + math.Exp(-slope*(ability-d)))
			sum += out[k]
		}
		if sum < accuracy*float64(len(out)) {
			low = ability
		} else {
			high = ability
		}
	}
	return out
}

// confidenceOf measures the confidence of one of some variants.
func confidenceOf(r *rand.Rand, variants []serving.VariantID, chances [][]float64, of int,
	unsure float64) serving.Confidence {
	type seen struct {
		query int
		sure  float64
	}
	list := make([]seen, drawnQueries)
	for q := range list {
		p := chances[of][q]
		list[q] = seen{q, 1 / (1 + math.Exp(-(math.Log(p/(1-p)) + unsure*r.NormFloat64())))}
	}
	slices.SortFunc(list, func(a, b seen) int {
		if a.sure != b.sure {
			return map[bool]int{true: -1, false: 1}[a.sure < b.sure]
		}
		return a.query - b.query
	})
	c := serving.Confidence{Variant: variants[of]}
	const n = drawnQueries / confidenceBins
	for b := range confidenceBins {
		own := list[b*n : (b+1)*n]
		mean := func(k int) (sum float64) {
			for _, x := range own {
				sum += chances[k][x.query]
			}
			return sum / n
		}
		bin := serving.ConfidenceBin{From: own[0].sure, Share: 1. / confidenceBins, Accuracy: mean(of)}
		for k, v := range variants {
			if k != of {
				bin.Others = append(bin.Others, serving.VariantAccuracy{Variant: v, Accuracy: mean(k)})
			}
		}
		c.Bins = append(c.Bins, bin)
	}
	return c
}
