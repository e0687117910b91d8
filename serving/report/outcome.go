package report

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Label of an answer: whether it is right, where that is known.
const (
	LabelUnknown int8 = -1
	LabelWrong   int8 = 0
	LabelRight   int8 = 1
)

// Outcome is the end of one query, with all that metrics need.
type Outcome struct {
	Query    serving.QueryID
	App      serving.AppID
	Tenant   int32             // as in serving.Query; 0 for none
	Variant  serving.VariantID // that answered, or serving.None
	Stage    serving.StageID   // where it was refused, waited last or failed, or serving.None
	Outcome  serving.Outcome
	Arrived  serving.Time
	Done     serving.Time // when it was answered, dropped, refused, failed or cancelled
	Deadline serving.Time
	Queue    time.Duration // of served queries: time until the start of the last batch
	Inside   time.Duration // of served queries: time with the server, of Done - Arrived; 0 when unknown
	Items    int32         // at least 1
	Batch    int32         // items of its last batch; 0 when unknown or when it never ran
	Accuracy float64       // profiled accuracy of the variant in [0, 1]; 0 when unknown
	// Calibrated says that Accuracy is that of answers of the same confidence (serving.Confidence): it may be above
	// that of the app's best variant.
	Calibrated bool
	Label      int8 // LabelUnknown, LabelWrong or LabelRight: whether the whole query was answered rightly
	// JudgedItems is of how many items the right answer is known, RightItems how many of them were answered rightly. 0
	// of 0 means that the query counts as one item, by its Label.
	RightItems, JudgedItems int32
}

// Late reports whether the query was served after its deadline.
func (o *Outcome) Late() bool { return o.Outcome == serving.Served && o.Done > o.Deadline }

// judged returns RightItems and JudgedItems, of one item where they are not given.
func (o *Outcome) judged() (right, items int64) {
	switch {
	case o.JudgedItems > 0:
		return int64(o.RightItems), int64(o.JudgedItems)
	case o.Label == LabelRight:
		return 1, 1
	case o.Label == LabelWrong:
		return 0, 1
	}
	return 0, 0
}

// Best returns the accuracy that a query's is held against: that of the app's best variant. A query that passes over a
// stage of a graph misses that stage's errors, so its own accuracy may be the higher one. It is then its own best, and
// no ratio exceeds 1. One that is sure of its answer is above the best as others are below.
func (o *Outcome) Best(ofApp float64) float64 {
	if o.Calibrated {
		return ofApp
	}
	return max(ofApp, o.Accuracy)
}

// AppInfo is what a report needs to know of an app.
type AppInfo struct {
	Name string
	// BestAccuracy is the accuracy of the app's most accurate variant, in (0, 1]; 0 when unknown. Normalised accuracy
	// and accuracy drop are relative to it.
	BestAccuracy float64
	SLO          serving.SLO // zero when unknown
	Target       float64     // mean accuracy of answers to keep; 0 for none
	Weight       float64     // importance relative to the other apps; 0 means 1
	Usage        *Usage      // of the app's own instances; nil when unknown or shared
}

func (a *AppInfo) weight() float64 {
	if a.Weight > 0 {
		return a.Weight
	}
	return 1
}

// Usage is the resources that a run used.
type Usage struct {
	Dollars float64       // price per hour, integrated over the time that each worker was up
	Busy    time.Duration // time during which a batch ran, summed over slots
	Slots   time.Duration // time during which slots existed, summed over slots
	// Wasted is the part of Busy that queries took which missed their objective: of each batch their part by items.
	Wasted  time.Duration `json:",omitempty"`
	Threads time.Duration // time during which instances held CPU threads, summed over threads
	Percent time.Duration // time during which they held one per cent of an accelerator, summed over per cents
	Span    time.Duration `json:",omitempty"` // over which the dollars were counted; 0 means the report's duration
}

// Meta describes a run.
type Meta struct {
	Name string // such as "live" or "simulated"
	Seed uint64
	// Duration is the span in which queries were offered, over which rates are computed. 0 means up to the last
	// outcome.
	Duration time.Duration
	Usage    *Usage // of the whole run; nil when unknown
	// names by VariantID; one without a name is reported as "variant N"
	Variants []string
	// PlanFailures are the requests for plans that failed.
	PlanFailures []PlanFailure
	Bound        *Bound // of the run; nil when unknown
	// Tenants are by the number of serving.Query, so that the first stands for queries without a tenant; nil for none.
	Tenants []TenantInfo
}
