package ramsis

import (
	"fmt"
	"testing"
	"time"
)

// How long a policy takes to be made: Table 2, with the objective that leaves batches of 9 and the one that leaves 29.
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
