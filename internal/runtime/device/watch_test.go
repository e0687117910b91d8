package device

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestWatchSumsUp(t *testing.T) {
	for _, id := range []string{"0", "GPU-0a11d7a2-0000-0000-0000-000000000001"} {
		s := Watch(t.Context(), Tool{Command: fakeTool}, id, time.Hour)()
		if s.Samples != 1 || s.MeanMHz != 1755 || s.LeastMHz != 1755 || s.MostMHz != 1980 ||
			s.MostMemoryBytes != 1<<30 || !s.Hot() {
			t.Errorf("%+v", s)
		}
	}
	if s := Watch(t.Context(), Tool{Command: "testdata/absent"}, "0", time.Hour)(); s.Samples != 0 {
		t.Errorf("without a driver %+v", s)
	}
}

func TestSeenLeavesIdleClocksOut(t *testing.T) {
	var s Seen
	for _, x := range []State{
		{ClockMHz: 345, Throttled: []string{"idle"}}, {ClockMHz: 1900, Watts: 600, Utilization: 1},
		{ClockMHz: 1500, Watts: 700, Utilization: 0.9, Throttled: []string{"power limit"}},
	} {
		s.add(&Accelerator{State: x})
	}
	if s.LeastMHz != 1500 || s.MeanMHz != 1700 || s.MeanWatts != 650 || s.Samples != 3 ||
		!slices.Equal(s.Throttled, []string{"power limit"}) {
		t.Errorf("%+v", s)
	}
}

func TestSaysOutOfMemory(t *testing.T) {
	for text, want := range map[string]bool{
		"CUDA out of memory. Tried to allocate 2.00 GiB":                                             true,
		"CUDA failure 2: out of memory ; GPU=0":                                                      true,
		"BFCArena::AllocateRawInternal Available memory of 0 is smaller than requested bytes of 256": true,
		"invalid shape": false,
		errors.New("CUDA failure 700: an illegal memory access").Error(): false,
	} {
		if SaysOutOfMemory(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
