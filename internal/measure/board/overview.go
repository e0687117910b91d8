package board

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Schema is the version of the JSON that this package's types make. It rises when a field changes its meaning or goes.
const Schema = 1

// Window is what happened to the queries of an app, or of all, in a span of time. Ratios are nil where nothing counts.
type Window struct {
	SpanS      float64  `json:"span_s"`
	Offered    uint32   `json:"offered"`
	Served     uint32   `json:"served"`
	Late       uint32   `json:"late"`
	Dropped    uint32   `json:"dropped"`
	Refused    uint32   `json:"refused"`
	Failed     uint32   `json:"failed"`
	Cancelled  uint32   `json:"cancelled"`
	Rate       float64  `json:"offered_rate"` // queries/s
	Throughput float64  `json:"throughput"`   // served queries/s
	Violation  *float64 `json:"violation_ratio"`
	Accuracy   *float64 `json:"effective_accuracy"`
	Second     *float64 `json:"second_answers,omitempty"` // share of served queries; absent without any
	P50        *float64 `json:"latency_p50_ms"`
	P99        *float64 `json:"latency_p99_ms"`
	MeanBatch  *float64 `json:"mean_batch"` // items
	// Means over queries in ms: waiting for an instance, on it for a batch, and running; summed over stages by query
	// served where an app has several.
	Routed *float64 `json:"wait_instance_ms"`
	Held   *float64 `json:"wait_batch_ms"`
	Run    *float64 `json:"run_ms"`
}

func window(c *counts, span, objective float64) Window {
	w := Window{
		SpanS: span, Offered: c.offered, Served: c.served, Late: c.late, Dropped: c.dropped, Refused: c.refused,
		Failed: c.failed, Cancelled: c.cancelled,
	}
	if span > 0 {
		w.Rate, w.Throughput = rounded(float64(c.offered)/span), rounded(float64(c.served)/span)
	}
	w.Violation = ratio(float64(c.violations()), float64(c.judged()))
	w.Accuracy = ratio(c.accuracy, float64(c.served))
	if c.second > 0 {
		w.Second = ratio(float64(c.second), float64(c.served))
	}
	if c.served > 0 {
		p50, p99 := rounded(c.percentile(50, objective)), rounded(c.percentile(99, objective))
		w.P50, w.P99 = &p50, &p99
	}
	w.MeanBatch = ratio(float64(c.items), float64(c.batches))
	w.Routed = ratio(c.routed.Seconds()*1e3, float64(c.tasks))
	w.Held = ratio(c.held.Seconds()*1e3, float64(c.tasks))
	w.Run = ratio(c.runs.Seconds()*1e3, float64(c.ended))
	return w
}

func objectiveMS(a *serving.App) float64 { return a.SLO.Latency.Seconds() * 1e3 }

// ratio returns a quotient, or nil where there is none.
func ratio(of, by float64) *float64 {
	if by == 0 {
		return nil
	}
	x := rounded(of / by)
	return &x
}

// rounded keeps five digits: no reader sees more, and JSON stays short.
func rounded(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// AppNow is how an app does.
type AppNow struct {
	Name        string  `json:"name"`
	ObjectiveMS float64 `json:"slo_ms"`
	Percentile  float64 `json:"slo_percentile"`
	Proposed    bool    `json:"slo_proposed,omitempty"` // nobody asked for the objective
	Floor       float64 `json:"accuracy_floor,omitempty"`
	Target      float64 `json:"accuracy_target,omitempty"`
	Best        float64 `json:"best_accuracy"`
	Stages      int     `json:"stages"`
	Closed      bool    `json:"closed,omitempty"`
	Waiting     int32   `json:"waiting"` // queries that have not ended
	Now         Window  `json:"now"`     // the latest NowSpan
	Hour        Window  `json:"hour"`    // the latest hour
	// Burn is how fast the error budget is used up: the share of violations over that which the objective allows. At 1
	// it is used up exactly. BurnHour is that of the latest hour.
	Burn     *float64     `json:"burn"`
	BurnHour *float64     `json:"burn_hour"`
	Forecast *AppForecast `json:"forecast,omitempty"`
}

// AppForecast is what the plan in force expects of an app. Fields that it does not say are nil.
type AppForecast struct {
	Demand   *float64 `json:"demand"`   // queries/s that it was made for
	Capacity *float64 `json:"capacity"` // queries/s that it carries
	Shed     *float64 `json:"shed"`     // queries/s that it knowingly does not serve
	Late     *float64 `json:"violation_ratio"`
	// Band is twice the standard error of Late, from below and from above.
	Band     *[2]float64 `json:"violation_band"`
	Accuracy *float64    `json:"effective_accuracy"`
}

// Overview is the state of the whole.
type Overview struct {
	Schema int     `json:"schema"`
	NowS   float64 `json:"now_s"`
	Now    Window  `json:"now"`
	Hour   Window  `json:"hour"`
	// CostPerHour is what the workers that hold something cost now, in $/h; CostPerMillion that of the latest minute
	// for a million served queries, in $.
	CostPerHour    float64   `json:"cost_per_hour"`
	CostPerMillion *float64  `json:"cost_per_million"`
	Utilisation    *float64  `json:"utilisation"` // of the latest NowSpan
	Workers        int       `json:"workers"`
	WorkersUsed    int       `json:"workers_used"` // that hold something
	Instances      int       `json:"instances"`
	Batches        int       `json:"batches"` // that run
	Plan           *PlanLine `json:"plan"`    // in force
	Apps           []AppNow  `json:"apps"`
}

// NowSpan is the span that "now" means.
const NowSpan = 10 * time.Second

// Overview returns the present state.
func (b *Board) Overview() *Overview {
	b.log.Lock()
	defer b.log.Unlock()
	out := &Overview{
		Schema: Schema, NowS: b.now.Seconds(), Workers: len(b.spec.Workers), Instances: len(b.machines.instances),
		Batches: b.machines.batches, CostPerHour: rounded(b.machines.dollars), Apps: []AppNow{},
	}
	for w := range b.machines.workers {
		if len(b.machines.workers[w].instances) > 0 {
			out.WorkersUsed++
		}
	}
	now, nowSpan := b.sum(NowSpan)
	minute, _ := b.sum(time.Minute)
	hour, hourSpan := b.sum(time.Hour)
	force := b.plans.inForce()
	if force != nil {
		line := b.planLine(force)
		out.Plan = &line
	}
	var allNow, allHour, allMinute counts
	for a := range b.spec.Apps {
		app := &b.spec.Apps[a]
		n, h := &now.apps[a], &hour.apps[a]
		allNow.add(n)
		allHour.add(h)
		allMinute.add(&minute.apps[a])
		x := AppNow{
			Name: app.Name, ObjectiveMS: objectiveMS(app), Percentile: app.SLO.Percentile, Proposed: app.SLO.Proposed,
			Floor: app.Floor, Target: app.AccuracyTarget, Best: b.spec.BestAccuracy(serving.AppID(a)),
			Stages: len(app.Stages), Closed: app.Closed, Waiting: b.waiting[a],
			Now:  window(n, nowSpan, objectiveMS(app)),
			Hour: window(h, hourSpan, objectiveMS(app)), Burn: burn(n, app), BurnHour: burn(h, app),
		}
		if force != nil {
			x.Forecast = b.forecastOf(force, a)
		}
		out.Apps = append(out.Apps, x)
	}
	allNow.add(&now.gone)
	allHour.add(&hour.gone)
	allMinute.add(&minute.gone)
	out.Now, out.Hour = window(&allNow, nowSpan, 0), window(&allHour, hourSpan, 0)
	out.CostPerMillion = ratio(minute.dollars*1e6, float64(allMinute.served))
	out.Utilisation = ratio(now.busy, now.slots)
	return out
}

// burn returns the burn rate of an app's error budget; nil where nothing has ended or the objective allows nothing.
func burn(c *counts, a *serving.App) *float64 {
	allowed := a.SLO.Allowed()
	if allowed <= 0 || c.judged() == 0 {
		return nil
	}
	return ratio(float64(c.violations())/float64(c.judged()), allowed)
}

// forecastOf returns what a plan says of an app of the present; nothing where it knew another one in its place.
func (b *Board) forecastOf(p *planned, a int) *AppForecast {
	f := &AppForecast{}
	if a < len(p.spec.Apps) && p.spec.Apps[a].Generation != b.spec.Apps[a].Generation {
		return f
	}
	return p.forecastOf(a)
}

func (p *planned) forecastOf(a int) *AppForecast {
	f := &AppForecast{}
	at := func(list []float64) *float64 {
		if a >= len(list) {
			return nil
		}
		x := rounded(list[a])
		return &x
	}
	f.Demand, f.Capacity, f.Shed = at(p.plan.Demand), at(p.plan.Capacity), at(p.plan.Shed)
	c := &p.plan.Forecast
	f.Late, f.Accuracy = at(c.Late), at(c.Accurate)
	if f.Late != nil && c.Queries > 0 {
		f.Band = &[2]float64{math.Max(0, *f.Late-2*c.Deviation), math.Min(1, *f.Late+2*c.Deviation)}
	}
	return f
}

// sum adds up the latest span, the running second included, and returns how much of it there was, in s. Spans beyond
// the ring of seconds are counted in whole minutes.
func (b *Board) sum(span time.Duration) (*block, float64) {
	out := &block{}
	out.reset(0, len(b.spec.Apps), len(b.spec.Variants), len(b.spec.Stages))
	second := b.live.at
	from := second - int64(span/time.Second) + 1
	if int64(span/time.Second) <= int64(len(b.fine.blocks)) {
		b.fine.since(from, func(x *block) { out.add(x) })
	} else {
		from = from / 60 * 60
		b.rough.since(from/60, func(x *block) { out.add(x) })
		out.add(b.live)
	}
	return out, max(b.now.Seconds()-float64(max(0, from)), 0)
}

// Past returns what happened to each app in the latest span, by name.
func (b *Board) Past(span serving.Time) map[string]Window {
	b.log.Lock()
	defer b.log.Unlock()
	out := make(map[string]Window, len(b.spec.Apps))
	sum, seconds := b.sum(max(time.Second, time.Duration(span).Round(time.Second)))
	for a := range b.spec.Apps {
		app := &b.spec.Apps[a]
		if _, there := out[app.Name]; !there || !app.Closed {
			out[app.Name] = window(&sum.apps[a], seconds, objectiveMS(app))
		}
	}
	return out
}
