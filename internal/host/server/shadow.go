package server

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Shadow queries run in idle time only.
const (
	shadowQueue   = 16      // answers that wait to be compared; further ones are left out
	largestShadow = 4 << 20 // bytes of a request's inputs
	idleEvery     = 10 * time.Millisecond
	idleWithin    = 5 * time.Second  // for an idle moment; later an answer is not compared
	shadowTimeout = 30 * time.Second // of a shadow query
	shadowMemory  = 1000             // comparisons of a variant that count
	shadowLeast   = 200              // comparisons from which something is said
)

// shadow compares answers of variants with those of the most accurate one that is loaded, on a share of the queries,
// so that the estimate of accuracies stays fresh. It asks while nothing else waits or runs.
type shadow struct {
	share float64
	s     *service
	log   *slog.Logger
	queue chan shadowed
	seen  map[serving.VariantID]*agreement // owned by run
}

type shadowed struct {
	request *dataplane.Request
	variant serving.VariantID
	outputs []tensor.Tensor
}

// agreement is how often a variant said what the reference says, lately.
type agreement struct {
	right, all float64
	told       bool // that it is off
	generation uint32
}

func (a *agreement) add(agrees bool) {
	if a.all >= shadowMemory {
		a.right, a.all = a.right*(shadowMemory-1)/shadowMemory, shadowMemory-1
	}
	a.all++
	if agrees {
		a.right++
	}
}

// newShadow returns the shadow that the file asks for; nil where it does not.
func newShadow(share float64, s *service, log *slog.Logger) *shadow {
	if share <= 0 {
		return nil
	}
	return &shadow{share: share, s: s, log: log, queue: make(chan shadowed, shadowQueue),
		seen: make(map[serving.VariantID]*agreement)}
}

// take has a share of the answers compared. A nil shadow compares none. It does not wait.
func (h *shadow) take(r *dataplane.Request, answer *dataplane.Response) {
	if h == nil || rand.Float64() >= h.share || r.Stream != "" || r.Items > 1 {
		return
	}
	spec := h.s.spec.Load()
	stages := spec.Apps[r.App].Stages
	if len(stages) != 1 || len(spec.Stages[stages[0]].Variants) < 2 {
		return
	}
	if tensor.TotalBytes(r.Inputs) > largestShadow {
		return
	}
	copied := &dataplane.Request{App: r.App, Generation: r.Generation, Inputs: slices.Clone(r.Inputs), Items: 1,
		Timeout: shadowTimeout}
	select {
	case h.queue <- shadowed{copied, answer.Variant, answer.Outputs}:
	default:
	}
}

// run compares until ctx ends.
func (h *shadow) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-h.queue:
			h.compare(ctx, &x)
		}
	}
}

// compare has the reference and one other variant answer a query, and notes which agree with the reference.
func (h *shadow) compare(ctx context.Context, x *shadowed) {
	spec := h.s.spec.Load()
	var m *server.Model
	for _, one := range h.s.Models() {
		for _, v := range one.All() {
			if v.App == x.request.App && v.Generation == x.request.Generation && v.Failed == "" {
				m = v
			}
		}
	}
	if m == nil {
		return
	}
	var ready []serving.VariantID // most accurate first
	for _, v := range m.Versions {
		if h.s.ModelReady(m, v.Name) {
			ready = append(ready, v.Variant)
		}
	}
	slices.SortStableFunc(ready, func(a, b serving.VariantID) int {
		return cmp.Compare(spec.Variants[b].Accuracy, spec.Variants[a].Accuracy)
	})
	if len(ready) < 2 {
		return
	}
	reference, others := ready[0], ready[1:]
	said := map[serving.VariantID][]tensor.Tensor{x.variant: x.outputs}
	for _, v := range []serving.VariantID{reference, others[rand.IntN(len(others))]} {
		if _, have := said[v]; have {
			continue
		}
		if !h.waitIdle(ctx) {
			return
		}
		q := *x.request
		q.Variant, q.VariantGeneration = v, spec.Variants[v].Generation
		answer, err := h.s.plane.Infer(ctx, &q)
		if err != nil {
			return
		}
		said[v] = answer.Outputs
	}
	for v, outputs := range said {
		if v != reference && slices.Contains(ready, v) {
			h.note(spec, v, reference, samples.Agree(said[reference], outputs))
		}
	}
}

// waitIdle returns when no query waits or runs; false when there was no such moment.
func (h *shadow) waitIdle(ctx context.Context) bool {
	for begun := time.Now(); time.Since(begun) < idleWithin && ctx.Err() == nil; {
		idle := false
		if !h.s.plane.Inspect(func(e *engine.Engine) { idle = e.Pending() == 0 }) {
			return false
		}
		if idle {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(idleEvery):
		}
	}
	return false
}

// note counts a comparison, shows the estimate, and warns of one that contradicts what plans believe.
func (h *shadow) note(spec *serving.Spec, v, reference serving.VariantID, agrees bool) {
	a := h.seen[v]
	if of := spec.Variants[v].Generation; a == nil || a.generation != of {
		a = &agreement{generation: of}
		h.seen[v] = a
	}
	a.add(agrees)
	if a.all < shadowLeast {
		return
	}
	x := &spec.Variants[v]
	estimate := a.right / a.all * spec.Variants[reference].Accuracy
	app := spec.Apps[spec.Stages[x.Stage].App].Name
	h.s.telemetry.ShowAccuracy(app, x.Name, "shadowed", estimate)
	off := host.Drifted(x.Accuracy, estimate, int(a.all))
	switch {
	case off && !a.told:
		h.log.Warn("a variant is not as accurate as plans believe: measure again with 'sluice profile --samples'",
			"app", app, "variant", x.Name, "believed", x.Accuracy, "estimate", estimate, "comparisons", int(a.all))
	case !off && a.told:
		h.log.Info("a variant is as accurate as plans believe again", "app", app, "variant", x.Name)
	}
	a.told = off
}
