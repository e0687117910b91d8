package planning

import "github.com/sluice-serving/sluice/measure/quantity"

// Report is what was asked, and its JSON: plans, or frontiers.
type Report struct {
	File      string     `json:"file"`
	Plans     []Plan     `json:"plans,omitempty"`
	Frontiers []Frontier `json:"frontiers,omitempty"`
}

// Plan is one plan as people and programs read it.
type Plan struct {
	System  string  `json:"system"`
	Planner string  `json:"planner"`
	WhatIf  string  `json:"what_if,omitempty"` // the change of the fleet; empty for the fleet as it is
	Scale   float64 `json:"scale,omitempty"`   // of the demand asked for, where it is scaled
	// Error is why there is no plan at all: some app cannot be served by anything.
	Error  string  `json:"error,omitempty"`
	Demand float64 `json:"demand"`
	Served float64 `json:"served"`
	Shed   float64 `json:"shed"` // of the demand, not served
	// Capacity is what the plan's instances carry at its shares, Reach what the fleet could carry of this mix of apps,
	// whatever the accuracy, with a plan made for that.
	Capacity    float64  `json:"capacity"`
	Reach       *float64 `json:"reach,omitempty"`
	Accuracy    *float64 `json:"accuracy,omitempty"` // mean over what is served
	CostPerHour float64  `json:"cost_per_hour"`      // $/h of the workers used
	// CostUsed counts each worker by the part of it that is used for what is served, in $/h; of plans for apps of
	// several stages.
	CostUsed *float64 `json:"cost_used_per_hour,omitempty"`
	Workers  int      `json:"workers"`
	Idle     []string `json:"idle,omitempty"` // workers without an instance
	Loads    int      `json:"loads"`          // variants to bring up
	// Goal is what the planner maximises and what Bound is in; no plan is better than Bound, which is Gap from this
	// one, relatively. Both are absent where nothing is proven.
	Goal  string   `json:"goal,omitempty"`
	Bound *float64 `json:"bound,omitempty"`
	Gap   *float64 `json:"gap,omitempty"`
	// Utility is the sum over what the plan serves of weight times accuracy relative to the app's best, by the weighted
	// demand. Fluid is what no plan and no rule can pass on these machines; nil where there is no demand.
	Utility *float64 `json:"utility,omitempty"`
	Fluid   *Fluid   `json:"fluid_bound,omitempty"`
	Apps    []App    `json:"apps"`
	Stages  []Stage  `json:"stages,omitempty"` // of apps of several stages
	// Short is, by device type, how many workers more it would take to serve all that is asked for.
	Short     map[string]int `json:"short,omitempty"`
	Instances []Instance     `json:"instances,omitempty"`
	// Adviser is the planner that was asked for the diagnosis where the plan's own has no answers.
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

// GoalCost is the goal of plans that cost as little as they can.
const GoalCost = "cost"

// App is what a plan gives an app.
type App struct {
	Name     string   `json:"name"`
	SLOMS    float64  `json:"slo_ms"`
	Demand   float64  `json:"demand"`
	Served   float64  `json:"served"`
	Shed     float64  `json:"shed"`
	Capacity float64  `json:"capacity"`
	Accuracy *float64 `json:"accuracy,omitempty"`
}

// Stage is what a plan gives a stage of a graph.
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
	Standby    []string `json:"standby,omitempty"` // loaded besides
	Accuracy   float64  `json:"accuracy"`          // of the active one
	BatchLimit int      `json:"batch_limit"`       // items
	Slots      int      `json:"slots"`             // batches at once
	Share      float64  `json:"share"`             // of the stage's traffic
	Rate       float64  `json:"rate"`              // forecast, items/s
	Capacity   float64  `json:"capacity"`          // items/s in batches of the limit, on a worker of its own
	Part       float64  `json:"part"`              // of its worker that its rate takes
}

// Lacks tells that some of the demand is not served.
func (v *Plan) Lacks() bool { return v.Error != "" || v.Shed > 0 }

// Verdict says in a line that a demand cannot be carried.
func (v *Plan) Verdict() string {
	if v.Error != "" {
		return "the demand cannot be carried: there are apps that nothing serves"
	}
	return "the demand cannot be carried: " + quantity.Rate(v.Served) + " of " + quantity.Rate(v.Demand)
}
