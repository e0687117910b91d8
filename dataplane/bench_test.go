package dataplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// BenchmarkHandOver is the way of one query through the plane, with a runtime that takes no time: through one stage,
// and through two of which the first finds three things.
func BenchmarkHandOver(b *testing.B) {
	run := func(stages []serving.Stage, r *dataplane.Request, what func(context.Context, *dataplane.Batch) error) func(
		*testing.B) {
		return func(b *testing.B) {
			p := staged(b, stages, what, time.Second, 8, dataplane.Config{})
			defer p.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Infer(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("one", run([]serving.Stage{{Name: "only"}}, one(), echo))
	b.Run("two", run(chain(), holding(3), finds(func(x *dataplane.Batch) error {
		return echo(context.Background(), x)
	})))
}
