package longtest

import (
	"slices"
	"testing"
)

func TestShrinkKeepsWhatFails(t *testing.T) {
	fails := func(list []int) bool { return slices.Contains(list, 3) && slices.Contains(list, 7) }
	if got := Shrink([]int{1, 2, 3, 4, 5, 6, 7, 8, 9}, fails, 40); !slices.Equal(got, []int{3, 7}) {
		t.Errorf("%v, want 3 and 7", got)
	}
	if all := []int{3, 7}; !slices.Equal(Shrink(all, fails, 0), all) {
		t.Error("it shrinks without a try")
	}
}

func TestSeeds(t *testing.T) {
	for text, want := range map[string][2]uint64{"5": {5, 5}, "2-9": {2, 9}} {
		t.Setenv("SLUICE_SEEDS", text)
		if from, to, ok, err := Seeds("SLUICE_SEEDS"); from != want[0] || to != want[1] || !ok || err != nil {
			t.Errorf("%s: %d to %d, %v, %v", text, from, to, ok, err)
		}
	}
	t.Setenv("SLUICE_SEEDS", "x")
	if _, _, ok, err := Seeds("SLUICE_SEEDS"); !ok || err == nil {
		t.Error("x is a seed")
	}
	t.Setenv("SLUICE_SEEDS", "")
	if _, _, ok, err := Seeds("SLUICE_SEEDS"); ok || err != nil {
		t.Errorf("none: %v, %v", ok, err)
	}
}
