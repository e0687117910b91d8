package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// InputKind says what happened.
type InputKind uint8

// The kinds of input, in the order in which those of one instant are applied: completions, instance changes, prices,
// growth, recollections, streams that are opened, then those that are closed, plans, arrivals, cancellations; timers
// come after all of them. Within a kind the smaller identifier comes first. Both drivers use Sort, so that ties are
// broken the same way in both.
const (
	BatchDone InputKind = iota
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
	"batch-done", "instance-changed", "price-changed", "spec-grown", "idle-recalled", "stream-opened", "stream-closed",
	"plan-ready", "plan-failed", "query-arrived", "query-cancelled",
}

// String returns the kind's name in journals.
func (k InputKind) String() string { return inputNames[k] }

// Result is how a batch ended.
type Result uint8

// Results of a batch.
const (
	OK     Result = iota
	Broken        // the model refused it: its queries are tried again, each alone
)

// Change is what happened to an instance.
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

// Input is one fact. Which fields count depends on Kind.
type Input struct {
	Kind InputKind

	// QueryArrived; for QueryCancelled only its ID, for StreamOpened and StreamClosed its App and Stream
	Query serving.Query
	Batch serving.BatchID // BatchDone
	// Emitted is, for BatchDone of a stage that feeds others, the items each part sends along each edge: part-major,
	// edges in the order of Stage.Next. Nil means items times the edge's FanOut, rounded.
	Emitted  []int32
	Result   Result
	Took     time.Duration      // BatchDone: measured run time
	Instance serving.InstanceID // BatchDone, InstanceChanged
	Change   Change             // InstanceChanged
	Variant  serving.VariantID  // InstanceChanged
	Plan     *plan.Plan         // PlanReady
	Seq      uint64             // PlanFailed: of the request

	DeviceType serving.DeviceTypeID // PriceChanged
	Price      float64              // PriceChanged: from now on, in $/h

	Rate float64 // StreamOpened: that its client declares, in queries/s; 0 when it says nothing

	Growth *Growth // SpecGrown

	Recalled *Recalled // IdleRecalled
}

// Growth is a larger world that takes the place of the one before.
type Growth struct {
	Spec *serving.Spec // validated, and Spec.Grows
	// Profile is what was measured of all of Spec; where latency is learned, what learning begins with for what is new.
	// Nil for nothing, where latency is learned.
	Profile profile.Profile
	// Measurements are what Profile was made from, for the record.
	Measurements serving.Measurements
}

// Recalled is what was learned of an app in an earlier run.
type Recalled struct {
	App    serving.AppID
	Memory []byte        // as Remember returned it; not kept
	Older  time.Duration // since then
	Idle   time.Duration // that the app has had nothing to do, at least Older
}

func (i *Input) id() uint64 {
	switch i.Kind {
	case BatchDone:
		return uint64(i.Batch)
	case InstanceChanged:
		return uint64(i.Instance)<<32 | uint64(uint32(i.Variant))
	case PriceChanged:
		return uint64(i.DeviceType)
	case PlanReady:
		return i.Plan.Snapshot
	case PlanFailed:
		return i.Seq
	case SpecGrown:
		return 0 // in the order in which they came
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
		return int(a.Query.App) - int(b.Query.App) // two apps may call their streams alike
	})
}
