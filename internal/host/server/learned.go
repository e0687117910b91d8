package server

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// firstRuns is after how many runs of an unmeasured model what they took is believed; again after twice as many, up
	// to lastRuns.
	firstRuns, lastRuns = 5, 320
	// maxSample bounds the inputs of one request that are kept to measure a model with, and maxSamples those of all.
	maxSample, maxSamples = 16 << 20, 256 << 20
)

// unmeasured is a model that ran with no input that could be guessed. What it takes is learned from its queries, and
// the first that is answered is a sample to measure it with.
type unmeasured struct {
	cell   host.VariantOn
	how    unrefined
	device serving.DeviceTypeID
	took   map[profiler.Size][]time.Duration
	n      int // runs seen
	next   int // runs after which they are believed
}

// await notes that a model cannot be measured before a query of it was answered. r.mu is held.
func (r *refiner) await(cell host.VariantOn, d serving.DeviceTypeID, x unrefined) {
	if x.sample != nil || slices.ContainsFunc(r.waiting, func(u *unmeasured) bool { return u.cell == cell }) {
		return // it fails with a real query, too
	}
	r.waiting = append(r.waiting, &unmeasured{cell: cell, how: x, device: d, next: firstRuns,
		took: make(map[profiler.Size][]time.Duration)})
	r.waits.Store(true)
}

// ran takes a batch that has ended well. It does not block.
func (r *refiner) ran(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	took time.Duration) {
	if !r.waits.Load() {
		return
	}
	place := placesOf(r.service.spec.Load(), []serving.VariantID{v})[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.waiting {
		if u.device != d || !slices.Contains(u.how.variants, place) || u.n >= lastRuns {
			continue
		}
		size := profiler.Size{Batch: items, Concurrency: concurrency}
		u.took[size] = append(u.took[size], took)
		if u.n++; u.n == u.next {
			u.next *= 2
			f := profiler.Observed(u.cell.Variant, u.cell.Device, u.took)
			r.fresh = append(r.fresh, refined{u.how.variants, u.cell.Variant, f})
			select {
			case r.learned <- struct{}{}:
			default:
			}
		}
	}
}

// learn plans with what was learned from queries, until ctx ends. It does not wait for the server to be idle.
func (r *refiner) learn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.learned:
		}
		r.apply(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(correctEvery):
		}
	}
}

// take takes a request that was answered: a model that could not be measured for want of inputs is measured with it.
func (r *refiner) take(q *dataplane.Request, _ *dataplane.Response) {
	if !r.waits.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	spec := r.service.spec.Load()
	for _, u := range r.waiting {
		if u.how.sample != nil || len(spec.Apps[q.App].Stages) > 1 ||
			!slices.ContainsFunc(u.how.variants, func(v variantPlace) bool {
				return v.is(spec, u.cell.Variant) && appOf(spec, v.id) == q.App
			}) {
			continue
		}
		size := 0
		for _, t := range q.Inputs {
			size += len(t.Data)
		}
		if size > maxSample || r.sampled+size > maxSamples {
			return
		}
		sample := make([]tensor.Tensor, len(q.Inputs))
		for k, t := range q.Inputs {
			t.Shape, t.Data = slices.Clone(t.Shape), slices.Clone(t.Data)
			sample[k] = t
		}
		r.sampled += size
		u.how.sample = &dataplane.Portion{Items: q.Items, Inputs: sample}
		r.rest[u.cell] = u.how
	}
}

// sampleBatch makes a batch of so many items of a request: of its first item, or of all of it for a model that takes a
// query whole.
func sampleBatch(p *dataplane.Portion, batched bool, items int) ([]dataplane.Portion, error) {
	out := make([]dataplane.Portion, items)
	for k := range out {
		out[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1}
		for _, t := range p.Inputs {
			if batched {
				var err error
				if t, err = t.Rows(0, 1); err != nil {
					return nil, err
				}
			}
			out[k].Inputs = append(out[k].Inputs, t)
		}
	}
	return out, nil
}
