package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// applyEvery is the least time between two plans with what was measured meanwhile, and applyShare which part of
	// what is left to measure that is at least: a plan of a thousand models takes seconds.
	applyEvery, applyShare = 10 * time.Second, 16
	// longestWait is how long a measurement waits for a moment without queries before it is put off.
	longestWait, lookAgain = 30 * time.Second, 2 * time.Millisecond
	// stopWait is how long a server that stops waits for the run of a model that is measured.
	stopWait = 5 * time.Second
)

// errBusy is the error of a measurement that found no moment without queries.
var errBusy = errors.New("the server is not idle")

// refiner measures, while a server is idle, the models that it began with a look at or an assumption of. What is
// measured takes the place of what was believed, and is kept for later starts.
type refiner struct {
	service  *service
	manager  *functions.Manager
	backends *machines.Backends
	log      *slog.Logger
	file     string // that keeps the profile; "" for none

	mu      sync.Mutex
	rest    map[host.VariantOn]unrefined
	known   *profiler.File
	fresh   []refined // measured, and not in force yet
	applied time.Time
	waiting []*unmeasured // for a query to learn from
	sampled int           // bytes of requests that are kept

	waits   atomic.Bool   // there are some
	learned chan struct{} // of capacity 1: something was learned from queries
}

// unrefined is a model that is not measured well on a device type.
type unrefined struct {
	opened   *host.Opened
	variants []variantPlace // of one name: the same model, in several apps
	// config returns the configuration of the measurement, and what to call with its result.
	config func(context.Context) (profiler.Config, func(*profiler.File))
	// sample is a request that was answered; nil measures with what the model's repository gives, or with guesses.
	sample *dataplane.Portion
}

// refined is a model that was measured.
type refined struct {
	variants []variantPlace
	name     string // "" where the variants have several
	file     *profiler.File
}

// newRefiner returns what measures the rest of a profile. Its service, manager and
// backends are set before it measures.
func newRefiner(p *host.Profiled, log *slog.Logger) *refiner {
	r := &refiner{log: log, file: p.ToKeep(), known: p.Begun().File, applied: time.Now(),
		rest: make(map[host.VariantOn]unrefined), learned: make(chan struct{}, 1)}
	sites, _ := p.Fleet().Sites()
	for _, x := range sites {
		for _, v := range x.Variants {
			cell := host.VariantOn{Variant: p.Spec().Variants[v].Name, Device: p.Spec().DeviceTypes[x.Device].Name}
			if !p.Begun().Rest[cell] {
				continue
			}
			r.add(cell, x.Device, unrefined{
				opened: p.Opened, variants: append(r.rest[cell].variants, variantPlace{id: v}),
				config: func(ctx context.Context) (profiler.Config, func(*profiler.File)) {
					return p.Fleet().Measuring(ctx, r.backends, x, "")
				}}, p.Begun().File.Failure(cell.Variant, cell.Device))
		}
	}
	return r
}

// add has one more model measured. failed says why a look at it failed, if it did: then queries are waited for.
func (r *refiner) add(cell host.VariantOn, d serving.DeviceTypeID, x unrefined, failed *profiler.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed != nil && failed.Batch < 2 {
		r.await(cell, d, x)
		return
	}
	r.rest[cell] = x
}

// next returns what is to be done next; nil for nothing.
func (r *refiner) next() func(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.rest); len(r.fresh) > 0 && (n == 0 || applyShare*len(r.fresh) >= n &&
		time.Since(r.applied) >= applyEvery) {
		return r.apply
	}
	if len(r.rest) == 0 {
		return nil
	}
	cell := slices.MinFunc(slices.Collect(maps.Keys(r.rest)), host.VariantOn.Compare)
	x := r.rest[cell]
	return func(ctx context.Context) { r.refine(ctx, cell, x) }
}

// refine measures a variant on a device type. One that cannot be measured keeps what is believed of it.
func (r *refiner) refine(ctx context.Context, cell host.VariantOn, x unrefined) {
	c, end := x.config(ctx)
	c.Spec, c.Await = r.service.spec.Load(), r.awaitIdle
	places := slices.DeleteFunc(slices.Clone(x.variants), func(v variantPlace) bool {
		return !v.is(c.Spec, cell.Variant)
	})
	c.Variants = nil
	for _, v := range places {
		c.Variants = append(c.Variants, v.id)
	}
	if tune := x.opened.Options().Tune(); tune != nil {
		tune(&c)
	}
	if x.sample != nil {
		batched := c.Tensors
		c.RandomBatch = func(_ *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error) {
			_, rows, err := batched(v)
			if err != nil {
				return nil, err
			}
			return sampleBatch(x.sample, rows, items)
		}
	}
	f, err := r.run(ctx, c)
	end(f)
	if ctx.Err() != nil || errors.Is(err, errBusy) {
		return
	}
	if err == nil && !f.Has(cell.Variant, cell.Device) {
		err = f.Failed()
	}
	if err == nil {
		if kept := x.opened.Keep(&c, c.Variants[0], f); kept != nil {
			r.log.Warn("what was measured is not kept for later runs", "variant", cell.Variant, "error", kept)
		}
	} else if !errors.Is(err, errReplaced) {
		r.log.Info("a model keeps what is believed of it, since it cannot be measured", "variant", cell.Variant,
			"reason", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rest, cell)
	switch {
	case err == nil:
		r.fresh = append(r.fresh, refined{places, cell.Variant, f})
		r.forget(cell)
	case errors.Is(err, errReplaced):
		r.forget(cell)
	default:
		r.await(cell, c.DeviceType, x)
	}
}

// forget no longer waits for queries of a model. r.mu is held.
func (r *refiner) forget(cell host.VariantOn) {
	r.waiting = slices.DeleteFunc(r.waiting, func(u *unmeasured) bool { return u.cell == cell })
	r.waits.Store(len(r.waiting) > 0)
}

// run measures, in its turn among functions. When ctx ends it waits for the run of the model to end, too.
func (r *refiner) run(ctx context.Context, c profiler.Config) (f *profiler.File, err error) {
	if len(c.Variants) == 0 {
		return nil, errReplaced
	}
	begun, done := make(chan struct{}), make(chan struct{})
	var failed error
	var measured *profiler.File
	err = r.manager.Measure(ctx, func() {
		close(begun)
		defer close(done)
		measured, failed = profiler.Run(ctx, c, nil)
	})
	if err == nil {
		return measured, failed
	}
	select {
	case <-begun:
		select {
		case <-done:
		case <-time.After(stopWait):
		}
	default:
	}
	return nil, err
}

// errReplaced is the error of a model that was replaced or removed meanwhile.
var errReplaced = errors.New("it was replaced")

// variantPlace is a variant by its place in the tables, as long as no other has it.
type variantPlace struct {
	id         serving.VariantID
	generation uint32
}

func placesOf(spec *serving.Spec, list []serving.VariantID) []variantPlace {
	out := make([]variantPlace, len(list))
	for k, v := range list {
		out[k] = variantPlace{v, spec.Variants[v].Generation}
	}
	return out
}

// is reports whether the variant is still there, is open and has a name.
func (p variantPlace) is(spec *serving.Spec, name string) bool {
	if int(p.id) >= len(spec.Variants) {
		return false
	}
	v := &spec.Variants[p.id]
	return v.Name == name && v.Generation == p.generation && !v.Retired && !spec.Apps[appOf(spec, p.id)].Closed
}

// isOf returns what tells the places of some variants from others.
func isOf(spec *serving.Spec, variants ...serving.VariantID) func(variantPlace) bool {
	places := placesOf(spec, variants)
	return func(p variantPlace) bool { return slices.Contains(places, p) }
}

// pends reports whether a variant is still to be measured.
func (r *refiner) pends(spec *serving.Spec, v serving.VariantID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := isOf(spec, v)
	for _, x := range r.rest {
		if slices.ContainsFunc(x.variants, is) {
			return true
		}
	}
	return slices.ContainsFunc(r.waiting, func(u *unmeasured) bool {
		return slices.ContainsFunc(u.how.variants, is)
	})
}

// drop has variants not measured any more. It reports whether there was something to measure, or to plan with.
func (r *refiner) drop(spec *serving.Spec, variants []serving.VariantID) (some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := isOf(spec, variants...)
	for cell, x := range r.rest {
		if !slices.ContainsFunc(x.variants, is) {
			continue
		}
		some = true
		if x.variants = slices.DeleteFunc(slices.Clone(x.variants), is); len(x.variants) == 0 {
			delete(r.rest, cell)
		} else {
			r.rest[cell] = x
		}
	}
	for _, u := range slices.Clone(r.waiting) {
		if slices.ContainsFunc(u.how.variants, is) {
			some = true
			if u.how.variants = slices.DeleteFunc(slices.Clone(u.how.variants), is); len(u.how.variants) == 0 {
				r.forget(u.cell)
			}
		}
	}
	return some || slices.ContainsFunc(r.fresh, func(x refined) bool { return slices.ContainsFunc(x.variants, is) })
}

// awaitIdle returns when no query is served, or with errBusy.
func (r *refiner) awaitIdle(ctx context.Context) error {
	for until := time.Now().Add(longestWait); !r.service.isIdle(); {
		if time.Now().After(until) {
			return errBusy
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// apply plans with what was measured from now on.
func (r *refiner) apply(ctx context.Context) {
	r.mu.Lock()
	fresh := r.fresh
	r.fresh, r.applied = nil, time.Now()
	r.mu.Unlock()
	err := r.manager.Extend(ctx, func(x *functions.Extension) error {
		measured := x.Measured
		for k := range fresh {
			var err error
			if measured, err = fresh[k].over(x.Spec, measured); err != nil {
				return err
			}
		}
		return x.Put(x.Spec, measured)
	})
	if err != nil && ctx.Err() == nil {
		r.log.Warn("plans go on with what was believed before", "error", err)
	}
	r.save(fresh)
}

// close keeps what was measured and is not in force yet.
func (r *refiner) close() {
	r.mu.Lock()
	fresh := r.fresh
	r.fresh = nil
	r.mu.Unlock()
	r.save(fresh)
}

// save adds measurements to the profile, and keeps it.
func (r *refiner) save(fresh []refined) {
	if len(fresh) == 0 || r.known == nil {
		return
	}
	all := []*profiler.File{r.known}
	for _, x := range fresh {
		all = append(all, x.file)
	}
	known, err := profiler.Merge(all...)
	if err == nil {
		r.known = known
		if r.file != "" {
			err = known.WriteFile(r.file)
		}
	}
	if err != nil {
		r.log.Warn("the profile is not kept", "error", err)
		return
	}
	r.log.Info("models were measured", "models", len(fresh), "profile", r.file)
}

// over returns measurements of a spec with what was measured of the variants in the place of earlier ones.
func (x *refined) over(spec *serving.Spec, m serving.Measurements) (serving.Measurements, error) {
	for _, place := range x.variants {
		v := place.id
		name := cmp.Or(x.name, spec.Variants[v].Name)
		if !place.is(spec, name) {
			continue
		}
		got, err := x.file.MeasurementsOf(spec, v)
		if err != nil {
			return m, err
		}
		m = m.Replaced(func(o serving.VariantID, d serving.DeviceTypeID) bool {
			return o == v && x.file.Has(name, spec.DeviceTypes[d].Name)
		}, got)
	}
	return m, nil
}
