package board

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Series is an app over time, a value for every step. Lists have equal lengths; a value that needs a served query is
// nil in a step without one.
type Series struct {
	StepS      int        `json:"step_s"`
	At         []int64    `json:"at_s"` // start of each step
	Offered    []uint32   `json:"offered"`
	Served     []uint32   `json:"served"`
	Violations []uint32   `json:"violations"`
	Cancelled  []uint32   `json:"cancelled"`
	Accuracy   []*float64 `json:"effective_accuracy"`
	P50        []*float64 `json:"latency_p50_ms"`
	P99        []*float64 `json:"latency_p99_ms"`
	Routed     []*float64 `json:"wait_instance_ms"`
	Held       []*float64 `json:"wait_batch_ms"`
	Run        []*float64 `json:"run_ms"`
	MeanBatch  []*float64 `json:"mean_batch"`
	// Latency counts served queries by bucket of latency (see BucketStarts): of each step, pairs of bucket and count.
	Latency [][]uint32 `json:"latency"`
	// Variants counts what ended on each variant, by its name.
	Variants map[string][]uint32 `json:"variants"`
	Dollars  []float64           `json:"dollars"` // of the whole server
	Busy     []*float64          `json:"utilisation"`
}

// newSeries returns a series without a step. Its lists are empty and not nil, so that JSON has lists.
func newSeries() *Series {
	return &Series{
		StepS: 1, At: []int64{}, Offered: []uint32{}, Served: []uint32{}, Violations: []uint32{}, Cancelled: []uint32{},
		Accuracy: []*float64{}, P50: []*float64{}, P99: []*float64{}, Routed: []*float64{}, Held: []*float64{},
		Run: []*float64{}, MeanBatch: []*float64{}, Latency: [][]uint32{}, Variants: make(map[string][]uint32),
		Dollars: []float64{}, Busy: []*float64{},
	}
}

// BucketStarts returns the lower ends of the buckets of latency, in ms.
func BucketStarts() []float64 {
	out := make([]float64, Buckets)
	for b := range out {
		out[b] = rounded(bucketStart(b))
	}
	return out
}

// Series returns an app between two instants in s since the start, or all apps where app is serving.None. With a step
// of 60 it is by minute and reaches back a day, else by second, without the second that runs.
func (b *Board) Series(app serving.AppID, from, to int64, step int) *Series {
	b.log.Lock()
	defer b.log.Unlock()
	out := newSeries()
	r, unit := b.fine, int64(1)
	if step >= 60 {
		r, unit, out.StepS = b.rough, 60, 60
	}
	var names []serving.VariantID
	if b.known(app) {
		for _, st := range b.spec.Apps[app].Stages {
			names = append(names, b.spec.Stages[st].Variants...)
		}
	}
	var before int64 = -1
	r.since(from/unit, func(x *block) {
		if x.at*unit > to || x == b.live {
			return
		}
		for before >= 0 && before+1 < x.at && len(out.At) < len(r.blocks) { // an empty time
			before++
			empty := block{at: before}
			out.add(&empty, app, names, unit, b)
		}
		before = x.at
		out.add(x, app, names, unit, b)
	})
	return out
}

func (s *Series) add(x *block, app serving.AppID, names []serving.VariantID, unit int64, b *Board) {
	var c counts
	for a := range x.apps {
		if app == serving.None || int(app) == a {
			c.add(&x.apps[a])
		}
	}
	if app == serving.None {
		c.add(&x.gone)
	}
	objective := 0.0
	if b.known(app) {
		objective = objectiveMS(&b.spec.Apps[app])
	}
	w := window(&c, float64(unit), objective)
	s.At = append(s.At, x.at*unit)
	s.Offered = append(s.Offered, c.offered)
	s.Served = append(s.Served, c.served)
	s.Violations = append(s.Violations, c.violations())
	s.Cancelled = append(s.Cancelled, c.cancelled)
	s.Accuracy = append(s.Accuracy, w.Accuracy)
	s.P50 = append(s.P50, w.P50)
	s.P99 = append(s.P99, w.P99)
	s.Routed = append(s.Routed, w.Routed)
	s.Held = append(s.Held, w.Held)
	s.Run = append(s.Run, w.Run)
	s.MeanBatch = append(s.MeanBatch, w.MeanBatch)
	s.Latency = append(s.Latency, sparse(&c))
	s.Dollars = append(s.Dollars, rounded(x.dollars))
	s.Busy = append(s.Busy, ratio(x.busy, x.slots))
	for _, v := range names {
		n := uint32(0)
		if int(v) < len(x.variants) {
			n = x.variants[v]
		}
		name := b.spec.Variants[v].Name
		s.Variants[name] = append(s.Variants[name], n)
	}
}

// sparse returns pairs of bucket and count.
func sparse(c *counts) []uint32 {
	out := []uint32{}
	for b, n := range c.latency {
		if n > 0 {
			out = append(out, uint32(b), n)
		}
	}
	return out
}

// Second is what the latest whole second adds to the series of all apps.
type Second struct {
	At   int64              `json:"at_s"`
	Apps map[string]*Series `json:"apps"`
}

// Seconds returns the series of every app from a second on, at most the latest n.
func (b *Board) Seconds(from int64, n int64) *Second {
	b.log.Lock()
	apps := slices.Clone(b.spec.Apps)
	end := b.live.at
	b.log.Unlock()
	out := &Second{At: end, Apps: make(map[string]*Series, len(apps))}
	for a := range apps {
		if !apps[a].Closed {
			out.Apps[apps[a].Name] = b.Series(serving.AppID(a), max(from, end-n), end, 1)
		}
	}
	return out
}

// App returns the id of an app by its name, of the open one if there is one.
func (b *Board) App(name string) (serving.AppID, bool) {
	b.log.Lock()
	defer b.log.Unlock()
	found := serving.AppID(serving.None)
	for a := range b.spec.Apps {
		if x := &b.spec.Apps[a]; x.Name == name && (found == serving.None || !x.Closed) {
			found = serving.AppID(a)
		}
	}
	return found, found != serving.None
}
