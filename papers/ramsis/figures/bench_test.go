package ramsis

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPolicy measures the time to compute a policy (Table 2), for the objective with batches of at most 9 and the
// one with batches of at most 29.
func BenchmarkPolicy(b *testing.B) {
	for _, slo := range []time.Duration{150 * ms, 500 * ms} {
		for _, g := range table2 {
			models := 9
			if g.modelSet == dense {
				models = 60
			}
			b.Run(fmt.Sprintf("%v/%d models/%s", slo, models, g.name()), func(b *testing.B) {
				w, err := g.problem(slo)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := w.Solve(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
