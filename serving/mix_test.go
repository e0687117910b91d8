package serving

import (
	"math"
	"testing"
)

func TestMix(t *testing.T) {
	var none Mix
	if n := none.Classes(); n != 1 {
		t.Fatalf("the zero value has %d classes, want 1", n)
	}
	if items, share := none.Class(0); items != 1 || share != 1 || none.Mean() != 1 || none.Largest() != 1 ||
		none.Validate() != nil {
		t.Errorf("the zero value is %d items with share %v", items, share)
	}
	m := CountMix(map[int32]int{10: 3, 4: 1, 7: 0})
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if m.Classes() != 2 || m.Largest() != 10 || m.Count != 4 || math.Abs(m.Mean()-8.5) > 1e-12 {
		t.Errorf("mix %+v: classes %d, largest %d, mean %v", m, m.Classes(), m.Largest(), m.Mean())
	}
	if empty := CountMix(nil); empty.Classes() != 1 || empty.Validate() != nil {
		t.Errorf("nothing counted: %+v", empty)
	}
	for _, bad := range []Mix{
		{Sizes: []int32{1}}, {
			Sizes: []int32{0}, Shares: []float64{1},
		}, {Sizes: []int32{2, 2}, Shares: []float64{0.5, 0.5}},
		{Sizes: []int32{1, 2}, Shares: []float64{0.5, 0.4}}, {Sizes: []int32{1, 2}, Shares: []float64{1, 0}},
		{Sizes: []int32{1}, Shares: []float64{math.NaN()}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}
