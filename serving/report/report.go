package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Report is all numbers of a run, as plain data. A number that the run does not know is absent, also in JSON: its
// pointer is nil, never 0.
type Report struct {
	Name      string  `json:"name,omitempty"`
	Seed      uint64  `json:"seed,omitempty"`
	DurationS float64 `json:"duration_s"`
	BucketS   float64 `json:"bucket_s"`
	WindowS   float64 `json:"window_s"`
	Overall   Summary `json:"overall"`
	Apps      []App   `json:"apps"`
	// Variants has the variants that served a query, by rising id.
	Variants []VariantUse `json:"variants,omitempty"`
	Series   []Point      `json:"series"` // of all apps together
	// Tenants are those of the configuration, in its order, of a run that knows them.
	Tenants []Tenant `json:"tenants,omitempty"`
	// PlanFailures are the requests for plans that failed; nil if the run does not know of them.
	PlanFailures []PlanFailure `json:"plan_failures,omitempty"`
	// Bound is what no run could have passed, of a run that knows it.
	Bound *Bound `json:"bound,omitempty"`
}

// VariantUse is the queries that one variant served.
type VariantUse struct {
	Name     string  `json:"name"`
	Served   int64   `json:"served"`
	Share    float64 `json:"share"`              // of the served queries whose variant is known
	Accuracy float64 `json:"accuracy,omitempty"` // mean profiled accuracy
}

// App is the report of one app.
type App struct {
	Name string `json:"name"`
	// SLOMS and SLOPercentile are the objective. Attained is the latency of served queries at that percentile, in ms.
	SLOMS         float64  `json:"slo_ms,omitempty"`
	SLOPercentile float64  `json:"slo_percentile,omitempty"`
	AttainedMS    *float64 `json:"attained_ms,omitempty"`
	// Target is the app's accuracy_target, and Missed how much of it the mean accuracy of the answers leaves out, 0
	// where it is kept. Both are absent where the app has no target, and Missed where nothing was served.
	Target *float64 `json:"accuracy_target,omitempty"`
	Missed *float64 `json:"accuracy_missed,omitempty"`
	Summary
	Variants []VariantUse `json:"variants,omitempty"`
	Series   []Point      `json:"series,omitempty"`
}

// Summary has the metrics of a run or of one app. Ratios and accuracies are fractions in [0, 1].
type Summary struct {
	Offered   int64 `json:"offered"` // all queries
	Served    int64 `json:"served"`
	InTime    int64 `json:"in_time"` // served by their deadline
	Late      int64 `json:"late"`    // served after it
	Dropped   int64 `json:"dropped"`
	Refused   int64 `json:"refused"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Items     int64 `json:"items"` // of served queries

	OfferedRate float64 `json:"offered_rate"` // queries/s
	Throughput  float64 `json:"throughput"`   // served queries/s
	Goodput     float64 `json:"goodput"`      // queries/s served in time
	ItemRate    float64 `json:"item_rate"`    // served items/s

	ViolationRatio float64 `json:"violation_ratio"`
	FinishRate     float64 `json:"finish_rate"`

	// Utility is the sum of weight * accuracy / best accuracy over the queries served in time, divided by the sum of
	// the weights of all queries. UtilityBound is the most that any run could have had, UtilityRatio the part of it
	// that was reached; they are of whole runs.
	Utility      *float64 `json:"utility,omitempty"`
	UtilityBound *float64 `json:"utility_bound,omitempty"`
	UtilityRatio *float64 `json:"utility_ratio,omitempty"`

	EffectiveAccuracy      *float64 `json:"effective_accuracy,omitempty"`
	SatisfiedAccuracy      *float64 `json:"satisfied_accuracy,omitempty"`
	NormalisedAccuracy     *float64 `json:"normalised_accuracy,omitempty"`
	MaxAccuracyDrop        *float64 `json:"max_accuracy_drop,omitempty"`
	NormalisedAccuracyDrop *float64 `json:"normalised_accuracy_drop,omitempty"`
	// MeasuredAccuracy is by item, as profiled accuracies are. MeasuredQueryAccuracy is by query, which is right when
	// all of its items are; absent where no query has several.
	MeasuredAccuracy      *float64 `json:"measured_accuracy,omitempty"`
	MeasuredQueryAccuracy *float64 `json:"measured_query_accuracy,omitempty"`
	Labelled              int64    `json:"labelled,omitempty"` // served queries whose right answer is known

	Latency Percentiles `json:"latency"`
	Queue   Percentiles `json:"queue"` // until the last batch begins
	// Run is from then until the server has the answer, and Outside what is left of the latency: on the way, in the
	// client, and until it is sent. Both are absent unless Options.Parts asks for them, and servers tell.
	Run     *Percentiles `json:"run,omitempty"`
	Outside *Percentiles `json:"outside,omitempty"`

	MeanBatch *float64 `json:"mean_batch,omitempty"` // items

	CostPerHour    *float64 `json:"cost_per_hour,omitempty"`    // $/h
	CostBound      *float64 `json:"cost_bound,omitempty"`       // $/h: the least for the same service; of whole runs
	CostPerMillion *float64 `json:"cost_per_million,omitempty"` // $ for a million served queries
	Utilisation    *float64 `json:"utilisation,omitempty"`
	// WastedRatio is the share of the machine time that went to queries which missed their objective; absent where none
	// did.
	WastedRatio *float64 `json:"wasted_ratio,omitempty"`
}

// Percentiles are nearest-rank percentiles in milliseconds. Exact says that all values were kept; otherwise the error
// is less than 0.1 %.
type Percentiles struct {
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
	Exact bool    `json:"exact"`
}

// Point is one bucket of the time series. Offered and Utility are of queries by their
// arrival, all else by their outcome. Fields
// that need a served query are nil in a bucket without one.
type Point struct {
	AtS        float64  `json:"at_s"` // start of the bucket, in s
	Offered    int64    `json:"offered"`
	Served     int64    `json:"served"`
	Late       int64    `json:"late"`
	Dropped    int64    `json:"dropped"`
	Refused    int64    `json:"refused"`
	Failed     int64    `json:"failed"`
	Cancelled  int64    `json:"cancelled"`
	Accuracy   *float64 `json:"accuracy,omitempty"`
	Measured   *float64 `json:"measured_accuracy,omitempty"`
	Normalised *float64 `json:"normalised_accuracy,omitempty"`
	Utility    *float64 `json:"utility,omitempty"` // of the queries that arrived in the bucket
	P50        *float64 `json:"p50_ms,omitempty"`
	P99        *float64 `json:"p99_ms,omitempty"`
	MeanBatch  *float64 `json:"mean_batch,omitempty"`
	ByVariant  []int64  `json:"by_variant,omitempty"` // served queries by index in the report's Variants
}

// Violations returns the bucket's queries that missed their objective.
func (p *Point) Violations() int64 { return p.Late + p.Dropped + p.Refused + p.Failed }

// Report computes the report of all outcomes so far. Add may be called afterwards.
func (r *Recorder) Report(m Meta) *Report {
	span := m.Duration
	if span <= 0 {
		span = time.Duration(r.last - r.opt.Warmup)
	}
	window := int(max(1, math.Round(float64(r.opt.Window)/float64(r.opt.Bucket))))
	rep := &Report{
		Name: m.Name, Seed: m.Seed, DurationS: span.Seconds(), BucketS: r.opt.Bucket.Seconds(),
		WindowS: (time.Duration(window) * r.opt.Bucket).Seconds(), Apps: make([]App, len(r.apps)),
		PlanFailures: m.PlanFailures, Bound: m.Bound,
	}
	all := newAppRecord(r.opt.Exact * max(1, len(r.apps)))
	known := len(r.apps) > 0
	for i := range r.apps {
		a, info := &r.apps[i], &r.info[i]
		known = known && (info.BestAccuracy > 0 || a.outcomes[serving.Served] == 0)
		out := &rep.Apps[i]
		out.Name = info.Name
		out.SLOMS, out.SLOPercentile = ms(info.SLO.Latency), info.SLO.Percentile
		out.Summary = a.summary(span, window, info.Usage, info.BestAccuracy > 0)
		if info.SLO.Percentile > 0 && a.latency.n > 0 {
			out.AttainedMS = ptr(ms(a.latency.percentile(info.SLO.Percentile)))
		}
		out.setTarget(info.Target)
		out.Variants = a.variants(m.Variants)
		out.Series = a.series(r.opt.Bucket, info.BestAccuracy > 0)
		all.merge(a)
	}
	usage := m.Usage
	if usage == nil {
		usage = r.sumUsage()
	}
	rep.Overall = all.summary(span, window, usage, known)
	rep.Overall.beside(m.Bound)
	rep.Variants = all.variants(m.Variants)
	rep.Tenants = r.ofTenants(m.Tenants)
	rep.Series = all.series(r.opt.Bucket, known)
	return rep
}

// sumUsage adds up the usage of all apps. It returns nil when that of one app is unknown.
func (r *Recorder) sumUsage() *Usage {
	if len(r.info) == 0 {
		return nil
	}
	var u Usage
	for _, a := range r.info {
		if a.Usage == nil {
			return nil
		}
		u.Dollars += a.Usage.Dollars
		u.Busy += a.Usage.Busy
		u.Slots += a.Usage.Slots
		u.Wasted += a.Usage.Wasted
		u.Threads += a.Usage.Threads
		u.Percent += a.Usage.Percent
		u.Span = max(u.Span, a.Usage.Span)
	}
	return &u
}

func (a *appRecord) merge(o *appRecord) {
	a.totals.merge(&o.totals)
	a.latency.merge(&o.latency)
	a.queue.merge(&o.queue)
	a.run.merge(&o.run)
	a.outside.merge(&o.outside)
	if n := len(o.use) - len(a.use); n > 0 {
		a.use = append(a.use, make([]use, n)...)
	}
	for v, u := range o.use {
		a.use[v].served += u.served
		a.use[v].accuracy += u.accuracy
	}
	for i := range o.buckets {
		to, from := a.bucket(i), &o.buckets[i]
		to.offered += from.offered
		to.served += from.served
		to.accuracy += from.accuracy
		to.best += from.best
		to.normalised += from.normalised
		to.weighed += from.weighed
		to.gained += from.gained
		to.done.merge(&from.done)
		if to.latency.limit == 0 {
			to.latency.limit = bucketExact
		}
		to.latency.merge(&from.latency)
		if n := len(from.variants) - len(to.variants); n > 0 {
			to.variants = append(to.variants, make([]int64, n)...)
		}
		for v, n := range from.variants {
			to.variants[v] += n
		}
	}
}

func (a *appRecord) summary(span time.Duration, window int, usage *Usage, normal bool) Summary {
	t := &a.totals
	served := t.outcomes[serving.Served]
	s := Summary{
		Offered: t.offered(), Served: served, InTime: served - t.late, Late: t.late,
		Dropped: t.outcomes[serving.Dropped], Refused: t.outcomes[serving.Refused], Failed: t.outcomes[serving.Failed],
		Cancelled: t.outcomes[serving.Cancelled], Items: t.items, Labelled: t.right + t.wrong,
		Latency: percentiles(&a.latency), Queue: percentiles(&a.queue),
	}
	if a.run.n > 0 {
		run, outside := percentiles(&a.run), percentiles(&a.outside)
		s.Run, s.Outside = &run, &outside
	}
	if sec := span.Seconds(); sec > 0 {
		s.OfferedRate = float64(s.Offered) / sec
		s.Throughput = float64(served) / sec
		s.Goodput = float64(s.InTime) / sec
		s.ItemRate = float64(t.items) / sec
	}
	if judged := s.Offered - s.Cancelled; judged > 0 {
		s.ViolationRatio = float64(t.violations()) / float64(judged)
		s.FinishRate = float64(s.InTime) / float64(judged)
	}
	if t.weighed > 0 && normal {
		s.Utility = ptr(t.gained / t.weighed)
	}
	if served > 0 && t.accuracy > 0 {
		s.EffectiveAccuracy = ptr(t.accuracy / float64(served))
		if normal {
			s.NormalisedAccuracy = ptr(t.normalised / float64(served))
			drop, ndrop := a.worstWindow(window)
			s.MaxAccuracyDrop, s.NormalisedAccuracyDrop = &drop, &ndrop
		}
	}
	if s.InTime > 0 && t.satisfied > 0 {
		s.SatisfiedAccuracy = ptr(t.satisfied / float64(s.InTime))
	}
	if s.Labelled > 0 {
		s.MeasuredAccuracy = ptr(float64(t.rightItems) / float64(t.judgedItems))
		if t.judgedItems != s.Labelled {
			s.MeasuredQueryAccuracy = ptr(float64(t.right) / float64(s.Labelled))
		}
	}
	if t.runs > 0 {
		s.MeanBatch = ptr(float64(t.runItems) / t.runs)
	}
	if usage != nil {
		if h := cmp.Or(usage.Span, span).Hours(); h > 0 {
			s.CostPerHour = ptr(usage.Dollars / h)
		}
		if served > 0 {
			s.CostPerMillion = ptr(usage.Dollars / float64(served) * 1e6)
		}
		if usage.Slots > 0 {
			s.Utilisation = ptr(float64(usage.Busy) / float64(usage.Slots))
		}
		if usage.Wasted > 0 && usage.Busy > 0 {
			s.WastedRatio = ptr(float64(usage.Wasted) / float64(usage.Busy))
		}
	}
	return s
}

// worstWindow returns the largest accuracy drop over windows of window buckets by arrival, absolute and normalised.
func (a *appRecord) worstWindow(window int) (drop, normalised float64) {
	for from := 0; from < len(a.buckets); from += window {
		var n int64
		var acc, best, norm float64
		for i := from; i < min(from+window, len(a.buckets)); i++ {
			b := &a.buckets[i]
			n += b.served
			acc += b.accuracy
			best += b.best
			norm += b.normalised
		}
		if n > 0 {
			drop = max(drop, (best-acc)/float64(n))
			normalised = max(normalised, 1-norm/float64(n))
		}
	}
	return drop, normalised
}

func (a *appRecord) variants(names []string) []VariantUse {
	total := int64(0)
	for _, u := range a.use {
		total += u.served
	}
	var out []VariantUse
	for v, u := range a.use {
		if u.served == 0 {
			continue
		}
		name := fmt.Sprintf("variant %d", v)
		if v < len(names) {
			name = names[v]
		}
		out = append(out, VariantUse{
			Name: name, Served: u.served, Share: float64(u.served) / float64(total),
			Accuracy: u.accuracy / float64(u.served),
		})
	}
	return out
}

func (a *appRecord) series(size time.Duration, normal bool) []Point {
	out := make([]Point, len(a.buckets))
	for i := range a.buckets {
		b := &a.buckets[i]
		t := &b.done
		p := Point{
			AtS: (time.Duration(i) * size).Seconds(), Offered: b.offered, Served: t.outcomes[serving.Served],
			Late:    t.late,
			Dropped: t.outcomes[serving.Dropped], Refused: t.outcomes[serving.Refused],
			Failed:    t.outcomes[serving.Failed],
			Cancelled: t.outcomes[serving.Cancelled],
		}
		if p.Served > 0 {
			if t.accuracy > 0 {
				p.Accuracy = ptr(t.accuracy / float64(p.Served))
				if normal {
					p.Normalised = ptr(t.normalised / float64(p.Served))
				}
			}
			p.P50 = ptr(ms(b.latency.percentile(50)))
			p.P99 = ptr(ms(b.latency.percentile(99)))
		}
		if b.weighed > 0 && normal {
			p.Utility = ptr(b.gained / b.weighed)
		}
		if t.judgedItems > 0 {
			p.Measured = ptr(float64(t.rightItems) / float64(t.judgedItems))
		}
		if t.runs > 0 {
			p.MeanBatch = ptr(float64(t.runItems) / t.runs)
		}
		if len(b.variants) > 0 {
			for v, u := range a.use {
				if u.served == 0 {
					continue
				}
				n := int64(0)
				if v < len(b.variants) {
					n = b.variants[v]
				}
				p.ByVariant = append(p.ByVariant, n)
			}
		}
		out[i] = p
	}
	return out
}

func percentiles(d *dist) Percentiles {
	return Percentiles{
		Mean: ms(d.mean()), P50: ms(d.percentile(50)), P90: ms(d.percentile(90)), P95: ms(d.percentile(95)),
		P99: ms(d.percentile(99)), P999: ms(d.percentile(99.9)), Max: ms(time.Duration(d.max)), Exact: d.exact(),
	}
}

// PercentilesOf returns the exact percentiles of values, which are not changed.
func PercentilesOf(values []time.Duration) Percentiles {
	d := dist{limit: max(1, len(values))}
	for _, v := range values {
		d.add(int64(v))
	}
	return percentiles(&d)
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func ptr(f float64) *float64 { return &f }

// JSON writes the report to w as indented JSON. Equal reports give equal bytes.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
