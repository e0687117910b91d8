package scrooge_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/papers/scrooge"
)

// decodeProblem reads a problem from arbitrary bytes.
func decodeProblem(data []byte) *scrooge.Problem {
	next := func() uint64 {
		var b [8]byte
		data = data[copy(b[:], data):]
		return binary.LittleEndian.Uint64(b[:])
	}
	number := func() float64 { return math.Float64frombits(next()) }
	p := &scrooge.Problem{SLO: time.Duration(next())}
	for range next() % 3 {
		p.Prices = append(p.Prices, number())
	}
	for range next() % 5 {
		m := scrooge.Module{Rate: number()}
		for range next() % 3 {
			m.Next = append(m.Next, int(next()%8))
		}
		for range next() % 4 {
			m.Modes = append(m.Modes, scrooge.Mode{
				Type: int(next() % 4), Batch: int(next() % 300), Slots: int(next() % 9), Latency: time.Duration(next()),
			})
		}
		p.Modules = append(p.Modules, m)
	}
	return p
}

// encodeProblem is the inverse of decodeProblem.
func encodeProblem(p *scrooge.Problem) []byte {
	var out []byte
	put := func(x uint64) { out = binary.LittleEndian.AppendUint64(out, x) }
	put(uint64(p.SLO))
	put(uint64(len(p.Prices)))
	for _, x := range p.Prices {
		put(math.Float64bits(x))
	}
	put(uint64(len(p.Modules)))
	for _, m := range p.Modules {
		put(math.Float64bits(m.Rate))
		put(uint64(len(m.Next)))
		for _, n := range m.Next {
			put(uint64(n))
		}
		modes := m.Modes[:min(3, len(m.Modes))]
		put(uint64(len(modes)))
		for _, x := range modes {
			put(uint64(x.Type))
			put(uint64(x.Batch))
			put(uint64(x.Slots))
			put(uint64(x.Latency))
		}
	}
	return out
}

// FuzzAllocate: whatever the problem, the answer is an error or an allocation that holds, and greedy is no cheaper.
func FuzzAllocate(f *testing.F) {
	f.Add([]byte{})
	p := example()
	f.Add(encodeProblem(p))
	p.Modules[0].Rate, p.Modules[1].Rate = 1e9, 1e-9
	f.Add(encodeProblem(p))
	p.SLO = scrooge.MaxTime
	f.Add(encodeProblem(p))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		p := decodeProblem(data)
		a, err := scrooge.Exact(p)
		if err != nil {
			var no *scrooge.Infeasible
			if p.Check() == nil && !errors.As(err, &no) {
				t.Fatalf("%v for a problem that is well formed", err)
			}
			return
		}
		if err := a.Verify(p); err != nil {
			t.Fatal(err)
		}
		if b := scrooge.Bound(p); b > a.Bound*(1+1e-9) {
			t.Fatalf("the bound is %v, the exact method's %v", b, a.Bound)
		}
		if g, err := scrooge.Greedy(p); err == nil {
			if err := g.Verify(p); err != nil {
				t.Fatal(err)
			}
			if g.Cost < a.Bound*(1-1e-9) {
				t.Fatalf("greedy costs %v, less than %v", g.Cost, a.Bound)
			}
		}
	})
}
