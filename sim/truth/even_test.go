package truth

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// forked is an app whose first stage sends to two others, of which the second gets items from the first, too.
func forked(left, right, across float64) *serving.Spec {
	return &serving.Spec{
		Apps: []serving.App{{Name: "a", Stages: []serving.StageID{0, 1, 2}}},
		Stages: []serving.Stage{
			{Name: "start", Next: []serving.Edge{{To: 1, FanOut: left}, {To: 2, FanOut: right}}},
			{Name: "left", Next: []serving.Edge{{To: 2, FanOut: across}}, Joins: 1}, {Name: "right", Joins: 2},
		},
	}
}

// Fractions are carried from query to query: 0.4 of an item for each makes an item in two of five queries.
func TestEvenContentCarriesFractions(t *testing.T) {
	c := NewEven(forked(0.4, 2.5, 1))
	want := [][]int32{{0, 2}, {0, 3}, {1, 2}, {0, 3}, {1, 2}, {0, 3}}
	for n, sent := range want {
		f := c.Frame(&serving.Query{ID: serving.QueryID(n + 1), Items: 1})
		for k := range sent {
			if got := ItemsSent(f, 0, k, 0, 1); got != sent[k] {
				t.Errorf("query %d sends %d items along edge %d, want %d", n, got, k, sent[k])
			}
		}
	}
}

// Along every edge the items sent are the fan-out times the items of its stage, but for less than one, whatever the
// sizes of queries and however their items are cut into parts. Bring says what each stage gets, the most that an edge
// delivers.
func TestEvenContentIsRightInTheMean(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		spec := forked(3*r.Float64(), 3*r.Float64(), 3*r.Float64())
		c, same := NewEven(spec), NewEven(spec)
		came, sent := make([]float64, 3), [][]float64{{0, 0}, {0}}
		for n := range 500 {
			q := serving.Query{ID: serving.QueryID(n + 1), Items: int32(1 + r.IntN(4))}
			f, brings := c.Frame(&q), same.Bring(0, q.Items)
			got := []float64{float64(q.Items), 0, 0}
			for s := range sent {
				came[s] += got[s]
				for k, e := range spec.Stages[s].Next {
					all := int32(0)
					for from := int32(0); from < int32(got[s]); {
						part := min(1+r.Int32N(3), int32(got[s])-from)
						all += ItemsSent(f, serving.StageID(s), k, from, part)
						from += part
					}
					sent[s][k] += float64(all)
					got[e.To] = max(got[e.To], float64(all))
				}
			}
			for s := range got {
				if got[s] != brings[s] {
					t.Fatalf("seed %d, query %d: %v items by stage, want %v", seed, n, got, brings)
				}
			}
		}
		for s := range sent {
			for k, e := range spec.Stages[s].Next {
				if want := came[s] * e.FanOut; math.Abs(sent[s][k]-want) > 1+1e-6 {
					t.Errorf("seed %d: %v items along edge %d of stage %d, want %v", seed, sent[s][k], k, s, want)
				}
			}
		}
	}
}

func TestFractionalFanOuts(t *testing.T) {
	for _, c := range []struct {
		left, right float64
		want        bool
	}{{1, 4, false}, {0, 1, false}, {0.5, 1, true}, {1, 2.5, true}} {
		if got := Fractional(forked(c.left, c.right, 1)); got != c.want {
			t.Errorf("%v and %v: %v", c.left, c.right, got)
		}
	}
}
