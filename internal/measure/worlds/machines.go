package worlds

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// kind is how fast a device type is.
type kind struct {
	factor float64 // of run times
	fixed  float64 // share of the time of a batch of one that does not grow with the batch
}

const (
	// workers is how many machines a world has at most that is not large: simulating more takes longer.
	workers = 16
	// leastLarge and mostLarge are how many a large one has.
	leastLarge, mostLarge = 50, 200
)

// machines draws the kinds of machine and their numbers. Memory comes later.
func (g *generator) machines() {
	n := 1
	if g.w.Has(MixedMachines) {
		n = g.whole(2, 3)
	}
	total := g.whole(max(n, 2), workers)
	switch {
	case g.w.Has(Crowded):
		total = g.whole(max(n, 2), 5)
	case g.w.Has(Large):
		total = g.whole(leastLarge, mostLarge)
	}
	for d := range n {
		k := kind{factor: 1, fixed: g.between(0.2, 0.8)}
		if d > 0 {
			k.factor = math.Exp(g.between(math.Log(0.25), math.Log(3)))
		}
		g.kinds = append(g.kinds, k)
		t := serving.DeviceType{Name: fmt.Sprintf("m%d", d+1), Cores: []int{2, 4, 8}[g.rng.IntN(3)]}
		if g.w.Has(Rent) {
			// Faster machines cost more, mostly less than in proportion.
			t.Tenure = serving.Rented
			t.PricePerHour = to(math.Pow(k.factor, -g.between(0.5, 1.2))*g.between(0.3, 0.6), 1000)
		}
		g.w.Spec.DeviceTypes = append(g.w.Spec.DeviceTypes, t)
	}
	counts := make([]int, n)
	for i := range total {
		d := i
		if d >= n {
			d = g.rng.IntN(n)
		}
		counts[d]++
	}
	for d, c := range counts {
		for k := range c {
			name := fmt.Sprintf("m%d", d+1)
			if c > 1 {
				name = fmt.Sprintf("%s-%d", name, k)
			}
			g.w.Spec.Workers = append(g.w.Spec.Workers, serving.Worker{Name: name, DeviceType: serving.DeviceTypeID(d)})
		}
	}
}

const mebi = 1 << 20

// memory gives machines memory: for everything, or for a part that holds at least one variant of each stage in all.
func (g *generator) memory() {
	spec := g.w.Spec
	all, largest, least := int64(0), int64(0), int64(0)
	for s := range spec.Stages {
		small := int64(math.MaxInt64)
		for _, v := range spec.Stages[s].Variants {
			m := spec.Variants[v].MemoryBytes
			all += m
			if spec.Variants[v].Accuracy >= spec.Apps[spec.Stages[s].App].Floor {
				small = min(small, m)
			}
		}
		least += small
		largest = max(largest, small)
	}
	for d := range spec.DeviceTypes {
		have := all + all/4
		if g.w.Has(LittleMemory) {
			// Each machine holds the smallest variant of any stage, and all together those of all stages twice.
			have = max(largest, 2*least/int64(len(spec.Workers)), int64(g.between(0.15, 0.6)*float64(all)))
		}
		spec.DeviceTypes[d].MemoryBytes = (have/mebi + 1) * mebi
	}
}
