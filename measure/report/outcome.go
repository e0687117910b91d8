package report

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Labels of an answer, where the right one is known.
const (
	LabelUnknown int8 = -1
	LabelWrong   int8 = 0
	LabelRight   int8 = 1
)

// Outcome is how one query ended, all that the metrics need to know of it.
type Outcome struct {
	Query    serving.QueryID
	App      serving.AppID
	Variant  serving.VariantID // that answered, or serving.None
	Outcome  serving.Outcome
	Arrived  serving.Time
	Done     serving.Time // answered, dropped, refused ...
	Deadline serving.Time
	Queue    time.Duration // waited before its last batch started; of served queries
	Items    int32         // inputs it carried, >= 1
	Batch    int32         // items of the last batch it was in; 0 when unknown or never run
	Accuracy float64       // profiled accuracy of the answer in [0, 1]; 0 when unknown
	Label    int8          // whether the answer was right: LabelUnknown, LabelWrong or LabelRight
}

// Late says that a served query missed its deadline.
func (o *Outcome) Late() bool { return o.Outcome == serving.Served && o.Done > o.Deadline }

// AppInfo is what a report says of an app besides what its queries did.
type AppInfo struct {
	Name string
	// BestAccuracy is the accuracy of the app's most accurate variant, in (0, 1], the yardstick of normalised accuracy
	// and accuracy drop; 0 when unknown.
	BestAccuracy float64
	SLO          serving.SLO // zero when unknown
	Usage        *Usage      // of the app's own instances; nil when unknown or shared
}

// Usage is what a run consumed.
type Usage struct {
	Dollars float64       // price per hour integrated over the time each worker was up
	Busy    time.Duration // slot time in which a batch ran, summed over slots
	Slots   time.Duration // slot time that existed, summed over slots
	Threads time.Duration // thread time that instances held, on parts of machines or whole ones
	Percent time.Duration // time in which they held one per cent of an accelerator, summed over per cents
}

// Meta describes a run.
type Meta struct {
	Name string // such as "live" or "simulated"
	Seed uint64
	// Duration is the span in which queries were offered, the T of every rate. 0 means up to the last outcome.
	Duration time.Duration
	Usage    *Usage // of the whole run; nil when unknown
	// Variants names variants by their id; one without a name is reported as "variant N".
	Variants []string
	// PlanFailures are the requests for plans that none came of.
	PlanFailures []PlanFailure
}
