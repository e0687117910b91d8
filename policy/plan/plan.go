// Package plan defines plans, which planners make and engines follow: the instances to run, the shares of the traffic,
// the forecast, and the proven bound. A plan is plain data. The planners are in planner/*.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Plan is the answer of a planner.
type Plan struct {
	// Planner is the registry name of its planner.
	Planner string
	// Snapshot is the Seq of the fleet snapshot that the plan was made from. A plan older than the one in force is
	// dropped.
	Snapshot  uint64
	Instances []Instance
	// Prefer lists device types in the order in which central queues use them; nil leaves the order to the router.
	Prefer []serving.DeviceTypeID
	// Budgets is by StageID the part of the end-to-end objective that the stage may use; nil where a plan has none.
	Budgets []time.Duration
	// Policies say what to run in which state of a queue; nil where a plan has none.
	Policies []Policies
	// Values are the value functions of the stages' pools; nil where a plan has none.
	Values []ValueFunctions `json:"Prices"`
	// Demand is by AppID the rate in queries/s that the plan was made for, head-room included; nil when it was made for
	// none in particular. Capacity is by AppID the rate that the plan carries while each instance gets its share; nil
	// when not known.
	Demand, Capacity []float64
	// Mixes are by AppID the sizes of queries that the plan was made for; nil when it does not depend on them.
	Mixes []serving.Mix
	// FanOuts is by StageID, then in the order of Stage.Next, the items sent per item served. Ballooning is by StageID
	// the run time of batches divided by the time they were believed to take. The plan was made with both. Nil means
	// the configured fan-outs and no ballooning. Planners leave them out; the engine, which asked with them, fills them
	// in.
	FanOuts    [][]float64 `json:"Fans"`
	Ballooning []float64
	// MarginalRates is by StageID and DeviceTypeID the rate in queries/s that one more instance on that type would add
	// to what the stage carries: its shadow price. Device types of a stage compare by it. Nil where a plan does not
	// say.
	MarginalRates [][]float64 `json:"Worth"`
	// Shed is by AppID the part of Demand in queries/s that the plan knowingly does not serve; nil when it serves
	// everything.
	Shed []float64
	// TooLarge is by AppID the part of its queries, in [0, 1], that no machine serves in time since they bring too many
	// items. They are refused, and Capacity and Forecast count on it; nil where there are none, or it is not known.
	TooLarge []float64 `json:",omitempty"`
	// Shortage is by DeviceTypeID how many more machines it would take to serve all of Demand; nil when none is
	// missing, or it is not known.
	Shortage []int `json:"Short"`
	// Sharing lists the stages that the planner's rule would have left with nothing, and that share a worker instead.
	Sharing []serving.StageID `json:",omitempty"`
	// Loads counts the variants that have to be loaded to get from the snapshot to the plan.
	Loads    int
	Forecast Forecast
	// Bound is the proven best value of the planner's objective, Gap the relative distance to it. They mean something
	// only if Proven.
	Bound, Gap float64
	Proven     bool
	// Trials are the candidates that were simulated, in that order; nil for none. Choice says in words why the plan was
	// chosen.
	Trials []Trial `json:",omitempty"`
	Choice string  `json:",omitempty"`
	// BoundsCost says that the objective is Forecast.CostPerHour: no plan costs less than Bound.
	BoundsCost bool `json:"Cost"`
}

// Instance is one instance to run. Its worker and its Place there identify it across plans (fleet.Key): a plan that
// changes only a variant causes a load, not a new instance.
type Instance struct {
	Worker serving.WorkerID
	// Place numbers the instances of a worker from 1. 0 stands for the position among the worker's instances in the
	// list.
	Place    int32
	Stage    serving.StageID
	Variants []Variant // the first is the active one
	Slots    int       // batches at once, >= 1
	Built    int       // slots to launch it with, so that a later plan may use as many without a load; 0 means Slots
	Cores    int       // threads a run may use; 0 shares all cores of the worker
	Share    float64   // of the stage's traffic, >= 0; the shares of a stage add up to 1
	// BatchTimeout is the longest time a batch may be filled, for batchers that need one (INFless §3.2); 0 when not
	// planned.
	BatchTimeout time.Duration
	// Part is the share of its worker that the instance gets: 1 + the DeviceTypeID of a part of a machine, or 0 for the
	// whole worker.
	Part int32
	// Accelerator is the worker's accelerator, counted from 0, that the part takes its per cent of.
	Accelerator int32
	// Low and Up bound the rate in queries/s at which the instance is to get queries. Below Low its batches do not fill
	// in time, above Up they wait for each other (INFless Eq. 1). Both are 0 when not planned.
	Low, Up float64
	// TimeShared has the instance take turns with the other such instances on its worker: together they run no more
	// batches at once than the one with the most Slots may. Otherwise an instance starts its batches whatever runs
	// beside them.
	TimeShared bool `json:",omitempty"`
}

// DeviceType returns the device type whose latency the instance has: its part of a machine, or the type of its worker.
func (i *Instance) DeviceType(spec *serving.Spec) serving.DeviceTypeID {
	if i.Part > 0 {
		return serving.DeviceTypeID(i.Part - 1)
	}
	return spec.Workers[i.Worker].DeviceType
}

// Sort orders the instances by worker, then by place.
func (p *Plan) Sort() {
	slices.SortStableFunc(p.Instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Place, b.Place))
	})
}

// Variant is a variant on an instance, with its batch limit.
type Variant struct {
	Variant serving.VariantID
	Limit   int // items, >= 1
}

// Forecast is what a plan expects of itself.
type Forecast struct {
	CostPerHour float64 // $/h
	Throughput  float64 // queries/s that the plan carries, all apps together
	Accuracy    float64 // mean over served queries, in [0, 1]
	Violation   float64 // share of queries that miss the objective; negative when not forecast
	// Deviation is the standard error of Violation where that was simulated on so many Queries; both are 0 elsewhere.
	Deviation float64 `json:",omitempty"`
	Queries   int     `json:",omitempty"`
	// Late is by AppID the share of late queries that was simulated; nil where nothing was. Accurate is by AppID the
	// mean accuracy of answers in time, simulated where Queries is above 0; 0 without answers, nil where not forecast.
	Late, Accurate []float64 `json:",omitempty"`
	// Second is what second answers bring; nil where none may be given.
	Second *SecondAnswers `json:",omitempty"`
}

// SecondAnswers is what it brings that queries with an unsure first answer may have a better one
// (serving.Confidence), as the planner's program has it: beside the best plan in which no query has.
type SecondAnswers struct {
	Shares []float64 // by AppID, of the queries served
	Gains  []float64 // by AppID, in mean accuracy
	Saved  float64   `json:",omitempty"` // of the least rent of fractions of machines, $/h
}
