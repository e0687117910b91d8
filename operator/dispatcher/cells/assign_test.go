package cells

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

func TestAssign(t *testing.T) {
	tests := []struct {
		name    string
		holders map[int]string
		live    []string
		want    map[int]string // "?" is any live replica
		moves   int
	}{
		{"free cells are given", map[int]string{0: "", 1: ""}, []string{"a", "b"}, map[int]string{0: "?", 1: "?"}, 2},
		{"nothing moves without need", map[int]string{0: "a", 1: "b", 2: "b"}, []string{"a", "b"},
			map[int]string{0: "a", 1: "b", 2: "b"}, 0},
		{"one more is given over", map[int]string{0: "a", 1: "a"}, []string{"a", "b"}, map[int]string{0: "a", 1: "b"},
			1},
		{"a holder that is silent keeps its own until it has lapsed", map[int]string{0: "gone", 1: "a"},
			[]string{"a", "b"}, map[int]string{0: "gone", 1: "a"}, 0},
		{"a lapsed cell goes to who has least", map[int]string{0: "", 1: "a"}, []string{"a", "b"},
			map[int]string{0: "b", 1: "a"}, 1},
		{"nobody is live", map[int]string{0: "a", 1: ""}, nil, map[int]string{0: "a", 1: ""}, 0},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			got := Assign(x.holders, x.live)
			for cell, want := range x.want {
				if want != "?" && got[cell] != want || want == "?" && got[cell] == "" {
					t.Errorf("cell %d goes to %q, want %q", cell, got[cell], want)
				}
			}
			if n := moved(x.holders, got); n != x.moves {
				t.Errorf("%d cells move, want %d: %v", n, x.moves, got)
			}
		})
	}
}

func moved(before, after map[int]string) (n int) {
	for cell, id := range after {
		if before[cell] != id {
			n++
		}
	}
	return n
}

// TestAssignIsEvenAndSettles draws fleets: shares differ by at most one, and assigning what was assigned moves nothing.
func TestAssignIsEvenAndSettles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var live []string
		for k := range 1 + r.IntN(6) {
			live = append(live, fmt.Sprint("d", k))
		}
		holders := map[int]string{}
		for cell := range r.IntN(12) {
			holders[cell] = ""
			if r.IntN(3) > 0 {
				holders[cell] = live[r.IntN(len(live))]
			}
		}
		got := Assign(holders, live)
		shares := map[string]int{}
		for _, id := range got {
			shares[id]++
		}
		for _, id := range live {
			if n := shares[id]; n < len(holders)/len(live) || n > len(holders)/len(live)+1 {
				t.Fatalf("%v over %v gives %s %d cells", holders, live, id, n)
			}
		}
		if again := Assign(got, live); !maps.Equal(again, got) {
			t.Fatalf("%v is assigned %v the next time", got, again)
		}
	}
}
