package bound

import (
	"iter"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Model is what a bound is computed from: machines, apps and run times.
type Model struct {
	Spec *serving.Spec
	// Time returns the mean run time of a batch of items (>= 1) of a variant on a machine, or part of one, of a device
	// type while n (>= 1) batches run there at once; ok is false for what cannot run.
	Time func(v serving.VariantID, d serving.DeviceTypeID, items, n int) (mean time.Duration, ok bool)
	// Chance returns the share of such batches that take at most within; nil where all take their mean.
	Chance func(v serving.VariantID, d serving.DeviceTypeID, items, n int, within time.Duration) float64
	// LongTime and LongChance are the same for batches that are padded to a length (Query.Length); nil where lengths do
	// not count.
	LongTime   func(v serving.VariantID, d serving.DeviceTypeID, items, n int, length int32) (time.Duration, bool)
	LongChance func(v serving.VariantID, d serving.DeviceTypeID, items, n int, within time.Duration,
		length int32) float64
	// Levels returns the largest useful number of batches at once; nil means one.
	Levels func(v serving.VariantID, d serving.DeviceTypeID) int
	// Speed is by device type the total believed time of the batches of a run (Time) divided by their actual time; nil
	// means 1.
	Speed []float64
}

// Query is one query of a load.
type Query struct {
	App         serving.AppID
	Arrived     serving.Time
	Deadline    serving.Time
	Items       []float64 // by position in App.Stages: that reach the stage
	Length      int32     // at the first stage; 0 for one that is not known
	MinAccuracy float64   // of every stage's variant
	Variant     serving.VariantID
	// Count is how many queries this one stands for; 0 means 1. A steady load is one query for each kind of query, that
	// arrives at 0 and stands for the rate times the longest time to a deadline.
	Count float64
}

func (q *Query) count() float64 {
	if q.Count > 0 {
		return q.Count
	}
	return 1
}

// long returns the model for batches that are padded to a length.
func (w *Model) long(length int32) *Model {
	if w.LongTime == nil || length <= 0 {
		return w
	}
	out := *w
	out.Time = func(v serving.VariantID, d serving.DeviceTypeID, items, n int) (time.Duration, bool) {
		return w.LongTime(v, d, items, n, length)
	}
	if w.Chance != nil {
		out.Chance = func(v serving.VariantID, d serving.DeviceTypeID, items, n int, within time.Duration) float64 {
			return w.LongChance(v, d, items, n, within, length)
		}
	}
	return &out
}

// chance returns Model.Chance or, without it, 1 if the mean is within and 0 if not.
func (w *Model) chance(v serving.VariantID, d serving.DeviceTypeID, items, n int, within time.Duration) float64 {
	if w.Chance != nil {
		return w.Chance(v, d, items, n, within)
	}
	if mean, ok := w.Time(v, d, items, n); ok && mean <= within {
		return 1
	}
	return 0
}

func (w *Model) levels(v serving.VariantID, d serving.DeviceTypeID) int {
	if w.Levels == nil {
		return 1
	}
	return max(w.Levels(v, d), 1)
}

func (w *Model) speed(d serving.DeviceTypeID) float64 {
	if int(d) < len(w.Speed) {
		return w.Speed[d]
	}
	return 1
}

// Rate returns the most items of a variant, in queries of at least size items, that a second of a device gives in time
// when a batch may take at most within: 0 where none can be in time.
func (w *Model) Rate(v serving.VariantID, d serving.DeviceTypeID, size int, within time.Duration) float64 {
	best := 0.0
	for _, rate := range w.inTime(v, d, size, within) {
		best = max(best, rate)
	}
	return best
}

// setting is a size of batch, in items, and how many of them run at once.
type setting struct{ items, level int }

// inTime yields the batches of at least size items that can be in time when they may take at most within, each with the
// items in time that a second of a device gives.
func (w *Model) inTime(
	v serving.VariantID, d serving.DeviceTypeID, size int, within time.Duration,
) iter.Seq2[setting, float64] {
	return func(yield func(setting, float64) bool) {
		for n := 1; n <= w.levels(v, d); n++ {
			for b := size; b <= w.Spec.Variants[v].MaxBatch; b++ {
				mean, ok := w.Time(v, d, b, n)
				if !ok || mean <= 0 {
					break
				}
				p := w.chance(v, d, b, n, within)
				if p <= leastChance {
					break // larger batches take longer
				}
				if !yield(setting{b, n}, p*float64(n*b)/mean.Seconds()*w.speed(d)) {
					return
				}
			}
		}
	}
}

// leastChance is the share of batches in time below which a batch size counts as never in time. The sum of all that is
// left out is below rounding errors.
const leastChance = 1e-12

// fits reports whether a machine, or part, of a device type has enough memory for a variant.
func (w *Model) fits(v serving.VariantID, d serving.DeviceTypeID) bool {
	limit := w.Spec.DeviceTypes[d].MemoryBytes
	return limit <= 0 || w.memory(v) <= limit
}

// memory returns the least memory that a variant takes: that with batches of one.
func (w *Model) memory(v serving.VariantID) int64 {
	x := &w.Spec.Variants[v]
	return x.MemoryBytes + x.ItemBytes
}

// kind is a type of machine and its uses: the whole machine, or parts.
type kind struct {
	device   serving.DeviceTypeID
	machines float64
	uses     []use
}

// use is a way to use a machine: all of it, or a part.
type use struct {
	device  serving.DeviceTypeID
	threads float64 // share of the machine's
	percent float64 // share of the machine's accelerators
}

// kinds lists the types of machine that there are workers of, with the parts that they can be cut into.
func (w *Model) kinds() []kind {
	counts := make([]float64, len(w.Spec.DeviceTypes))
	for _, x := range w.Spec.Workers {
		counts[x.DeviceType]++
	}
	var out []kind
	for d, n := range counts {
		if n > 0 {
			out = append(out, w.kind(serving.DeviceTypeID(d), n))
		}
	}
	return out
}

func (w *Model) kind(d serving.DeviceTypeID, machines float64) kind {
	t := &w.Spec.DeviceTypes[d]
	k := kind{device: d, machines: machines, uses: []use{{device: d, threads: 1, percent: 1}}}
	if t.Accelerators == 0 {
		k.uses[0].percent = 0
	}
	for p := range w.Spec.DeviceTypes {
		x := &w.Spec.DeviceTypes[p]
		if !x.Part || x.Cores > t.Cores || x.Percent > 100*t.Accelerators {
			continue
		}
		u := use{device: serving.DeviceTypeID(p), threads: float64(x.Cores) / float64(max(t.Cores, 1))}
		if t.Accelerators > 0 {
			u.percent = float64(x.Percent) / float64(100*t.Accelerators)
		}
		k.uses = append(k.uses, u)
	}
	return k
}

// paths lists the paths of an app whose variants reach the floors, each with its accuracy.
func (w *Model) paths(a serving.AppID, floor float64, pin serving.VariantID) (out []path) {
	app := &w.Spec.Apps[a]
	out = []path{{accuracy: 1}}
	for _, s := range app.Stages {
		var next []path
		for _, p := range out {
			for _, v := range w.Spec.Stages[s].Variants {
				x := &w.Spec.Variants[v]
				pinned := pin >= 0 && int(pin) < len(w.Spec.Variants) && w.Spec.Variants[pin].Stage == s
				switch {
				case pinned && v != pin:
				case x.Retired || !pinned && x.Accuracy < app.Floor:
				case x.Accuracy < floor && (pinned || !w.Spec.MayMeet(v, floor)):
					// Of the answers of others those that fall short count here, which makes the bound no less.
				default:
					longer := append(slices.Clone(p.variants), v)
					next = append(next, path{longer, p.accuracy * x.Accuracy})
				}
			}
		}
		out = next
	}
	return out
}

type path struct {
	variants []serving.VariantID // by position in App.Stages
	accuracy float64             // of a query that has items at every stage
}

// accuracy is that of a query served by a path. A stage that the query passes over has no part in it.
func (w *Model) accuracy(p *path, items []float64) float64 {
	if !slices.Contains(items, 0) {
		return p.accuracy
	}
	out := 1.0
	for at, v := range p.variants {
		if items[at] > 0 {
			out *= w.Spec.Variants[v].Accuracy
		}
	}
	return out
}
