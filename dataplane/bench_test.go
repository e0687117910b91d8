package dataplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// BenchmarkQuery is one query from its submission to its answer, with a runtime that takes no time: in an app of one
// stage, and in one of two stages of which the first finds three things.
func BenchmarkQuery(b *testing.B) {
	type runs func(context.Context, *dataplane.Batch) error
	run := func(stages func() []serving.Stage, r *dataplane.Request, batch runs) func(*testing.B) {
		return func(b *testing.B) {
			p := staged(b, stages(), batch, time.Second, 8, dataplane.Config{})
			defer p.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Infer(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("one", run(func() []serving.Stage { return []serving.Stage{{Name: "only"}} }, one(), echo))
	b.Run("two", run(chain, holding(3), finds(func(x *dataplane.Batch) error {
		return echo(context.Background(), x)
	})))
}
