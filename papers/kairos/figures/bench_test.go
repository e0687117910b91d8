package kairos

import (
	"testing"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// BenchmarkRun simulates one run of 5,000 queries of RM2 on 11 machines, a little below their throughput.
func BenchmarkRun(b *testing.B) {
	run := newRunner(reproduce.Request{})
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		b.Fatal(err)
	}
	for _, rule := range comparedRules {
		b.Run(rule, func(b *testing.B) {
			p, err := s.probe(trial{
				setup: s.setup, pool: pool{2, 0, 9, 0}, system: rule, threshold: 200,
			}, run.fine, giveUpShare)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := p(b.Context(), 50, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
