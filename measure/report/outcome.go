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
	Variant  serving.VariantID // that answered, or serving.None
	Outcome  serving.Outcome
	Arrived  serving.Time
	Done     serving.Time // when it was answered, dropped, refused, failed or cancelled
	Deadline serving.Time
	Queue    time.Duration // of served queries: time until the start of the last batch
	Items    int32         // at least 1
	Batch    int32         // items of its last batch; 0 when unknown or when it never ran
	Accuracy float64       // profiled accuracy of the variant in [0, 1]; 0 when unknown
	Label    int8          // LabelUnknown, LabelWrong or LabelRight
}

// Late reports whether the query was served after its deadline.
func (o *Outcome) Late() bool { return o.Outcome == serving.Served && o.Done > o.Deadline }

// AppInfo is what a report needs to know of an app.
type AppInfo struct {
	Name string
	// BestAccuracy is the accuracy of the app's most accurate variant, in (0, 1]; 0 when unknown. Normalised accuracy
	// and accuracy drop are relative to it.
	BestAccuracy float64
	SLO          serving.SLO // zero when unknown
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
	Threads time.Duration // time during which instances held CPU threads, summed over threads
	Percent time.Duration // time during which they held one per cent of an accelerator, summed over per cents
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
	// PlanFailures are the requests for plans that none came of.
	PlanFailures []PlanFailure
	Bound        *Bound // of the run; nil when unknown
}
