package ramsis

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Store keeps policies between runs. A key identifies everything they were made from.
type Store interface {
	Get(key string) (*plan.Policy, bool)
	Put(key string, p *plan.Policy)
}

// Key identifies what a policy is made from: equal keys, equal policies. It contains the version of this package's
// method.
func (w *Worker) Key() string {
	h := sha256.New()
	fmt.Fprintf(h, "ramsis 1\n%d %d %d %d %v %v %v\n%v\n", w.SLO, w.Workers, w.MaxQueue, w.Levels, w.Variable,
		w.Balance, w.Drop, w.Arrivals)
	if w.Unpromised {
		fmt.Fprintln(h, "unpromised")
	}
	for _, m := range w.Models {
		fmt.Fprintf(h, "%d %v %v\n", m.Variant, m.Accuracy, m.Latency)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// policySet makes the policies of one kind of worker for several rates, each once.
type policySet struct {
	worker func(rate float64) *Worker
	store  Store
	made   map[float64]*plan.Policy
	onMade func(rate float64)
}

func (m *policySet) at(ctx context.Context, rate float64) (*plan.Policy, error) {
	if p := m.made[rate]; p != nil {
		return p, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ramsis: %w before the policy for %.0f queries/s was made", context.Cause(ctx), rate)
	}
	w := m.worker(rate)
	key := ""
	if m.store != nil {
		key = w.Key()
		if p, ok := m.store.Get(key); ok {
			m.made[rate] = p
			return p, nil
		}
	}
	p, err := w.Solve(ctx)
	if err != nil {
		return nil, err
	}
	if m.store != nil {
		m.store.Put(key, p)
	}
	m.made[rate] = p
	if m.onMade != nil {
		m.onMade(rate)
	}
	return p, nil
}

// Limits of refining a set.
const (
	minRateRatio = 1.01 // neighbours whose rates differ by less get no policy between them
	maxViolation = 0.1  // share of late queries beyond which policies are not refined
)

// refine adds policies for rates between two until the promised accuracies of neighbours differ by at most step (§6),
// or their rates hardly differ.
func (m *policySet) refine(ctx context.Context, low, high, step float64) error {
	a, err := m.at(ctx, low)
	if err != nil {
		return err
	}
	b, err := m.at(ctx, high)
	if err != nil {
		return err
	}
	// Violations count like accuracy, up to a rate at which so many are late that their number does not matter.
	near := math.Abs(a.Promise.Accuracy-b.Promise.Accuracy) <= step && b.Promise.Violation-a.Promise.Violation <= step
	if near || a.Promise.Violation > maxViolation || high <= low*minRateRatio {
		return nil
	}
	// Rates are whole queries a second, so that sets with different ends share policies.
	middle := math.Round((low + high) / 2)
	if middle <= low || middle >= high {
		middle = (low + high) / 2
	}
	if err := m.refine(ctx, low, middle, step); err != nil {
		return err
	}
	return m.refine(ctx, middle, high, step)
}

// lowestUseful returns the rate to begin with: low, or a rate below it at which the most accurate model is chosen
// nearly always.
func (m *policySet) lowestUseful(ctx context.Context, low, best, step float64) (float64, error) {
	for range 10 {
		p, err := m.at(ctx, low)
		if err != nil || p.Promise.Accuracy >= best-step {
			return low, err
		}
		low = round(low / 3)
	}
	return low, nil
}

// all returns the policies by ascending rate.
func (m *policySet) all() []plan.Policy {
	out := make([]plan.Policy, 0, len(m.made))
	for _, p := range m.made {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b plan.Policy) int { return cmp.Compare(a.Rate, b.Rate) })
	return out
}
