// Package diagnosis says how much of a demand a fleet carries, why it is not more, and which changes would let it carry
// all. A planner answers what it carries of a changed request; the search for changes that any planner needs is here.
package diagnosis

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Diagnosis says how much of a demand a fleet carries and, where that is not all, why not and what would mend it.
type Diagnosis struct {
	// Headroom is the factor on the demand that the planner plans for. All that follows includes it.
	Headroom float64
	// Carried says that all of the demand is carried.
	Carried bool
	// Multiple is the largest multiple of the demand, the same for every app, that was found to be carried whatever the
	// accuracy. Bound is proven to be the largest possible one. Both are 0 when nothing serves some stage.
	Multiple, Bound float64
	// Unserved are the stages that no variant can serve on any worker that is up.
	Unserved []UnservedStage
	// Bottlenecks are the stages without which more could be carried, the worst first; nil when all is carried.
	Bottlenecks []Bottleneck
	// Limits are what beside machines' time keeps more from being carried; nil where nothing does.
	Limits []Limit
	// Remedies each let all of the demand be carried by themselves. Added workers come first, the cheapest first, then
	// what may be rented, memory, lower floors and targets, longer objectives, other options of the planner, and less
	// demand. Nil when all is carried.
	Remedies []Remedy
}

// UnservedStage is a stage that nothing can serve.
type UnservedStage struct {
	App   serving.AppID
	Stage serving.StageID
	// Floor is the highest accuracy floor with which a variant meets the objective on a worker that is up; 0 for none.
	Floor float64
	// SLO is the shortest objective of the app with which Variant, which is not below the floor, serves the stage on
	// Device, of which a worker is up; 0 when none was measured or fits.
	SLO     time.Duration
	Variant serving.VariantID
	Device  serving.DeviceTypeID
}

// Bottleneck is a stage that keeps the fleet from carrying more.
type Bottleneck struct {
	App   serving.AppID
	Stage serving.StageID
	// Without is the multiple of the demand that could be carried if the stage needed nothing; for a stage that nothing
	// serves, if no such stage needed anything. It is +Inf when there is no other stage.
	Without float64
}

// Limit is a limit of the whole fleet that keeps it from carrying more.
type Limit struct {
	Kind LimitKind
	// Without is the multiple of the demand that could be carried without the limit.
	Without float64
}

// LimitKind says what a Limit limits.
type LimitKind string

// The limits of fleets.
const (
	BudgetLimit LimitKind = "budget" // what rented machines may cost
	MostLimit   LimitKind = "most"   // how many machines can be rented of some type
	MemoryLimit LimitKind = "memory" // machines have the time, but do not hold what the demand needs
)

// Remedy is a change that lets the demand be carried. It is of one kind, or of several together where no one kind is
// enough.
type Remedy struct {
	Add []Addition
	// Most are the numbers of machines that have to be to be had of rented types, where Add goes beyond
	// DeviceType.MaxMachines; by themselves where workers enough are listed.
	Most []Addition
	// Budget is what rented machines have to be allowed to cost, in $/h; 0 leaves the budget as it is.
	Budget  float64
	Memory  []Memory
	Floors  []Floor
	Targets []Floor
	SLOs    []Objective
	// Instances are the most instances of each stage that apps have to be allowed.
	Instances []Instances
	Demand    []Demand
	// AnyVariant plans with all variants of an app where a system restricts them. FreePlace lets workers change the app
	// they serve where a system does not.
	AnyVariant, FreePlace bool
	// CostPerHour is the rent of Add in $/h, by the prices of the request.
	CostPerHour float64
	// Proven says of Add and Demand that nothing cheaper, or less, is enough.
	Proven bool
}

// Addition is a number of workers of a device type.
type Addition struct {
	Device  serving.DeviceTypeID
	Workers int // in Remedy.Add on top of those there are, in Remedy.Most in all
}

// Memory is the memory that machines of a device type would have to have, in bytes.
type Memory struct {
	Device serving.DeviceTypeID
	To     int64
}

// Floor is an accuracy floor, or target, that an app would have to accept.
type Floor struct {
	App serving.AppID
	To  float64
}

// Instances is the most instances of each stage that an app would have to be allowed.
type Instances struct {
	App serving.AppID
	To  int
}

// Objective is a latency objective that an app would have to accept.
type Objective struct {
	App serving.AppID
	To  time.Duration
}

// Demand is the most that an app may ask for, in queries/s, without head-room.
type Demand struct {
	App serving.AppID
	To  float64
}
