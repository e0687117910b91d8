package kairos

import (
	"testing"

	"github.com/sluice-serving/sluice/reproduce"
)

// BenchmarkRun is one run of 5,000 queries of RM2 on 11 machines, a little below what they carry.
func BenchmarkRun(b *testing.B) {
	l := newLab(reproduce.Request{})
	s, err := l.service(at("rm2"))
	if err != nil {
		b.Fatal(err)
	}
	for _, rule := range rules() {
		b.Run(rule, func(b *testing.B) {
			p, err := s.probe(question{
				setup: s.setup, pool: pool{2, 0, 9, 0}, system: rule, threshold: 200,
			}, l.fine, giveUp)
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
