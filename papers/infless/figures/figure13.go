package infless

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure13 shows which batch sizes serve ResNet-50 and how many kinds of instances there are, over loads from 20 to 600
// queries/s and objectives of 150, 250 and 350 ms.
func figure13(run *runner, f *reproduce.Sheet) error {
	for _, system := range []string{"infless", "batch", "infless-balanced", "infless-dense"} {
		r := reproduce.Add(run.Runner, "batch sizes of "+system, 1, 1,
			func(ctx context.Context, _ uint64) (batchShares, error) { return planBatches(ctx, system) })
		for _, b := range []int{1, 2, 4, 8, 16, 32} {
			f.At().Row(system, fmt.Sprintf("batches of %d", b), "% of throughput",
				r.Each(func(x batchShares) float64 { return 100 * x.byBatch[b] }))
		}
		f.At().Row(system, "kinds of instances", "", r.Each(func(x batchShares) float64 { return float64(x.kinds) }))
	}
	f.Note("Figure 13: published are only bars: INFless uses batches of 1, 2, 4 and 8, BATCH mainly of 4 and 8 on " +
		"three kinds of instances.")
	return nil
}

// batchShares says which batch sizes serve a function, over all plans of planBatches.
type batchShares struct {
	byBatch map[int]float64 // share of the throughput
	kinds   int             // different pairs of batch size and instance size
}

// planBatches plans for ResNet-50 at all loads and objectives of Figure 13.
func planBatches(ctx context.Context, system string) (batchShares, error) {
	type kind struct {
		batch int
		part  int32
	}
	out, kinds, total := batchShares{byBatch: make(map[int]float64)}, make(map[kind]bool), 0.0
	for _, slo := range []time.Duration{150 * ms, 250 * ms, 350 * ms} {
		w, err := newEnvironment([]function{{"resnet-50", slo}}, servers)
		if err != nil {
			return out, err
		}
		p, err := newPlanningSystem(w, system)
		if err != nil {
			return out, err
		}
		for rate := 20.0; rate <= 600; rate += 20 {
			x, ok := p.plan(ctx, []float64{rate})
			if !ok {
				continue
			}
			for _, i := range x.Instances {
				out.byBatch[i.Variants[0].Limit] += i.Share * rate
				kinds[kind{i.Variants[0].Limit, i.Part}] = true
				total += i.Share * rate
			}
		}
	}
	for b := range out.byBatch {
		out.byBatch[b] /= total
	}
	out.kinds = len(kinds)
	return out, nil
}
