package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// InputKind says what happened.
type InputKind uint8

// The kinds of input, in the order in which those of one instant are applied: completions, machine changes, instance
// changes, prices, growth, recollections, streams that are opened, then those that are closed, plans, arrivals,
// cancellations; timers come after all of them. Within a kind the smaller identifier comes first. Both drivers use
// Sort, so that ties are broken the same way in both.
const (
	BatchDone InputKind = iota
	MachineChanged
	InstanceChanged
	PriceChanged
	SpecGrown
	IdleRecalled
	StreamOpened
	StreamClosed
	PlanReady
	PlanFailed
	QueryArrived
	QueryCancelled
)

var inputNames = [...]string{
	"batch-done", "machine-changed", "instance-changed", "price-changed", "spec-grown", "idle-recalled",
	"stream-opened", "stream-closed", "plan-ready", "plan-failed", "query-arrived", "query-cancelled",
}

// String returns the kind's name in journals.
func (k InputKind) String() string { return inputNames[k] }

// Result is how a batch ended.
type Result uint8

// Results of a batch.
const (
	OK       Result = iota
	Broken          // the model refused it: each of its queries runs again alone
	Exceeded        // the device lacked memory for it: its queries run again in smaller batches
)

// Change is an event in the life of an instance.
type Change uint8

// Changes of an instance.
const (
	VariantReady Change = iota // Variant is warm; the first one makes the instance ready
	LoadFailed                 // Variant could not be loaded
	Lost                       // the instance is gone with everything that ran on it
)

var changeNames = [...]string{"variant-ready", "load-failed", "lost"}

// String returns the change's name in journals.
func (c Change) String() string { return changeNames[c] }

// MachineChange is an event in the life of the machine behind a worker, where machines are had from elsewhere.
type MachineChange uint8

// Changes of a machine.
const (
	MachineLeaving MachineChange = iota // it still works, and will soon be gone: plans leave it out
	MachineMissing                      // it cannot be had, For so long: plans leave it out
	MachineStays                        // neither of both is true any more
	MachineCame                         // it came after Took from being asked for
)

var machineNames = [...]string{"leaving", "missing", "stays", "came"}

// String returns the change's name in journals.
func (c MachineChange) String() string { return machineNames[c] }

// ParseMachineChange is the inverse of String.
func ParseMachineChange(name string) (MachineChange, bool) {
	at := slices.Index(machineNames[:], name)
	return MachineChange(max(at, 0)), at >= 0
}

// Input is one fact. It is a flat union: which fields count depends on Kind, the others are zero, and Variant is
// serving.None where it does not count. The constructors below make each kind.
//
//	BatchDone        Batch, Instance, Took, Result; Emitted and Lengths where the stage feeds others; Confidence where
//	                 it is known
//	MachineChanged   Worker, Machine; For of MachineMissing, Took of MachineCame
//	InstanceChanged  Instance, Change; Variant unless it is Lost
//	PriceChanged     DeviceType, Price
//	SpecGrown        Growth
//	IdleRecalled     Recalled
//	StreamOpened     Query.App, Query.Stream, Rate
//	StreamClosed     Query.App, Query.Stream
//	PlanReady        Plan
//	PlanFailed       Failure
//	QueryArrived     Query
//	QueryCancelled   Query.ID
type Input struct {
	Kind InputKind

	Query serving.Query
	Batch serving.BatchID
	// Emitted is the items that each task of the batch sends along each edge of its stage: task by task, edges in the
	// order of Stage.Next. Nil means items times the edge's FanOut, rounded.
	Emitted []int32
	// Lengths is, by the places of Emitted, the length of the longest item that goes along an edge, as the stage that
	// it leads to counts it (serving.Query.Length). Nil, or 0, is for one that is not known.
	Lengths []int32
	// Confidence is, by item, how sure the variant is of its answer. Nil means that nobody knows.
	Confidence []float32
	Result     Result
	Took       time.Duration // measured run time of the batch, or start of the machine
	Worker     serving.WorkerID
	Machine    MachineChange
	For        time.Duration
	Instance   serving.InstanceID
	Change     Change
	Variant    serving.VariantID
	Plan       *plan.Plan
	Failure    *PlanFailure
	DeviceType serving.DeviceTypeID
	Price      float64 // from now on, in $/h
	Rate       float64 // declared for a stream, in queries/s; 0 for none
	Growth     *Growth
	Recalled   *Recalled
}

// NewBatchDone returns the input that a batch ended well. emitted is as in Input; the engine does not keep it.
func NewBatchDone(b serving.BatchID, i serving.InstanceID, took time.Duration, emitted []int32) Input {
	return Input{Kind: BatchDone, Batch: b, Instance: i, Took: took, Emitted: emitted, Variant: serving.None}
}

// NewBatchBroken returns the input that the model refused a batch.
func NewBatchBroken(b serving.BatchID, i serving.InstanceID, took time.Duration) Input {
	return Input{Kind: BatchDone, Batch: b, Instance: i, Took: took, Result: Broken, Variant: serving.None}
}

// NewBatchExceeded returns the input that the device lacked memory for a batch.
func NewBatchExceeded(b serving.BatchID, i serving.InstanceID, took time.Duration) Input {
	return Input{Kind: BatchDone, Batch: b, Instance: i, Took: took, Result: Exceeded, Variant: serving.None}
}

// NewVariantReady returns the input that a variant is warm on an instance; the first one makes the instance ready.
func NewVariantReady(i serving.InstanceID, v serving.VariantID) Input {
	return Input{Kind: InstanceChanged, Change: VariantReady, Instance: i, Variant: v}
}

// NewLoadFailed returns the input that a variant could not be loaded on an instance.
func NewLoadFailed(i serving.InstanceID, v serving.VariantID) Input {
	return Input{Kind: InstanceChanged, Change: LoadFailed, Instance: i, Variant: v}
}

// NewInstanceLost returns the input that an instance is gone with everything that ran on it.
func NewInstanceLost(i serving.InstanceID) Input {
	return Input{Kind: InstanceChanged, Change: Lost, Instance: i, Variant: serving.None}
}

// NewMachineChanged returns the input that something happened to the machine of a worker. d is the For of
// MachineMissing, the Took of MachineCame, and nothing else.
func NewMachineChanged(w serving.WorkerID, c MachineChange, d time.Duration) Input {
	in := Input{Kind: MachineChanged, Worker: w, Machine: c, Variant: serving.None}
	switch c {
	case MachineMissing:
		in.For = d
	case MachineCame:
		in.Took = d
	}
	return in
}

// NewPriceChanged returns the input that a machine of a device type costs so much from now on, in $/h: finite and at
// least 0.
func NewPriceChanged(d serving.DeviceTypeID, price float64) Input {
	return Input{Kind: PriceChanged, DeviceType: d, Price: price, Variant: serving.None}
}

// NewSpecGrown returns the input that the spec has grown. The engine keeps what g refers to.
func NewSpecGrown(g *Growth) Input { return Input{Kind: SpecGrown, Growth: g, Variant: serving.None} }

// NewIdleRecalled returns the input with what was learned of an app in an earlier run.
func NewIdleRecalled(r *Recalled) Input {
	return Input{Kind: IdleRecalled, Recalled: r, Variant: serving.None}
}

// NewStreamOpened returns the input that a client will send the queries of a stream at a rate in queries/s, finite and
// at least 0, until the stream is closed. stream is not 0.
func NewStreamOpened(a serving.AppID, stream uint64, rate float64) Input {
	q := serving.Query{App: a, Stream: stream}
	return Input{Kind: StreamOpened, Query: q, Rate: rate, Variant: serving.None}
}

// NewStreamClosed returns the input that the client of a stream has left.
func NewStreamClosed(a serving.AppID, stream uint64) Input {
	return Input{Kind: StreamClosed, Query: serving.Query{App: a, Stream: stream}, Variant: serving.None}
}

// NewPlanReady returns the input that a plan was made. The engine keeps it: it must not be changed from now on.
func NewPlanReady(p *plan.Plan) Input { return Input{Kind: PlanReady, Plan: p, Variant: serving.None} }

// NewPlanFailed returns the input that the request numbered seq led to no plan. err is not nil.
func NewPlanFailed(seq uint64, err error) Input {
	return Input{Kind: PlanFailed, Failure: &PlanFailure{Seq: seq, Err: err.Error()}, Variant: serving.None}
}

// NewQueryArrived returns the input that a query arrived.
func NewQueryArrived(q serving.Query) Input {
	return Input{Kind: QueryArrived, Query: q, Variant: serving.None}
}

// NewQueryCancelled returns the input that the client of a query went away.
func NewQueryCancelled(id serving.QueryID) Input {
	return Input{Kind: QueryCancelled, Query: serving.Query{ID: id}, Variant: serving.None}
}

// PlanFailure says that a request for a plan led to none.
type PlanFailure struct {
	Seq uint64 // of the request
	// Err is the reason as text. It may be empty, as in journals of earlier versions: then no decision reports it.
	Err string
}

// Growth is a larger world that replaces the present one.
type Growth struct {
	Spec *serving.Spec // validated, and Spec.Grows
	// Known covers all of Spec. Where latency is learned, its profile is the start for new variants, and may be nil.
	plan.Known
}

// Recalled is what was learned of an app in an earlier run.
type Recalled struct {
	App    serving.AppID
	Memory []byte        // as Remember returned it; not kept
	Older  time.Duration // age of Memory
	Idle   time.Duration // idle time of the app so far, at least Older
}

func (i *Input) id() uint64 {
	switch i.Kind {
	case BatchDone:
		return uint64(i.Batch)
	case MachineChanged:
		return uint64(i.Worker) // of one worker in order of occurrence
	case InstanceChanged:
		return uint64(i.Instance)<<32 | uint64(uint32(i.Variant))
	case PriceChanged:
		return uint64(i.DeviceType)
	case PlanReady:
		return i.Plan.Snapshot
	case PlanFailed:
		if i.Failure != nil {
			return i.Failure.Seq
		}
		return 0
	case SpecGrown:
		return 0 // in order of occurrence
	case IdleRecalled:
		return uint64(i.Recalled.App)
	case StreamOpened, StreamClosed:
		return i.Query.Stream
	}
	return uint64(i.Query.ID)
}

// Sort brings the inputs of one instant into the order of the contract.
func Sort(in []Input) {
	if len(in) < 2 {
		return
	}
	slices.SortStableFunc(in, func(a, b Input) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		x, y := a.id(), b.id()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return int(a.Query.App) - int(b.Query.App) // streams of two apps may have the same number
	})
}
