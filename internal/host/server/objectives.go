package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// keptRuns is how many of the latest runs of a variant are kept, leastRuns from how many on they say something.
	keptRuns, leastRuns = 64, 10
	// farOff is how many times what was measured a run takes of a variant that was measured with other inputs.
	farOff = 10
)

// objectives watches how long batches take in a running server. It raises objectives that nobody asked for to what
// follows from that, and says once of a variant that it takes far longer than was measured. Objectives are never
// lowered: they would follow the load.
type objectives struct {
	service *service
	manager *functions.Manager // set before it runs
	log     *slog.Logger
	look    chan struct{} // of capacity 1: there is something new
	// function reports whether a variant is a function of a stage, which has no file that says what to measure it with.
	function func(serving.VariantID) bool

	mu   sync.Mutex
	runs map[serving.VariantID]*variantRuns
}

// variantRuns are the latest runs of a variant.
type variantRuns struct {
	name  string                  // of the variant at the first look: another one may take its identifier
	n     int                     // runs so far
	alone [keptRuns]time.Duration // that one item alone takes
	off   [keptRuns]float64       // how many times what was measured; 0 where nothing was
	took  time.Duration           // of the latest
	items int
	said  bool
}

func newObjectives(log *slog.Logger, function func(serving.VariantID) bool) *objectives {
	return &objectives{log: log, look: make(chan struct{}, 1), runs: make(map[serving.VariantID]*variantRuns),
		function: function}
}

// ran takes a batch that has ended well. It does not block. What was expected knows the lengths of the queries, what
// was measured does not.
func (o *objectives) ran(m profile.Profile, v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	took, expected time.Duration) {
	alone, off := took/time.Duration(max(items, 1)), 0.0
	if m != nil {
		one, all := m.Latency(v, d, 1, 1), m.Latency(v, d, items, concurrency)
		if one > 0 && all > 0 && one < profile.Unknown && all < profile.Unknown {
			alone = time.Duration(float64(took) / float64(all) * float64(one))
			off = float64(took) / float64(max(all, expected))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.runs[v]
	if x == nil {
		x = &variantRuns{}
		o.runs[v] = x
	}
	x.alone[x.n%keptRuns], x.off[x.n%keptRuns] = alone, off
	x.took, x.items = took, items
	if x.n++; x.n >= leastRuns {
		select {
		case o.look <- struct{}{}:
		default:
		}
	}
}

// drop drops what was seen of variants that others have the places of now.
func (o *objectives) drop(fresh []serving.VariantID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range fresh {
		delete(o.runs, v)
	}
}

// seenRuns is the profile of what was seen: what one item alone takes, by variant.
type seenRuns map[serving.VariantID]time.Duration

// Latency implements profile.Profile.
func (s seenRuns) Latency(v serving.VariantID, _ serving.DeviceTypeID, _, _ int) time.Duration {
	if took, ok := s[v]; ok {
		return took
	}
	return profile.Unknown
}

// Load implements profile.Profile.
func (seenRuns) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// Learner implements profile.Profile.
func (seenRuns) Learner() profile.Learner { return nil }

// correctEvery is the least time between two looks at what was seen.
const correctEvery = time.Second

// run acts on what is seen until ctx ends.
func (o *objectives) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.look:
		}
		o.forget()
		o.sayFarOff()
		if err := o.raise(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("a proposed objective cannot be raised to what is seen", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(correctEvery):
		}
	}
}

// forget drops what was seen of variants that are gone.
func (o *objectives) forget() {
	spec := o.service.spec.Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	for v, x := range o.runs {
		if int(v) >= len(spec.Variants) {
			continue // of a growth that is under way
		}
		y := &spec.Variants[v]
		if x.name == "" {
			x.name = y.Name
		}
		if y.Retired || x.name != y.Name || spec.Apps[appOf(spec, v)].Closed {
			delete(o.runs, v)
		}
	}
}

// seen returns what was seen often enough.
func (o *objectives) seen() seenRuns {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(seenRuns)
	for v, x := range o.runs {
		if x.n >= leastRuns {
			out[v] = Median(x.alone[:min(x.n, keptRuns)])
		}
	}
	return out
}

// raise raises proposed objectives that are shorter than what would be proposed by what was seen.
func (o *objectives) raise(ctx context.Context) error {
	seen := o.seen()
	if spec := o.service.spec.Load(); profile.Stretched(spec, seen, noMixes(spec)) == spec {
		return nil
	}
	return o.manager.Extend(ctx, func(x *functions.Extension) error {
		before := x.Spec
		after := profile.Stretched(before, seen, noMixes(before))
		if after == before {
			return nil
		}
		if err := x.Put(after, x.Measured); err != nil {
			return err
		}
		for a := range after.Apps {
			if was, is := before.Apps[a].SLO.Latency, after.Apps[a].SLO.Latency; was != is {
				o.log.Info("a proposed objective is raised to what is seen; `sluice config objectives` writes it",
					"app", after.Apps[a].Name, "from", was, "to", is)
			}
		}
		return nil
	})
}

// noMixes are the sizes of queries of one item each: larger ones take longer, and no objective follows from that.
func noMixes(spec *serving.Spec) []serving.Mix { return make([]serving.Mix, len(spec.Apps)) }

// sayFarOff says once of each variant that it takes far longer than was measured.
func (o *objectives) sayFarOff() {
	spec := o.service.spec.Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	for v, x := range o.runs {
		if x.said || x.n < leastRuns || int(v) >= len(spec.Variants) || o.function(v) {
			continue
		}
		times := Median(x.off[:min(x.n, keptRuns)])
		if times < farOff {
			continue
		}
		x.said = true
		o.log.Warn("a model takes far longer than was measured, perhaps since its inputs are larger than those that "+
			"it was measured with: model_warmup in its config.pbtxt says which to take",
			"app", spec.Apps[appOf(spec, v)].Name, "variant", spec.Variants[v].Name,
			"items", x.items, "takes", x.took.Round(time.Microsecond), "times", int(times))
	}
}

func appOf(spec *serving.Spec, v serving.VariantID) serving.AppID {
	return spec.Stages[spec.Variants[v].Stage].App
}

// Median is the middle of a list, 0 of an empty one.
func Median[T cmp.Ordered](list []T) (middle T) {
	if len(list) == 0 {
		return middle
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
