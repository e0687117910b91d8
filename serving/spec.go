package serving

import "time"

// Spec is everything a run starts from: machines, apps, stages and variants, as plain data. It is read-only once
// validated. Planners, the engine and both drivers share it.
type Spec struct {
	DeviceTypes []DeviceType
	Workers     []Worker
	Apps        []App
	Stages      []Stage
	Variants    []Variant
	// Tenants share the machine time of every app by their weights while it is short. Without any, all queries are
	// alike.
	Tenants []Tenant `json:",omitempty"`
}

// Tenant is a party that sends queries.
type Tenant struct {
	Name   string
	Weight float64 // of its share of an app's machine time, > 0
}

// DeviceType is a kind of machine, or a share of one, with a price and capacities.
type DeviceType struct {
	Name         string
	PricePerHour float64 // $/h
	Cores        int
	MemoryBytes  int64
	// MaxMachines is how many machines of the type can be rented when a planner chooses machines; 0 sets no limit. It
	// does not bound Workers.
	MaxMachines int `json:"Most"`
	// of one machine
	Accelerators int
	// Part marks a share of a machine, not a machine: Cores of its threads, Percent of one of its accelerators, and
	// MemoryBytes. An instance gets one by itself, and instances of one function may differ in it (INFless §3.2). No
	// worker is of such a type.
	Part    bool
	Percent int // of one accelerator, in [0, 100]; 0 unless Part
	// Placed marks a part that somebody wrote down for an instance. Planners choose no part of such a type.
	Placed bool `json:",omitempty"`
	// Tenure says whether leaving a machine idle saves its price.
	Tenure Tenure `json:",omitzero"`
}

// Worker is one machine of a device type.
type Worker struct {
	Name       string
	DeviceType DeviceTypeID
}

// LatePolicy says what happens to a waiting query that can no longer meet its deadline.
type LatePolicy uint8

const (
	// DropLate gives the query up at the first instant at which even the fastest way to serve it would end too late
	// (Proteus §4, Scrooge §3.6, INFless §3.2).
	DropLate LatePolicy = iota
	// ServeLate serves it all the same (RAMSIS §4.3.1).
	ServeLate
)

// String returns the name that sluice.yaml uses.
func (p LatePolicy) String() string {
	if p == ServeLate {
		return "serve-late"
	}
	return "drop"
}

// SLO is a latency objective: the given percentile of an app's queries is answered within Latency.
type SLO struct {
	Latency    time.Duration
	Percentile float64 // in (0, 100]
	// Proposed says that nobody asked for Latency: it follows from measurements, and a run may raise it.
	Proposed bool `json:",omitempty"`
}

// Allowed is the share of queries that may miss the objective.
func (o SLO) Allowed() float64 { return 1 - o.Percentile/100 }

// App is what a client calls: an objective and a graph of stages.
type App struct {
	Name string
	// VersionOf is the name of the app of which clients see this one as a version; "" for an app of its own.
	VersionOf string `json:",omitempty"`
	SLO       SLO
	Late      LatePolicy
	GiveUp    time.Duration // with ServeLate: how long after its deadline a query may still start; 0 sets no limit
	// ColdWait is how long after its arrival a query may still start that found no instance. It applies where the
	// scaler stops all instances of an idle app: starting one takes longer than most objectives allow. 0 leaves such a
	// query to Late.
	ColdWait time.Duration
	// Slack is the time kept free before every deadline for delays that profiles do not contain, such as the network's.
	Slack      time.Duration
	Weight     float64   // importance relative to the other apps, > 0
	Mix        Mix       // sizes of queries to expect before any was seen
	Floor      float64   // in [0, 1]: no variant of lower accuracy answers, unless a client pins it; 0 for none
	QueueLimit int       // queries that may wait, all stages together, before new ones are refused; > 0
	Stages     []StageID // in a topological order; the first is the only source
	// AccuracyTarget is the mean accuracy of answers to keep, in [0, BestAccuracy]; 0 for none. An answer's accuracy is
	// the product over the stages. Serving in time comes before it, and cost after it.
	AccuracyTarget float64 `json:",omitzero"`
	// Closed marks an app that takes no queries any more. It stays in the table until nothing refers to it and another
	// app takes its place, with another Generation.
	Closed bool
	// Ensemble marks an app that clients see as a model of its own beside that of its only stage.
	Ensemble bool `json:",omitempty"`
	// MinInstances and MaxInstances bound the instances of each stage, for planners that choose their number. 0 sets no
	// bound.
	MinInstances int `json:"Least"`
	MaxInstances int `json:"Most"`
	// Generation counts how often the app's place in the table was used again; see Free.
	Generation uint32 `json:",omitempty"`
}

// Composed reports whether clients see an app as a model of its own, and each of its stages as another.
func (a *App) Composed() bool { return a.Ensemble || len(a.Stages) > 1 }

// ServesLate reports whether a query of the app is served after its deadline; own is that of serving.Query.
func (a *App) ServesLate(own bool) bool { return a.Late == ServeLate && !own }

// Drops reports whether a query of the app that waits too long is dropped in the end.
func (a *App) Drops() bool { return a.Late == DropLate || a.GiveUp > 0 || a.ColdWait > 0 }

// Stage is one step of an app: a task that several variants can do. Most apps have one stage.
type Stage struct {
	Name     string
	App      AppID
	Variants []VariantID // in the order of the configuration
	Next     []Edge      // edges to the stages that this one feeds
	Joins    int         // number of edges that lead here; a stage with more than one waits for all of them
	// Stateful marks a stage that keeps something from query to query of a stream (Scrooge §3.1). It serves the queries
	// of a stream one at a time, in the order of their arrival.
	Stateful bool
	// EachQuery marks a stage whose model is called for a query as a whole: behind other stages a query is one item
	// there, whatever it is sent, with all rows.
	EachQuery bool `json:",omitempty"`
	// Queue are limits of its queue; nil for none.
	Queue *QueueRules `json:",omitempty"`
	// Confidences has each variant at most once. A query that such a variant has answered may have a second answer.
	Confidences []Confidence `json:",omitempty"`
	// Generation is that of the stage's place in the table, as in App.
	Generation uint32 `json:",omitempty"`
}

// Edge hands the results of one stage to another.
type Edge struct {
	To     StageID
	FanOut float64 // expected items sent per item served, >= 0; a run may report the real number
	// Rows names an output tensor of the stage that feeds the edge. In a live run each of its rows becomes an item of
	// the next stage. If it is empty, each item is handed on as one.
	Rows string
}

// Variant is a trained model that can answer a stage.
type Variant struct {
	Name        string
	Stage       StageID
	Accuracy    float64 // in [0, 1], as its author or our own measurement says
	Version     string  // version directory in the model repository; empty when there is only one
	MaxBatch    int     // most items that the model accepts in one run, >= 1
	MemoryBytes int64   // of the model itself; 0 when not known
	ItemBytes   int64   // of every item of a batch, on top of MemoryBytes; 0 when not known
	// Pads says that queries of different lengths run together, padded to the longest; else they run one after the
	// other.
	Pads    bool `json:",omitempty"`
	Retired bool // another version has taken its place: no plan uses it any more
	// Generation is that of the variant's place in the table, as in App.
	Generation uint32 `json:",omitempty"`
}

// Hosts returns, ascending, the workers on which a part of a machine fits while nothing else runs there. part is a
// device type with Part set.
func (s *Spec) Hosts(part DeviceTypeID) (out []WorkerID) {
	d := &s.DeviceTypes[part]
	for w := range s.Workers {
		has := &s.DeviceTypes[s.Workers[w].DeviceType]
		if d.Cores <= has.Cores && (d.Percent == 0 || has.Accelerators > 0) &&
			(has.MemoryBytes == 0 || d.MemoryBytes <= has.MemoryBytes) {
			out = append(out, WorkerID(w))
		}
	}
	return out
}

// BelowFloor tells whether a variant is less accurate than the floor of its app allows: it answers only queries that
// are pinned to it.
func (s *Spec) BelowFloor(v VariantID) bool {
	x := &s.Variants[v]
	return x.Accuracy < s.Apps[s.Stages[x.Stage].App].Floor
}

// Source returns the stage at which the queries of app a enter.
func (s *Spec) Source(a AppID) StageID { return s.Apps[a].Stages[0] }
