package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
)

func openStates(t *testing.T, dir string, limit int64) *States {
	t.Helper()
	s, err := OpenStates(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	s.db.NoSync = true // durability is not tested here
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func stream(name string) dataplane.StateKey {
	return dataplane.StateKey{App: "a", Stage: "s", Stream: name}
}

func TestStates(t *testing.T) {
	dir := t.TempDir()
	s := openStates(t, dir, 1<<20)
	expect := func(k dataplane.StateKey, want []byte) {
		t.Helper()
		got, err := s.Get(k)
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%+v: %v, %v, want %v", k, got, err, want)
		}
	}
	if err := s.Keep(map[dataplane.StateKey][]byte{
		stream("x"): {1}, stream("y"): {}, stream("z"): {3}, stream("none"): nil,
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(map[dataplane.StateKey][]byte{
		stream("x"): {1, 2}, stream("z"): nil, stream("y\x00"): {4},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		expect(stream("x"), []byte{1, 2})
		expect(stream("y"), []byte{})
		expect(stream("z"), nil)
		expect(stream("y\x00"), []byte{4})
		expect(dataplane.StateKey{App: "a", Stage: "other", Stream: "x"}, nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStates(t, dir, 1<<20)
	}
	if _, err := OpenStates(dir, 1<<20); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process: %v", err)
	}
	for _, bad := range []dataplane.StateKey{{App: "a\x00", Stage: "s", Stream: "x"}, {App: "a", Stage: "s"}} {
		if _, err := s.Get(bad); err == nil {
			t.Errorf("%+v was looked up", bad)
		}
		if err := s.Keep(map[dataplane.StateKey][]byte{bad: {1}}); err == nil {
			t.Errorf("%+v was kept", bad)
		}
	}
}

// Against a list of all that was written, oldest first: the youngest are there as far as they have room, through
// restarts with other limits.
func TestStatesForgetTheOldest(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 3))
	dir := t.TempDir()
	limit := int64(3000)
	s := openStates(t, dir, limit)
	type written struct {
		name  string
		state []byte
	}
	var list []written
	for step := range 120 {
		if step%40 == 39 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			limit = 1500 + limit%2000
			s = openStates(t, dir, limit)
		} else {
			w := written{fmt.Sprint(rng.IntN(60)), make([]byte, rng.IntN(200))}
			if rng.IntN(10) == 0 {
				w.state = nil
			}
			if err := s.Keep(map[dataplane.StateKey][]byte{stream(w.name): w.state}); err != nil {
				t.Fatal(err)
			}
			kept := list[:0]
			for _, x := range list {
				if x.name != w.name {
					kept = append(kept, x)
				}
			}
			if list = kept; w.state != nil {
				list = append(list, w)
			}
		}
		total := int64(0)
		for _, x := range list {
			total += int64(len("a\x00s\x00"+x.name)+len(x.state)) + stateCost
		}
		for total > limit {
			total -= int64(len("a\x00s\x00"+list[0].name)+len(list[0].state)) + stateCost
			list = list[1:]
		}
		here := map[string]int{}
		for _, x := range list {
			here[x.name] = len(x.state)
		}
		for k := range 60 {
			got, err := s.Get(stream(fmt.Sprint(k)))
			n, want := here[fmt.Sprint(k)]
			if err != nil || (got != nil) != want || len(got) != n {
				t.Fatalf("seed %d, step %d, stream %d: %d bytes, %v, want %d, %v", seed, step, k, len(got), err, n,
					want)
			}
		}
	}
}
