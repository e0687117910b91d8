package ops

import (
	"errors"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// follow sends frames through a tracker one by one and returns the ids and ages of each.
func follow(t *testing.T, f *Function, frames ...[]float32) (ids, ages [][]float64) {
	t.Helper()
	var state []byte
	for _, b := range frames {
		r, err := f.Run(&Call{Inputs: []tensor.Tensor{fp32("boxes", b, int64(len(b)/4), 4)}, State: state})
		if err != nil {
			t.Fatal(err)
		}
		state = r.State
		ids, ages = append(ids, numbers(&r.Outputs[0])), append(ages, numbers(&r.Outputs[1]))
	}
	return ids, ages
}

func TestTrack(t *testing.T) {
	a, aMoved := []float32{0, 0, 10, 10}, []float32{2, 0, 12, 10} // overlap by 80/120
	b, c := []float32{50, 50, 60, 60}, []float32{5, 0, 15, 10}    // c overlaps a by 50/150, aMoved by 70/130
	for name, x := range map[string]struct {
		with   with
		frames [][]float32
		want   [][]float64
	}{
		"ids stay, whatever the order": {
			nil, [][]float32{slices.Concat(a, b), slices.Concat(b, aMoved)}, [][]float64{{1, 2}, {2, 1}},
		},
		"what comes is new, what went is not found": {nil, [][]float32{a, b, a}, [][]float64{{1}, {2}, {3}}},
		"what was out of sight for as long as may be": {
			with{"lost": "1"}, [][]float32{a, b, a}, [][]float64{{1}, {2}, {1}},
		},
		"too long": {
			with{"lost": "1"}, [][]float32{a, nil, nil, a}, [][]float64{{1}, {}, {}, {2}},
		},
		"the larger overlap wins":        {nil, [][]float32{a, slices.Concat(c, aMoved)}, [][]float64{{1}, {2, 1}}},
		"too little in common":           {with{"iou": "0.7"}, [][]float32{a, aMoved}, [][]float64{{1}, {2}}},
		"no overlap is never the same":   {with{"iou": "0"}, [][]float32{a, b}, [][]float64{{1}, {2}}},
		"boxes that are none have no id": {nil, [][]float32{{nan, 0, 1, 1}, a}, [][]float64{{0}, {1}}},
		"two that are the same keep theirs": {
			nil, [][]float32{slices.Concat(a, a), slices.Concat(a, a)}, [][]float64{{1, 2}, {1, 2}},
		},
		"only so many are remembered": {
			with{"most": "1", "lost": "9"}, [][]float32{
				slices.Concat(a, b), slices.Concat(a, b),
			}, [][]float64{{1, 2}, {1, 3}},
		},
	} {
		if got, _ := follow(t, mustNew(t, "track", x.with), x.frames...); !slices.EqualFunc(got, x.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
	if _, ages := follow(t, mustNew(t, "track", with{"lost": "1"}), a, b, a, aMoved); !slices.EqualFunc(ages,
		[][]float64{{1}, {1}, {2}, {3}}, slices.Equal) {
		t.Errorf("ages %v", ages)
	}
}

// TestTrackFramesTogether: several frames in one call are the same as one after the other, and a state that was written
// and read goes on as if nothing had been.
func TestTrackFramesTogether(t *testing.T) {
	for seed := range seeds {
		rng := seeded(seed)
		frames, k := 1+rng.IntN(5), 1+rng.IntN(6)
		var all []float32
		var each [][]float32
		for range frames {
			var one []float32
			for range k {
				x, y := float32(rng.IntN(12)), float32(rng.IntN(12))
				one = append(one, x, y, x+4, y+4)
			}
			all, each = append(all, one...), append(each, one)
		}
		f := mustNew(t, "track", with{"lost": "1", "iou": "0.1"})
		ids, _ := follow(t, f, each...)
		got := answer(t, f, Call{Inputs: []tensor.Tensor{fp32("boxes", all, int64(frames), int64(k), 4)}})["ids"]
		if !slices.Equal(got, slices.Concat(ids...)) {
			t.Fatalf("seed %d: together %v, one by one %v", seed, got, ids)
		}
		for i, one := range ids {
			if slices.Sort(one); len(slices.Compact(one)) != k {
				t.Fatalf("seed %d: frame %d gives an id twice: %v", seed, i, ids)
			}
		}
	}
}

func TestDamagedStatesAreRefused(t *testing.T) {
	f := mustNew(t, "track", nil)
	boxes := fp32("boxes", []float32{0, 0, 1, 1, 5, 5, 6, 6}, 2, 4)
	r, err := f.Run(&Call{Inputs: []tensor.Tensor{boxes}})
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(s []byte) []byte{
		"empty": func([]byte) []byte {
			return []byte{}
		}, "another version": func(s []byte) []byte {
			s[0]++
			return s
		}, "cut off": func(s []byte) []byte { return s[:len(s)-1] },
		"an id that was never given": func(s []byte) []byte {
			s[stateHead] = 9
			return s
		}, "ids out of order": func(s []byte) []byte { s[stateHead] = 2; return s },
		"a box that is none": func(s []byte) []byte {
			copy(s[stateHead+20:], []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7f})
			return s
		},
	} {
		if _, err := f.Run(&Call{
			Inputs: []tensor.Tensor{boxes}, State: spoil(slices.Clone(r.State)),
		}); !errors.Is(err, errState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
