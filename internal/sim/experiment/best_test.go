package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/papers/kairos"
)

// ladder returns pools with falling bounds. The pool at best carries as much as its bound, all others half of theirs.
func ladder(n, best int) ([]kairos.Ranked, Evaluate, *sync.Map) {
	var out []kairos.Ranked
	for i := range n {
		out = append(out, kairos.Ranked{Pool: kairos.Pool{n - i, i}, Bound: float64(100 - i)})
	}
	var calls sync.Map
	return out, func(_ context.Context, p kairos.Pool, start float64) (Throughput, error) {
		if _, twice := calls.LoadOrStore(fmt.Sprint(p), true); twice {
			return Throughput{}, fmt.Errorf("pool %v was evaluated twice", p)
		}
		if start != StartRate(float64(100-p[1])) {
			return Throughput{}, fmt.Errorf("pool %v is looked at from %v", p, start)
		}
		if p[1] == best {
			return Throughput{Rate: float64(100 - p[1])}, nil
		}
		return Throughput{Rate: float64(100-p[1]) / 2}, nil
	}, &calls
}

// Evaluating ahead finds the same pool through the same evaluations, and starts no more than it may.
func TestAhead(t *testing.T) {
	for _, many := range []int{0, 1, 3, 50} {
		ranked, evaluate, _ := ladder(20, 6)
		tried, best, err := BestPool(t.Context(), ranked, evaluate, func(float64) {})
		if err != nil || len(tried) != 7 || best != 6 {
			t.Fatalf("%v, best %d: %v", tried, best, err)
		}
		ranked, evaluate, calls := ladder(20, 6)
		ahead, end := context.WithCancel(t.Context())
		again, at, err := BestPool(t.Context(), ranked, EvaluateAhead(ahead, ranked, evaluate, many), func(float64) {})
		end()
		if err != nil || at != best || fmt.Sprint(again) != fmt.Sprint(tried) {
			t.Errorf("%d ahead: %v, best %d: %v; want %v, best %d", many, again, at, err, tried, best)
		}
		n := 0
		calls.Range(func(any, any) bool { n++; return true })
		if most := min(6+max(many, 1), 20); n > most {
			t.Errorf("%d ahead: %d pools were evaluated, want at most %d", many, n, most)
		}
	}
}

// The search ends when an evaluation fails, and when its context ends during an evaluation.
func TestAheadFails(t *testing.T) {
	ranked, _, _ := ladder(5, 0)
	broken := errors.New("broken")
	fails := EvaluateAhead(t.Context(), ranked, func(context.Context, kairos.Pool, float64) (Throughput, error) {
		return Throughput{}, broken
	}, 2)
	if _, _, err := BestPool(t.Context(), ranked, fails, func(float64) {}); !errors.Is(err, broken) {
		t.Errorf("an evaluation that fails: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	waits := EvaluateAhead(t.Context(), ranked, func(ctx context.Context, _ kairos.Pool, _ float64) (Throughput,
		error) {
		<-ctx.Done()
		return Throughput{}, ctx.Err()
	}, 2)
	if _, _, err := BestPool(ended, ranked, waits, func(float64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a search that was ended: %v", err)
	}
}
