package priced

import (
	"math"
	"testing"
	"time"
)

func TestPaceOfBatches(t *testing.T) {
	const ms = time.Millisecond
	var p pace
	if p.update(); p.ratio() != 1 || p.risk(1, 1, 1) != 0 {
		t.Errorf("before any batch: ratio %v, risk %v", p.ratio(), p.risk(1, 1, 1))
	}
	for k := range 20_000 { // every tenth takes 110 ms where 100 are believed, the others 80
		took := 80 * ms
		if k%10 == 0 {
			took = 110 * ms
		}
		p.add(took, 100*ms)
	}
	p.add(0, 100*ms) // it failed
	p.update()
	if x := p.ratio(); math.Abs(x-0.83) > 0.01 {
		t.Errorf("ratio %v, want 0.83", x)
	}
	for _, c := range []struct{ first, last, want float64 }{
		{0.1, 0.1, 0.1}, {0.1, 0.2, 0.05}, {0.109, 0.109, 0.1}, {0.112, 0.112, 0}, {0.112, 5, 0},
	} {
		if x := p.risk(c.first, c.last, 0.1); math.Abs(x-c.want) > 0.01 {
			t.Errorf("%v and %v s left for a batch of 100 ms: risk %v, want %v", c.first, c.last, x, c.want)
		}
	}
	for range 3 * paceMemory { // what was long ago is forgotten
		p.add(100*ms, 100*ms)
	}
	if p.update(); math.Abs(p.ratio()-1) > 0.02 || p.risk(0.1, 0.1, 0.1) > 0.02 {
		t.Errorf("after batches as believed: ratio %v, risk %v", p.ratio(), p.risk(0.1, 0.1, 0.1))
	}
}

// A batch that takes exactly what is believed is in time, where its queries have no more left.
func TestPaceOfExactBatches(t *testing.T) {
	var p pace
	for k := range 1000 {
		d := time.Duration(k+1) * 12_345_678
		p.add(d, d)
	}
	if p.update(); p.ratio() != 1 || p.risk(0.1, 0.1, 0.1) != 0 {
		t.Errorf("ratio %v, risk %v, want 1 and 0", p.ratio(), p.risk(0.1, 0.1, 0.1))
	}
}
