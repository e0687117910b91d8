package telemetry

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// VariantStats has the counters of one variant since the start, as Triton's statistics extension defines them. Times
// are in nanoseconds.
type VariantStats struct {
	Variant                            serving.VariantID
	LastMS                             int64 // time of the last answer, ms since 1970
	InferenceCount, ExecutionCount     uint64
	Success, SuccessNS, Fail, FailNS   uint64
	Queue, QueueNS, Compute, ComputeNS uint64
	Batches                            []BatchStats // by rising size
}

// BatchStats has the counters of one batch size. NS is run time in nanoseconds.
type BatchStats struct{ Size, Count, NS uint64 }

// stats counts under the lock of the log.
type stats struct {
	spec     *serving.Spec
	apps     []VariantStats // by AppID: of a composed app as a whole, without a variant
	variants []VariantStats
	sizes    [][]BatchStats // by VariantID, then by size
}

func newStats(spec *serving.Spec) *stats {
	s := &stats{spec: &serving.Spec{}}
	s.grow(spec)
	return s
}

func (s *stats) grow(spec *serving.Spec) {
	fresh := spec.FreshSince(s.spec)
	s.spec = spec
	s.apps = serving.Renew(s.apps, fresh.Apps, func(serving.AppID) VariantStats {
		return VariantStats{Variant: serving.None}
	})
	s.variants = serving.Renew(s.variants, fresh.Variants, func(v serving.VariantID) VariantStats {
		return VariantStats{Variant: v}
	})
	s.sizes = serving.Renew(s.sizes, fresh.Variants, func(v serving.VariantID) []BatchStats {
		return make([]BatchStats, spec.Variants[v].MaxBatch+1)
	})
}

func (s *stats) observe(step *steps.Step) {
	for k := range step.In {
		b := step.Ended(k)
		if b == nil {
			continue
		}
		v := &s.variants[b.Variant]
		v.ExecutionCount++
		v.ComputeNS += uint64(b.Took)
		v.Compute++
		if s.isMember(b.Variant) && b.Result == engine.OK {
			v.Success += uint64(len(b.Tasks))
			v.SuccessNS += uint64(len(b.Tasks)) * uint64(b.Took)
			v.InferenceCount += uint64(b.Items)
			v.LastMS = time.Now().UnixMilli()
		}
		if n := int(b.Items); n < len(s.sizes[b.Variant]) {
			z := &s.sizes[b.Variant][n]
			z.Count++
			z.NS += uint64(b.Took)
		}
	}
}

func (s *stats) outcome(o *report.Outcome) {
	if o.App < 0 || int(o.App) >= len(s.apps) {
		return
	}
	v := &s.apps[o.App]
	if several := s.spec.Apps[o.App].Composed(); several && o.Outcome == serving.Served {
		v.ExecutionCount++
	} else if !several {
		at := o.Variant
		if at < 0 || int(at) >= len(s.variants) {
			// It was refused or given up before any variant ran it: for its client the model has failed.
			at = s.anyVariant(o.App)
		}
		v = &s.variants[at]
	}
	if o.Outcome != serving.Served {
		v.failed(o)
		if v.Variant == serving.None && o.Variant != serving.None {
			s.variants[o.Variant].failed(o)
		}
		return
	}
	v.Success++
	v.InferenceCount += uint64(o.Items)
	v.SuccessNS += uint64(o.Done - o.Arrived)
	v.Queue++
	v.QueueNS += uint64(o.Queue)
	v.LastMS = time.Now().UnixMilli()
}

// anyVariant returns a variant of an app's first stage, the first that is not retired if there is one.
func (s *stats) anyVariant(a serving.AppID) serving.VariantID {
	all := s.spec.Stages[s.spec.Source(a)].Variants
	at := slices.IndexFunc(all, func(v serving.VariantID) bool { return !s.spec.Variants[v].Retired })
	return all[max(at, 0)]
}

// failed counts a query that was not served.
func (v *VariantStats) failed(o *report.Outcome) {
	v.Fail++
	v.FailNS += uint64(o.Done - o.Arrived)
}

// isMember reports whether a variant is of a composed app. Its queries are counted when their batches end, and the
// app's when they are answered.
func (s *stats) isMember(v serving.VariantID) bool {
	return s.spec.Apps[s.spec.Stages[s.spec.Variants[v].Stage].App].Composed()
}

// Statistics returns the counters of all variants of an app, by rising id. Those of a composed app follow on its own,
// which are of no variant.
func (t *Telemetry) Statistics(app serving.AppID) []VariantStats {
	t.log.Lock()
	defer t.log.Unlock()
	s := t.stats
	var out []VariantStats
	if s.spec.Apps[app].Composed() {
		out = append(out, s.apps[app])
	}
	for v := range s.variants {
		if s.spec.Stages[s.spec.Variants[v].Stage].App != app {
			continue
		}
		x := s.variants[v]
		for size, z := range s.sizes[v] {
			if z.Count > 0 {
				z.Size = uint64(size)
				x.Batches = append(x.Batches, z)
			}
		}
		out = append(out, x)
	}
	return out
}
