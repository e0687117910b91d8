// Package steps is the one log of what an engine's steps bring: the latest queries, batches and decisions. The owner
// of the engine writes it. Views read it: metrics (internal/measure/telemetry), the dashboard (internal/measure/board),
// and the explanations of this package.
//
// Its memory is bounded: everything is a ring.
package steps

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Options configure a Log. Zero fields mean the defaults.
type Options struct {
	// Decisions is the number of latest decisions that are kept; default 4096.
	Decisions int
	// Queries is the number of latest queries that can be explained; default 16384.
	Queries int
	// Batches is how many of the latest batches that have ended are kept; default 8192.
	Batches int
	// Only is the one query that is kept; 0 keeps all.
	Only serving.QueryID
}

// Log has the latest history of one engine. Only the owner of the engine may call Observe and Weigh. Readers lock the
// log, or call methods that do.
type Log struct {
	sync.Mutex
	only      serving.QueryID
	spec      *serving.Spec
	queries   []Query // by QueryID modulo its length
	answered  serving.QueryID
	places    map[serving.InstanceID]place
	running   map[serving.BatchID]*Batch
	ended     []*Batch                        // in the order of their ends
	n         int                             // that have ended
	weighed   map[serving.InstanceID]*Weighed // of the latest batch that an instance was given
	decisions decisions
	views     []func(*Step)

	// Used by the owner alone.
	step       Step
	ballooning []float64 // factors by StageID that Expected of batches contains; nil for none
	batches    slab[Batch]
	tasks      slab[engine.Task]
}

// place is where an instance is.
type place struct {
	worker serving.WorkerID
	device serving.DeviceTypeID // of the part of the worker that it has
}

// New returns the Log of an engine with this spec. It keeps spec.
func New(spec *serving.Spec, o Options) *Log {
	return &Log{
		only: o.Only, spec: spec, queries: make([]Query, cmp.Or(max(o.Queries, 0), 16384)),
		ended: make([]*Batch, cmp.Or(max(o.Batches, 0), 8192)), places: make(map[serving.InstanceID]place),
		running: make(map[serving.BatchID]*Batch), weighed: make(map[serving.InstanceID]*Weighed),
		decisions: newDecisions(cmp.Or(max(o.Decisions, 0), 4096)),
	}
}

// Step is a step of the engine with the batches that it began and ended. Nothing of it may be kept but the batches.
type Step struct {
	Now            serving.Time
	In             []engine.Input
	Out            []engine.Decision
	ended, started []*Batch // by the position in In and Out
}

// Ended returns the batch that an input of kind engine.BatchDone ended, by its position; nil for one that is not known.
func (s *Step) Ended(k int) *Batch { return s.ended[k] }

// Started returns the batch that a decision of kind engine.StartBatch started, by its position.
func (s *Step) Started(k int) *Batch { return s.started[k] }

// View has see called with every step, with the log locked: views share its lock. It must be called before Observe.
func (l *Log) View(see func(*Step)) { l.views = append(l.views, see) }

// Observe takes a step of the engine. It does not keep the slices.
func (l *Log) Observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	l.Lock()
	defer l.Unlock()
	s := &l.step
	s.Now, s.In, s.Out = now, in, out
	s.ended, s.started = cleared(s.ended, len(in)), cleared(s.started, len(out))
	for k := range in {
		switch x := &in[k]; x.Kind {
		case engine.SpecGrown:
			l.grow(x.Growth.Spec)
		case engine.QueryArrived:
			l.arrived(&x.Query)
		case engine.BatchDone:
			s.ended[k] = l.done(now, x)
		case engine.InstanceChanged:
			if x.Change == engine.Lost {
				delete(l.weighed, x.Instance)
			}
		}
	}
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.StartBatch:
			s.started[k] = l.start(now, d)
		case engine.LaunchInstance:
			l.places[d.Instance] = place{d.Launch.Key.Worker, d.Launch.DeviceType}
		case engine.StopInstance:
			l.stop(now, d.Instance)
		case engine.EndQuery:
			l.end(now, d)
		case engine.RequestPlan:
			l.ballooning = d.Request.Ballooning
		}
		l.decisions.add(now, l.spec, &out[k], s.started[k])
	}
	for _, see := range l.views {
		see(s)
	}
	s.In, s.Out = nil, nil
}

func cleared(s []*Batch, n int) []*Batch {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// grow takes a spec that has grown. What is known keeps its names. Nothing else is to be asked about an app, a stage or
// a variant whose place is used again.
func (l *Log) grow(spec *serving.Spec) {
	fresh := spec.FreshSince(l.spec)
	l.ballooning = slices.Clone(l.ballooning)
	serving.Forget(l.ballooning, fresh.Stages, 1)
	if fresh.Within(l.spec) {
		for k := range l.queries {
			q := &l.queries[k]
			if slices.Contains(fresh.Apps, q.App) {
				q.App = serving.None
			}
			if slices.Contains(fresh.Variants, q.Variant) {
				q.Variant = serving.None
			}
		}
		l.forgetBatches(&fresh)
	}
	l.spec = spec
}

// forgetBatches drops the batches that have ended of stages and variants whose places are used again.
func (l *Log) forgetBatches(fresh *serving.Fresh) {
	kept := make([]*Batch, 0, len(l.ended))
	l.Ended(func(b *Batch) bool {
		if !slices.Contains(fresh.Stages, b.Stage) && !slices.Contains(fresh.Variants, b.Variant) {
			kept = append(kept, b)
		}
		return true
	})
	clear(l.ended)
	slices.Reverse(kept)
	l.n = copy(l.ended, kept)
}

// stop forgets an instance that is gone: its batches never report an end.
func (l *Log) stop(now serving.Time, id serving.InstanceID) {
	delete(l.weighed, id)
	delete(l.places, id)
	var cut []*Batch
	for _, b := range l.running {
		if b.Instance == id {
			cut = append(cut, b)
		}
	}
	slices.SortFunc(cut, func(a, b *Batch) int { return cmp.Compare(a.ID, b.ID) })
	for _, b := range cut {
		l.close(now, b)
	}
}

// slab gives out slices of long arrays, so that a step seldom allocates.
type slab[T any] struct{ free []T }

func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.free = make([]T, max(n, 256))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
