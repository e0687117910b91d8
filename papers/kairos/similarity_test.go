package kairos

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	m := ec2() // one base type, the first
	ranked := func(pools ...Pool) (out []Ranked) {
		for i, p := range pools {
			out = append(out, Ranked{Pool: p, Bound: float64(len(pools) - i)})
		}
		return out
	}
	none := ranked(Pool{1, 0, 0, 0}, Pool{2, 0, 0, 0})
	none[0].Bound, none[1].Bound = 0, 0
	for _, c := range []struct {
		name string
		in   []Ranked
		want int
	}{
		{"the first three agree", ranked(Pool{1, 0, 13, 0}, Pool{1, 0, 12, 0}, Pool{1, 1, 10, 0}, Pool{2, 0, 9, 0}), 0},
		{
			"they do not: the one in the middle", ranked(Pool{1, 0, 9, 0}, Pool{2, 0, 4, 0}, Pool{1, 0, 5, 0},
				Pool{2, 0, 6, 0}), 3,
		},
		{"a tie goes to the higher bound", ranked(Pool{1, 0, 0, 0}, Pool{2, 0, 0, 0}), 0},
		{"one", ranked(Pool{1, 0, 0, 0}), 0},
		{"none", nil, -1},
		{"none serves anything", none, -1},
	} {
		if got := ChooseBySimilarity(m, c.in); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The eleventh pool does not count, and with several base types each must agree.
func TestChooseLooksAtTen(t *testing.T) {
	m := ec2()
	m.Types[1].Latency = m.Types[0].Latency
	var in []Ranked
	for i := range 10 {
		in = append(in, Ranked{Pool: Pool{1, i % 2, i, 0}, Bound: 100 - float64(i)})
	}
	want := ChooseBySimilarity(m, in)
	if want == 0 {
		t.Fatal("the second base type differs among the first three, so the first is not chosen outright")
	}
	in = append(in, Ranked{Pool: Pool{1, 0, 1000, 0}, Bound: 1})
	if got := ChooseBySimilarity(m, in); got != want {
		t.Errorf("the eleventh pool changes the choice from %d to %d", want, got)
	}
}

func TestRankIsDeterministic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m, pools := thousand()
	pools = slices.Clone(pools)
	f, err := NewFluid(m, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	want := Rank(m, f, pools)
	for i := 1; i < len(want); i++ {
		if want[i].Bound > want[i-1].Bound*(1+1e-7) {
			t.Fatalf("%v comes after %v", want[i], want[i-1])
		}
	}
	for range 3 {
		rng.Shuffle(len(pools), func(i, j int) { pools[i], pools[j] = pools[j], pools[i] })
		for i, r := range Rank(m, f, pools) {
			if !slices.Equal(r.Pool, want[i].Pool) {
				t.Fatalf("place %d has %v in one order and %v in another", i, want[i], r)
			}
		}
	}
}

func TestGrow(t *testing.T) {
	m := ec2()
	m.Types = m.Types[:1]
	pools, err := m.Pools(2.5)
	if err != nil {
		t.Fatal(err)
	}
	ranked := Rank(m, NewUpper(m), pools)
	at := ChooseBySimilarity(m, ranked)
	if ranked[at].Pool[0] != 3 {
		t.Errorf("the rule takes %v, want the higher one of the middle of one to four", ranked[at].Pool)
	}
	if got := ranked[BestSuperset(ranked, at)].Pool[0]; got != 4 {
		t.Errorf("grown to %d machines, the budget pays 4", got)
	}
}
