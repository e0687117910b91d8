package systems

import (
	"fmt"
	"strings"
	"time"
)

// Options tune the parts that take parameters. The zero value gives every part's default.
type Options struct {
	BatchSize int           // of batcher fixed, in items; 0 means the plan's limit
	Timeout   time.Duration // of batcher filltimeout; 0 means the plan's hold
	Replan    time.Duration // of scalers that plan periodically; 0 means their own interval
	Learn     bool          // latency is learned while serving; what was measured, if anything was, is where it begins
	Planning  Planning
	Policies  Policies
	Renting   Renting
	Routing   Routing
	Packing   Packing
	Keeping   Keeping
	Pipelines Pipelines
	Following Following
}

// Pipelines tunes the planners of graphs of models.
type Pipelines struct {
	Method    string  // of planner scrooge: exact (default), as-written, greedy or brute
	Placement string  // of planner scrooge: rented (default), for the fewest whole machines, or paper
	Alone     bool    // of planner scrooge: one batch at a time
	Within    float64 // of planner scrooge: the part of the objective that is planned with; 0 means all
	Frontends int     // of planner nexus: workers for what the type that it plans for does not run; 0 means 1
	Alike     string  // of planner nexus: the device type that all machines are taken for; "" for the one most at hand
}

// Following tunes how plans follow what changes.
type Following struct {
	Change  float64       // of scaler complexity: the part by which a factor has to change; 0 means monitor.LeastChange
	TurnOff time.Duration // how long an instance stays loaded that a plan has dropped; 0 stops it at once
}

// Packing tunes the planner that packs instances onto parts of machines.
type Packing struct {
	Headroom float64 // the demand is multiplied with it; 0 means the planner's own
	Latency  float64 // execution times are multiplied with it; 0 means 1
	// part of its resources that replacing a function's instances must save; 0 means the planner's own, negative never
	// replaces any
	Merge    float64
	Balanced bool // packed by what the load makes scarce instead of by Algorithm 1
	Dense    bool // the same onto the fewest machines
	Release  bool // instances compared as the authors' code does it
	Exact    bool // rates of batches are not rounded
	Single   bool // batches of one
	Fastest  bool // the fastest part for each batch size, on the first machine with room
	Uniform  bool // one batch size and part for all instances of a function, the cheapest for each query
	First    bool // instances go to the first machine with room
	Threads  int  // only the part with so many threads and Percent of an accelerator; 0 for all parts
	Percent  int
}

// Keeping tunes how apps that nobody calls are kept warm, by scalers that let them go.
type Keeping struct {
	Rule    string        // lsth (default), hybridhistogram, keepalive or cheapest
	Gamma   float64       // of lsth: the weight of the long histogram; 0 means the rule's own
	Head    float64       // of the histograms' idle times: the share before pre-warming; 0 means the rule's own
	Tail    float64       // the share kept warm for; 0 means the rule's own
	Alive   time.Duration // of keepalive; 0 means the rule's own
	Tracked time.Duration // of hybridhistogram: how long it looks back; 0 means the rule's own
	Price   time.Duration // of cheapest: the idle time that a cold start is worth; 0 means the rule's own
	// of ratebands: how long instances stay that a fallen load needs no more; 0 means the rule's own
	Linger time.Duration
	Alpha  float64 // of ratebands: where in the band scaling in begins; 0 means the rule's own
}

// Routing tunes the routers that take parameters.
type Routing struct {
	Cells     int  // of router matching: how many groups of instances are matched on their own; 0 means one
	Threshold int  // of router threshold: queries of more items go to the base type
	Idle      bool // of router fcfs: an instance takes no query while another waits there for its slot
}

// Planning tunes the planners that solve a program.
type Planning struct {
	Select    string  // any (default), most-accurate or least-accurate: which variants of an app may be used
	Place     string  // free (default) or fixed: whether workers may change the app they serve
	Goal      string  // accuracy (default), fairness, blend or throughput
	Lambda    float64 // of goal blend: the weight of the smallest accuracy, in (0, 1)
	Headroom  float64 // the demand is multiplied with it; 0 means the planner's own
	Gap       float64 // relative; 0 means the planner's own
	Tolerance float64 // accuracy that is given up rather than loading other models; 0 means the planner's own
	Slack     float64 // accuracy that is given up for head-room; 0 means the planner's own, negative none
	Single    bool    // plan for batches of one
	Uniform   bool    // equal shares whatever an instance carries
	Oddities  bool    // as the published code does it, where it differs from the paper's text
}

// Renting tunes the planner that chooses machines.
type Renting struct {
	Budget float64 // $/h; 0 for none
	Bound  string  // paper (default) or fluid: what pools are compared by
	// part of the queries that the bound fluid leaves out; 0 means what the objective allows, negative none
	Late float64
}

// String lists what is not a default, as name=value.
func (o Options) String() string {
	var out []string
	add := func(name string, v any, given bool) {
		if given {
			out = append(out, fmt.Sprintf("%s=%v", name, v))
		}
	}
	p := &o.Planning
	add("batch", o.BatchSize, o.BatchSize > 0)
	add("timeout", o.Timeout, o.Timeout > 0)
	add("replan", o.Replan, o.Replan > 0)
	add("learn", o.Learn, o.Learn)
	add("select", p.Select, p.Select != "")
	add("place", p.Place, p.Place != "")
	add("goal", p.Goal, p.Goal != "")
	add("lambda", p.Lambda, p.Lambda > 0)
	add("headroom", max(p.Headroom, o.Packing.Headroom), p.Headroom > 0 || o.Packing.Headroom > 0)
	add("gap", p.Gap, p.Gap > 0)
	add("tolerance", p.Tolerance, p.Tolerance != 0)
	add("slack", p.Slack, p.Slack != 0)
	add("single", p.Single, p.Single)
	add("uniform", p.Uniform, p.Uniform)
	add("oddities", p.Oddities, p.Oddities)
	t := &o.Policies
	add("levels", t.Levels, t.Levels != 0)
	add("longest", t.Longest, t.Longest > 0)
	add("variable", t.Variable, t.Variable)
	add("balance", t.Balance, t.Balance != "")
	add("shape", t.Shape, t.Shape > 0)
	add("step", t.Step, t.Step > 0)
	add("alone", t.Alone, t.Alone)
	add("rates", t.Rates, t.Rates != "")
	add("budget", o.Renting.Budget, o.Renting.Budget > 0)
	add("bound", o.Renting.Bound, o.Renting.Bound != "")
	add("late", o.Renting.Late, o.Renting.Late != 0)
	add("cells", o.Routing.Cells, o.Routing.Cells > 0)
	add("threshold", o.Routing.Threshold, o.Routing.Threshold > 0)
	add("idle", o.Routing.Idle, o.Routing.Idle)
	k := &o.Packing
	add("latency", k.Latency, k.Latency > 0)
	add("merge", k.Merge, k.Merge != 0)
	add("balanced", k.Balanced, k.Balanced)
	add("dense", k.Dense, k.Dense)
	add("release", k.Release, k.Release)
	add("exact", k.Exact, k.Exact)
	add("single", k.Single, k.Single)
	add("fastest", k.Fastest, k.Fastest)
	add("uniform", k.Uniform, k.Uniform)
	add("first", k.First, k.First)
	add("part", fmt.Sprintf("%d+%d%%", k.Threads, k.Percent), k.Threads > 0)
	l := &o.Pipelines
	add("method", l.Method, l.Method != "")
	add("placement", l.Placement, l.Placement != "")
	add("spatial", false, l.Alone)
	add("within", l.Within, l.Within > 0)
	add("frontends", l.Frontends, l.Frontends > 0)
	add("alike", l.Alike, l.Alike != "")
	w := &o.Keeping
	add("keep", w.Rule, w.Rule != "")
	add("gamma", w.Gamma, w.Gamma > 0)
	add("head", w.Head, w.Head > 0)
	add("tail", w.Tail, w.Tail > 0)
	add("alive", w.Alive, w.Alive > 0)
	add("tracked", w.Tracked, w.Tracked > 0)
	add("cold_price", w.Price, w.Price > 0)
	add("linger", w.Linger, w.Linger > 0)
	add("alpha", w.Alpha, w.Alpha > 0)
	add("change", o.Following.Change, o.Following.Change > 0)
	add("turnoff", o.Following.TurnOff, o.Following.TurnOff > 0)
	return strings.Join(out, " ")
}
