package dataplane

import "testing"

// Silent streams are forgotten when there are too many, the one silent for longest first, and get a new number when they come again;
// those with a query under way keep theirs.
func TestStreamNumbers(t *testing.T) {
	s := streams{most: 2, byName: map[streamName]*stream{}}
	n := func(name string) streamName { return streamName{0, name} }
	expect := func(name string, want uint64) {
		t.Helper()
		if got := s.enter(n(name)); got != want {
			t.Errorf("stream %q has number %d, want %d", name, got, want)
		}
	}
	expect("busy", 1)
	for k, name := range []string{"a", "b", "c"} {
		expect(name, uint64(k+2))
	}
	if got := s.enter(streamName{1, "a"}); got != 5 {
		t.Errorf("stream a of another app has number %d", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		s.leave(n(name), false)
	}
	expect("busy", 1)
	expect("b", 3)
	expect("c", 4)
	expect("a", 6)
	s.leave(n("busy"), true)
	expect("busy", 1) // another query of it was under way when it ended
	s.leave(n("b"), true)
	expect("b", 7)
	s.leave(n("nobody"), true)
	if len(s.byName) != 5 || s.silent.Len() != 0 {
		t.Errorf("%d streams, %d of them silent", len(s.byName), s.silent.Len())
	}
}
