package kairos

import (
	"slices"
	"testing"
)

// With the inputs of the authors' allocator for mtwnd, similarity leads past the pool with the highest bound.
func TestChoiceOfTheAuthorsInputs(t *testing.T) {
	m := ec2()
	pools, err := m.Pools(2.5)
	if err != nil {
		t.Fatal(err)
	}
	ranked := Rank(m, published(t, m, "mtwnd"), pools)
	for i, want := range []Pool{{2, 0, 9, 0}, {1, 1, 10, 0}, {2, 0, 8, 1}} {
		if !slices.Equal(ranked[i].Pool, want) {
			t.Errorf("place %d: %v, want %v", i+1, ranked[i].Pool, want)
		}
	}
	if at := ChooseBySimilarity(m, ranked); at != 2 {
		t.Errorf("place %d is chosen, want the third", at+1)
	}
}
