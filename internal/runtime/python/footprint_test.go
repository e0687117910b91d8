package python

import (
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
)

// hungry holds 64 MiB, needed twice that while it loaded, and needs 16 MiB for an item while it runs.
const hungry = `
import numpy as np
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"y": "FP32[-1,1]"}
    def load(self, config):
        wide = np.ones((64 << 20) // 4, dtype=np.float64)
        self.weights = wide.astype(np.float32)
    def infer(self, inputs):
        room = np.ones((len(inputs["x"]), 16 << 20), dtype=np.uint8)
        return {"y": inputs["x"] + room[0, 0] - self.weights[0]}
`

// The memory of a model is what it holds and what its largest batch takes, and not what its load took beyond that.
func TestFootprint(t *testing.T) {
	b, l := backendOf(t, hungry, nil)
	took := func(limit, slots int) int64 {
		r, err := b.Launch(t.Context(), dataplane.InstanceSpec{
			ID: 1, Variants: variant, BatchLimit: limit, Slots: slots, Cores: 1,
		})
		if err != nil {
			t.Fatal(err, l.text())
		}
		defer func() { _ = r.Close() }()
		bytes, known := r.(dataplane.Footprint).Footprint()
		if !known {
			t.Skip("this system does not tell what a process takes")
		}
		return bytes
	}
	empty, _ := backendOf(t, scale, nil)
	r, err := empty.Launch(t.Context(), dataplane.InstanceSpec{
		ID: 1, Variants: variant, BatchLimit: 1, Slots: 1, Cores: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	base, _ := r.(dataplane.Footprint).Footprint()
	one, eight := took(1, 1)-base, took(8, 1)-base
	within := func(what string, got, mib int64) {
		if got < mib<<20-8<<20 || got > mib<<20+24<<20 {
			t.Errorf("%s takes %d MiB beside an empty model, want about %d", what, got>>20, mib)
		}
	}
	within("a batch of one", one, 64+16)
	within("a batch of eight", eight, 64+8*16)
	if two := took(1, 2) - base; two < one+64<<20 {
		t.Errorf("two processes take %d MiB, one takes %d", two>>20, one>>20)
	}
}
