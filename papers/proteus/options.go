// Package proteus plans as Proteus (ASPLOS 2024, §4) does: which variant every worker hosts and which share of each
// app's queries it gets, such that the expected demand is carried at the highest mean accuracy. It solves a
// mixed-integer linear program. Options make it the planner of the paper's baselines and ablations as well.
package proteus

import (
	"cmp"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Solver  milp.Solver
	Options Options
}

// Options of a Planner. The zero value is the paper's planner.
type Options struct {
	// Headroom is the factor on the demand that is planned for; 0 means 1.05, as in the paper's artifact.
	Headroom float64
	// Gap is the relative gap at which a plan is good enough; 0 means 0.005.
	Gap float64
	// Nodes limits the search tree; 0 means 60. A node takes a fiftieth of a second. Thousands of nodes find nothing
	// better than the first few dozen.
	Nodes int64
	// Select restricts the variants of an app.
	Select Selection
	// Place says whether workers may change the app they serve.
	Place Placement
	// Single plans for batches of one item: the paper's ablation without adaptive batching (§6.5).
	Single bool
	// Uniform gives every instance of a stage the same share: the ablation without query assignment (§6.5).
	Uniform bool
	// Goal is what is maximised.
	Goal Goal
	// Lambda is the weight of the smallest accuracy with goal Blend; 0 means one half.
	Lambda float64
	// Tolerance is the mean normalised accuracy that is given up to avoid loading models; 0 means 0.001, a tenth of a
	// point. Negative is none.
	Tolerance float64
	// Slack is the mean normalised accuracy that is given up for head-room beyond Headroom; 0 means 0.0005, a twentieth
	// of a point. Negative is none, as in the paper.
	Slack float64
	// Bursts plans more head-room the more unevenly queries arrive (plan.Request.Dispersions), as far as the fleet
	// carries it. The paper has a fixed head-room.
	Bursts bool
	// Fraction of the stage's budget that a batch may take; 0 means one half (§4, "Estimation of throughput capacity").
	Fraction float64
	// Batches are the batch sizes that may be planned; nil means any.
	Batches []int
	// Share has stages share workers that the rule leaves with nothing (capacity.BatchRule.ShareLeftOut). Eq. 1 allows
	// one variant a device.
	Share bool
}

// Selection says which variants of an app a plan may use.
type Selection uint8

// The selections. AnyVariant allows all variants that meet the objective on some device type. MostAccurate and
// LeastAccurate leave each app one of them: Clipper-HA and Clipper-HT (§6.1.1), and Proteus without model selection
// (§6.5).
const (
	AnyVariant Selection = iota
	MostAccurate
	LeastAccurate
)

// Placement says whether a worker may change the app it serves.
type Placement uint8

// The placements. With Fixed a worker keeps the app of the snapshot and changes only its variant: Sommelier (§6.1.1),
// and Proteus without model placement (§6.5). A worker that serves nothing yet is free.
const (
	Free Placement = iota
	Fixed
)

// Goal is what a plan maximises.
type Goal uint8

const (
	// Accuracy is the mean normalised accuracy over the queries of all apps, weighed by importance (§4, Eq. 7).
	Accuracy Goal = iota
	// Fairness is the smallest normalised accuracy of an app, then the mean (§7 leaves it open).
	Fairness
	// Blend is Lambda times the smallest plus 1 - Lambda times the mean.
	Blend
	// Throughput is the largest multiple of the demand that can be carried, whatever the accuracy: for plans that are
	// made once.
	Throughput
)

const (
	defaultHeadroom  = 1.05
	defaultGap       = 0.005
	defaultNodes     = 60
	defaultTolerance = 0.001
	defaultSlack     = 0.0005
	defaultLambda    = 0.5
	defaultFraction  = 0.5
)

func (o Options) filled() Options {
	o.Headroom = cmp.Or(o.Headroom, defaultHeadroom)
	o.Gap = cmp.Or(o.Gap, defaultGap)
	o.Tolerance = cmp.Or(o.Tolerance, defaultTolerance)
	o.Slack = cmp.Or(o.Slack, defaultSlack)
	o.Lambda = cmp.Or(o.Lambda, defaultLambda)
	o.Fraction = cmp.Or(o.Fraction, defaultFraction)
	o.Nodes = cmp.Or(o.Nodes, defaultNodes)
	o.Tolerance = max(o.Tolerance, 0)
	return o
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "proteus" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.BatchTimeouts }
