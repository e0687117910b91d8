package planning

import "github.com/sluice-serving/sluice/internal/measure/quantity"

// Report is the answer to a question: plans or frontiers. Its JSON is that of 'sluice plan --json'.
type Report struct {
	File      string     `json:"file"`
	Plans     []Plan     `json:"plans,omitempty"`
	Frontiers []Frontier `json:"frontiers,omitempty"`
}

// Plan is one plan in a report.
type Plan struct {
	System  string  `json:"system"`
	Planner string  `json:"planner"`
	WhatIf  string  `json:"what_if,omitempty"` // the change of the fleet; empty for the fleet as it is
	Scale   float64 `json:"scale,omitempty"`   // of the demand asked for, where it is scaled
	// Error says why there is no plan; empty if there is one.
	Error  string  `json:"error,omitempty"`
	Demand float64 `json:"demand"`
	Served float64 `json:"served"`
	Shed   float64 `json:"shed"` // of the demand, not served
	// Capacity is the rate that the plan's instances carry at its shares. Reach is the largest rate of this mix of apps
	// that the fleet carries with any plan, whatever the accuracy.
	Capacity    float64  `json:"capacity"`
	Reach       *float64 `json:"reach,omitempty"`
	Accuracy    *float64 `json:"accuracy,omitempty"` // mean over served queries
	CostPerHour float64  `json:"cost_per_hour"`      // $/h of the workers used
	// CostUsed is the cost in $/h with each worker counted by its used part. It is set for apps of several stages only.
	CostUsed *float64 `json:"cost_used_per_hour,omitempty"`
	Workers  int      `json:"workers"`
	Idle     []string `json:"idle,omitempty"` // workers without an instance
	Loads    int      `json:"loads"`          // variants to load
	// Goal is the planner's objective and the unit of Bound. No plan is better than Bound, and Gap is the relative
	// distance of this plan to it. They are absent when nothing is proven.
	Goal  string   `json:"goal,omitempty"`
	Bound *float64 `json:"bound,omitempty"`
	Gap   *float64 `json:"gap,omitempty"`
	// SecondSaved is by how much second answers lower that bound where it is a cost, in $/h.
	SecondSaved float64 `json:"second_answers_saved_per_hour,omitempty"`
	// Forecast is what came out when the plan was simulated; nil where it was not. Trials are the candidates that were
	// simulated beside it, and Choice says why the plan was chosen.
	Forecast *Forecast `json:"forecast,omitempty"`
	Trials   []Trial   `json:"trials,omitempty"`
	Choice   string    `json:"choice,omitempty"`
	// Utility is the sum over what the plan serves of weight times accuracy relative to the app's best, by the weighted
	// demand. Fluid is an upper bound on it for these machines; nil where there is no demand.
	Utility *float64 `json:"utility,omitempty"`
	Fluid   *Fluid   `json:"fluid_bound,omitempty"`
	Apps    []App    `json:"apps"`
	Stages  []Stage  `json:"stages,omitempty"` // of apps of several stages
	// Sharing lists the stages that the planner's rule leaves with nothing, and that share workers instead.
	Sharing []string `json:"sharing,omitempty"`
	// OutOfBounds lists the stages with fewer instances than min_instances of their app, or more than max_instances.
	OutOfBounds []OutOfBounds `json:"out_of_bounds,omitempty"`
	// Short is, by name of the device type, how many more workers would be needed to serve all of the demand.
	Short     map[string]int `json:"short,omitempty"`
	Instances []Instance     `json:"instances,omitempty"`
	// Adviser is the planner that made the diagnosis, if the plan's own planner cannot.
	Adviser   string     `json:"adviser,omitempty"`
	Diagnosis *Diagnosis `json:"diagnosis,omitempty"`
}

// Fluid is the fluid bound of a demand (package bound), for arrivals without gaps and batches without waits.
type Fluid struct {
	Utility float64 `json:"utility"`
	Served  float64 `json:"served"` // share of the demand at that optimum
	// CostPerHour is the least money, in $/h, that serves what the plan serves as accurately; nil where nothing has a
	// price, and where the plan counts on more than the machines have.
	CostPerHour *float64 `json:"cost_per_hour,omitempty"`
	Ratio       float64  `json:"ratio"` // the plan's utility by the bound's
}

// Forecast is a simulated plan: arrivals like those of the demand, on machines as fast as is believed.
type Forecast struct {
	Violation float64 `json:"violation"`           // share of queries that miss the objective
	Deviation float64 `json:"violation_deviation"` // its standard error
	Accuracy  float64 `json:"accuracy"`            // mean over answers in time
	Queries   int     `json:"queries"`             // simulated
}

// Trial is a candidate that was simulated before a plan was chosen.
type Trial struct {
	Candidate   string         `json:"candidate"`
	Machines    map[string]int `json:"machines"` // by device type
	CostPerHour float64        `json:"cost_per_hour"`
	Loads       int            `json:"loads"`
	Sheds       bool           `json:"sheds,omitempty"` // by its own program
	Adopted     bool           `json:"adopted,omitempty"`
	Violation   float64        `json:"violation"`
	Deviation   float64        `json:"violation_deviation"`
	Accuracy    float64        `json:"accuracy"`
	Utility     float64        `json:"utility"`
}

// GoalCost is the goal of plans that minimise costs.
const GoalCost = "cost"

// App is an app in a plan.
type App struct {
	Name     string   `json:"name"`
	SLOMS    float64  `json:"slo_ms"`
	Demand   float64  `json:"demand"`
	Served   float64  `json:"served"`
	Shed     float64  `json:"shed"`
	Capacity float64  `json:"capacity"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Violation is the share of late queries, where the plan was simulated.
	Violation *float64 `json:"forecast_violation,omitempty"`
	// Second is the share of the queries that have a second answer, since the first is not sure, and SecondGain what
	// that adds to the mean accuracy, beside the best plan in which no query has; both are nil where none may.
	Second     *float64 `json:"second_answers,omitempty"`
	SecondGain *float64 `json:"second_answers_gain,omitempty"`
	// Target is the app's accuracy_target, and Missed how much of it the plan leaves out. Both are absent where the app
	// has none.
	Target *float64 `json:"accuracy_target,omitempty"`
	Missed *float64 `json:"accuracy_missed,omitempty"`
}

// OutOfBounds is a stage with another number of instances than its app asks for.
type OutOfBounds struct {
	App       string `json:"app"`
	Stage     string `json:"stage"`
	Instances int    `json:"instances"`
	Setting   string `json:"setting"` // min_instances or max_instances
	Bound     int    `json:"bound"`
}

// Stage is a stage of a graph in a plan.
type Stage struct {
	App         string  `json:"app"`
	Stage       string  `json:"stage"`
	BudgetMS    float64 `json:"budget_ms,omitempty"` // its part of the objective; 0 where the plan has none
	Rate        float64 `json:"rate"`                // items/s
	Machines    float64 `json:"machines"`            // each counted by the part that is used
	CostPerHour float64 `json:"cost_used_per_hour"`  // the same in $/h
}

// Instance is one instance of a plan.
type Instance struct {
	Worker     string   `json:"worker"`
	DeviceType string   `json:"device_type"`
	App        string   `json:"app"`
	Stage      string   `json:"stage"`
	Variant    string   `json:"variant"`           // the active one
	Standby    []string `json:"standby,omitempty"` // the other loaded variants
	Accuracy   float64  `json:"accuracy"`          // of the active one
	BatchLimit int      `json:"batch_limit"`       // items
	Slots      int      `json:"slots"`             // batches at once
	Share      float64  `json:"share"`             // of the stage's traffic
	Rate       float64  `json:"rate"`              // forecast, items/s
	Capacity   float64  `json:"capacity"`          // items/s in batches of the limit, on a worker of its own
	Part       float64  `json:"part"`              // of its worker that its rate takes
}

// FallsShort reports whether some of the demand is not served.
func (v *Plan) FallsShort() bool { return v.Error != "" || v.Shed > 0 }

// MissedTargets lists the apps whose accuracy is below their target.
func (v *Plan) MissedTargets() (out []App) {
	for _, a := range v.Apps {
		if a.Missed != nil && *a.Missed > 0 {
			out = append(out, a)
		}
	}
	return out
}

// Verdict returns a line that says that the demand cannot be carried, and why.
func (v *Plan) Verdict() string {
	if v.Error != "" {
		return "the demand cannot be carried: there are apps that nothing serves"
	}
	return "the demand cannot be carried: " + quantity.Rate(v.Served) + " of " + quantity.Rate(v.Demand)
}
