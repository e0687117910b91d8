package engine

import (
	"time"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// DecisionKind says what a driver has to do.
type DecisionKind uint8

// The kinds of decision.
const (
	// StartBatch: run Tasks on Variant of Instance.
	StartBatch DecisionKind = iota
	// EndQuery: the query has ended as Outcome says; answer its client.
	EndQuery
	// LaunchInstance: bring up Instance as Launch says and report each variant ready.
	LaunchInstance
	// StopInstance: nothing runs or waits on Instance any more; release it.
	StopInstance
	// LoadVariant: make Variant ready on Instance, too.
	LoadVariant
	// UnloadVariant: release Variant on Instance; nothing of it runs.
	UnloadVariant
	// RequestPlan: send the planner Request.
	RequestPlan
	// KeepInstance: Instance gets no more queries and stays loaded for now; nothing is to be done.
	KeepInstance
	// ResumeInstance: an instance that was kept gets queries again; nothing is to be done.
	ResumeInstance
	// KeepPlan: a request led to no plan, as Failure says, and the one in force stays; nothing is to be done.
	KeepPlan
	// LimitBatch: from now on batches of Variant on DeviceType have Items at most; nothing is to be done.
	LimitBatch
	// DoubtConfidence: from now on how sure Variant is of its answers counts for nothing, or again, as Reason says;
	// nothing is to be done.
	DoubtConfidence
)

var decisionNames = [...]string{
	"start-batch", "end-query", "launch-instance", "stop-instance", "load-variant", "unload-variant", "request-plan",
	"keep-instance", "resume-instance", "keep-plan", "limit-batch", "doubt-confidence",
}

// String returns the kind's name in journals.
func (k DecisionKind) String() string { return decisionNames[k] }

// Reason says why a decision was made.
type Reason uint8

// Reasons beyond those of batchers, whose numbers are kept.
const (
	Answered Reason = iota + 32
	QueueFull
	NoVariant
	TooLarge
	NothingLoaded
	UnknownApp
	BadQuery
	DeadlinePassed
	WaitedTooLong
	ModelFailed
	TriedTooOften
	ClientGone
	Planned
	Unplanned
	Relaunched
	Wanted
	Unwanted
	Requested
	AppClosed
	NoRoom
	Spare
	PlanningFailed
	PlanInvalid
	Ejected
	Displaced
	QueueTimeout
	OutOfMemory
	TooLong
	SureEnough
	OutOfTime
	InputsDiffer
	InputsAsMeasured
)

var reasonNames = [...]string{
	"answered", "the queue is full", "no variant of the app meets the accuracy or version asked for",
	"more items than any loaded variant takes in one batch",
	"nothing that could serve it is loaded", "no such app",
	"items must be at least 1 and the deadline after the arrival", "deadline cannot be met on arrival",
	"deadline can no longer be met", "the model failed on it", "failed on several instances", "cancelled by the client",
	"in the plan", "no longer in the plan", "lost, launched again", "wanted by the plan",
	"no longer wanted by the plan", "asked by the scaler",
	"the function was deleted", "no plan has an instance for it", "kept for the turn-off delay",
	"planning failed", "the plan is not valid", "others served what it failed on, launched again later",
	"the queue is full, and its tenant is beyond its share",
	"waited longer than its queue allows", "the device lacked memory for a larger batch",
	"longer than what any variant answers in time",
	"answered: a better answer is not worth its time", "answered: no time for a better answer",
	"inputs differ from those that it was measured with", "inputs are again as those that it was measured with",
}

// String returns the reason in words.
func (r Reason) String() string {
	if r < 32 {
		return batch.Reason(r).String()
	}
	return reasonNames[r-32]
}

// Unplaced reports whether a query ended for want of a place: no instance, or none with room for so many items.
func (r Reason) Unplaced() bool { return r == NothingLoaded || r == NoRoom || r == TooLarge }

// Task is the work of one query in a batch: all of its items at the stage, or some.
type Task struct {
	Query  serving.QueryID
	Items  int32
	Offset int32         // index of its first item at this stage; 0 unless a stage's input was split
	Turn   time.Duration // waited for earlier queries of its stream
	Route  time.Duration // then waited for an instance
	Queue  time.Duration // waited in total since the stage could begin
}

// StageTime reports an answered query at one stage. Where the stage's input was split, times, variant and batch are
// those of the part that ended last.
type StageTime struct {
	Stage   serving.StageID
	Variant serving.VariantID
	Items   int32        // of the query, all parts
	Length  int32        // of the longest of them; 0 where it is not known
	Batch   int32        // items of the batch
	Ready   serving.Time // its input was complete
	Started serving.Time // the batch began
	Done    serving.Time // the batch ended
}

// Launch describes an instance to bring up.
type Launch struct {
	Key        fleet.Key
	Stage      serving.StageID
	DeviceType serving.DeviceTypeID
	Variants   []serving.VariantID // the first is loaded first
	BatchLimit int                 // items, the largest over the variants
	Slots      int
	Cores      int
	// Accelerator is the index of the worker's accelerator that the part is of.
	Accelerator int32
	Part        int32 // 1 + the DeviceTypeID of the part of the worker that it gets; 0 for the whole worker
}

// Decision is one thing to do. Fields that do not belong to its Kind are zero.
type Decision struct {
	Kind    DecisionKind
	Reason  Reason
	Outcome serving.Outcome // EndQuery
	Late    bool            // EndQuery: served after its deadline
	// Retry is set on refusals where a later attempt may succeed.
	Retry bool
	// RetryAfter is when that is expected, from now; 0 where nothing tells.
	RetryAfter time.Duration
	// of StartBatch, EndQuery (that answered, or that failed on it), LoadVariant, UnloadVariant, LimitBatch,
	// DoubtConfidence
	Variant  serving.VariantID
	Instance serving.InstanceID
	// StartBatch; EndQuery of a query that was not served: where it was refused, waited or failed, or serving.None
	Stage serving.StageID
	// StartBatch: of the batch; EndQuery: of its last batch; LoadVariant, LimitBatch: the variant's batch limit
	Items    int32
	Batch    serving.BatchID // StartBatch; EndQuery: its last batch
	Query    serving.QueryID // EndQuery
	App      serving.AppID   // EndQuery
	Tenant   int32           // EndQuery: as in serving.Query
	Arrived  serving.Time    // EndQuery
	Deadline serving.Time    // EndQuery
	Brought  int32           // EndQuery: items the query came with
	Length   int32           // EndQuery of one that is TooLong: its length
	Longest  int32           // the longest that could be in time
	Expected time.Duration   // StartBatch: believed run time
	Queue    time.Duration   // EndQuery: waited at its last stage
	Accuracy float64         // EndQuery: product over the stages
	// EndQuery: Accuracy is that of answers of the Confidence that the query's first had; Second says that the answer
	// is its second
	Calibrated bool
	Second     bool
	Confidence float32
	// EndQuery of a served query of several stages: the stages that ran, in the order of App.Stages; valid until the
	// next Step
	Stages []StageTime
	Tasks  []Task  // StartBatch; valid until the next Step
	Launch *Launch // LaunchInstance
	// RequestPlan. It does not change any more: a planner may work on it while the engine takes further steps.
	Request    *plan.Request
	Failure    *PlanFailure         // KeepPlan
	DeviceType serving.DeviceTypeID // LimitBatch
}
