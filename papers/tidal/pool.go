package tidal

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Model is a variant on a worker of the pool.
type Model struct {
	Variant  serving.VariantID
	Accuracy float64
	Latency  []time.Duration // by batch size less one, in queries; never falls
}

// Pool is what a value function is made for: Poisson arrivals at one queue that workers of one type share.
type Pool struct {
	Rate    float64 // queries/s
	Workers int
	SLO     time.Duration
	Models  []Model
	// LateShare is the share of queries that may be late.
	LateShare float64
}

// action is a batch that can be in time. Times are in seconds, accuracies per query.
type action struct {
	variant           serving.VariantID
	size              float64
	latency           float64
	accuracy          float64
	discount          float64   // factor on the value of what comes after it
	discountedQueries float64   // number of its queries, later ones discounted
	gaps              []float64 // equally likely spans of size interarrival times, in positions
	workAdded         float64   // positions by which starting it moves the pool
}

// actions lists the batches that can be in time and are not dominated.
func (p *Pool) actions() []action {
	var out []action
	for _, m := range p.Models {
		for b, l := range m.Latency {
			if l <= p.SLO {
				out = append(out, action{
					variant: m.Variant, size: float64(b + 1), latency: l.Seconds(), accuracy: m.Accuracy,
				})
			}
		}
	}
	// A batch is dominated by one of the same size that takes no longer and is no less accurate.
	return slices.DeleteFunc(slices.Clone(out), func(a action) bool {
		return slices.ContainsFunc(out, func(b action) bool {
			return a.size == b.size && b.latency <= a.latency && b.accuracy >= a.accuracy &&
				(b.latency < a.latency || b.accuracy > a.accuracy || b.variant < a.variant)
		})
	})
}

// maxRate returns the queries/s that the pool serves with its fastest batches in time.
func (p *Pool) maxRate() float64 {
	most := 0.0
	for _, a := range p.actions() {
		most = max(most, a.size/a.latency)
	}
	return most * float64(p.Workers)
}

// same reports whether value functions for o hold for p; rates may differ.
func (p *Pool) same(o *Pool) bool {
	return p.Workers == o.Workers && p.SLO == o.SLO && p.LateShare == o.LateShare &&
		slices.EqualFunc(p.Models, o.Models, func(a, b Model) bool {
			return a.Variant == b.Variant && a.Accuracy == b.Accuracy && slices.Equal(a.Latency, b.Latency)
		})
}
