package workload

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
)

// listed gives sizes in the order of a list, and from the first again after the last.
type listed struct {
	sizes []int32
	next  int
}

func newListed(sizes []int32) *listed { return &listed{sizes: sizes} }

// Draw implements Sizes. Nothing is random.
func (l *listed) Draw(*rand.Rand) int32 {
	out := l.sizes[l.next]
	l.next = (l.next + 1) % len(l.sizes)
	return out
}

// Mean implements Sizes.
func (l *listed) Mean() (mean float64) {
	for _, n := range l.sizes {
		mean += float64(n) / float64(len(l.sizes))
	}
	return mean
}

// Mix implements Sizes.
func (l *listed) Mix() serving.Mix {
	counts := make(map[int32]int)
	for _, n := range l.sizes {
		counts[n]++
	}
	out := serving.CountMix(counts)
	out.Count = 0
	return out
}
