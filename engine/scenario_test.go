package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Scenarios: scripts with recorded output in testdata. Run with -rewrite to record anew, and commit the change only if
// you understand what caused it.
//
//	world router=R batcher=B [slo=100ms] [late=drop|serve-late] [give_up=0s] [slack=0s] [queue=100] [scaler=fixed]
//	      [replan=30s] [memory=BYTES] [cold_wait=0s] [keep=RULE] [alive=5m] [turnoff=0s] [change=0.25]
//	queue [delay=0s] [enough=0]                       limits of the queue of the stage above, or of the only one
//	level [timeout=0s] [defers=1] [override=1] [limit=0]  a level of priority of that queue
//	stage NAME [next=NAME:FANOUT,...] [stateful=1]    stages in topological order
//	variant NAME accuracy=0.9 base=10ms item=5ms [max=8] [stage=NAME] [memory=BYTES] [each=BYTES]
//	instance worker=0 variants=NAME,... [slots=1] [limit=8] [share=1] [stage=NAME] [low=0] [up=0] [place=N]
//	      [turns=1]                                   with the other such instances of its worker
//
//	carries capacity=10 demand=10            (in a plan)
//
//	at T          (one line for each input)
//	arrive q [items=1] [due=T] [priority=1] [floor=0.9] [pin=NAME] [stream=1] [slack=0s] [timeout=0s]
//	ready i NAME / failed i NAME / lost i / done b [sent=3,1] [took=T] / broken b / oom b / cancel q
//	machine w leaving / machine w missing for=T / machine w stays / machine w came took=T
//	plan / unplanned [why=TEXT]
//	recall every=T calls=N idle=T    (what the app's keep-alive rule learned from N calls, one every T)
//
// The output is every decision, with the times of its stages where a query had several and of waiting for its stream,
// then when the engine wants to be woken.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s scenario
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world":
				if err := s.build(d); err != nil {
					return err.Error() + "\n"
				}
				return s.step(0, []engine.Input{{Kind: engine.PlanReady, Plan: s.plan}})
			case "plan": // replaces the instances; takes force with the input "plan"
				return s.instances(d.Input)
			case "at":
				at, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					return err.Error() + "\n"
				}
				in, err := s.inputs(serving.Time(at), d.Input)
				if err != nil {
					return err.Error() + "\n"
				}
				return s.step(serving.Time(at), in)
			}
			return "unknown command " + d.Cmd + "\n"
		})
	})
}

type scenario struct {
	spec      *serving.Spec
	profile   latencies
	engine    *engine.Engine
	plan      *plan.Plan
	keepAlive systems.KeepAliveOptions
	seq       uint64 // of the last plan request
}

// latencies are linear in the items, by variant.
type latencies [][2]time.Duration

func (l latencies) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return l[v][0] + time.Duration(items)*l[v][1]
}
func (latencies) Learner() profile.Learner { return nil }

func (l latencies) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

var _ profile.Profile = latencies(nil)

// words splits "name key=value ..." .
func words(line string) (name []string, args map[string]string) {
	args = make(map[string]string)
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			args[k] = v
		} else {
			name = append(name, w)
		}
	}
	return name, args
}

func (s *scenario) build(d *datadriven.TestData) error {
	head := make(map[string]string)
	for _, a := range d.CmdArgs {
		head[a.Key] = a.Vals[0]
	}
	*s = scenario{
		spec: &serving.Spec{
			DeviceTypes: []serving.DeviceType{{Name: "d", MemoryBytes: int64(number(head["memory"], 0))}},
		},
	}
	app := serving.App{
		Name: "app", Weight: 1, SLO: serving.SLO{
			Latency: duration(head["slo"], 100*time.Millisecond), Percentile: 99,
		}, QueueLimit: number(head["queue"], 100),
	}
	app.Slack, _ = time.ParseDuration(head["slack"])
	app.ColdWait, _ = time.ParseDuration(head["cold_wait"])
	if head["late"] == "serve-late" {
		app.Late = serving.ServeLate
		app.GiveUp, _ = time.ParseDuration(head["give_up"])
	}
	var placed []string
	type edge struct{ from, to, fan string }
	var edges []edge
	for _, line := range strings.Split(d.Input, "\n") {
		name, args := words(line)
		if len(name) == 0 {
			continue
		}
		switch name[0] {
		case "stage":
			app.Stages = append(app.Stages, serving.StageID(len(s.spec.Stages)))
			s.spec.Stages = append(s.spec.Stages, serving.Stage{Name: name[1], Stateful: args["stateful"] != ""})
			for _, n := range strings.Split(args["next"], ",") {
				if to, fan, ok := strings.Cut(n, ":"); ok {
					edges = append(edges, edge{name[1], to, fan})
				}
			}
		case "variant":
			if len(s.spec.Stages) == 0 {
				app.Stages = append(app.Stages, 0)
				s.spec.Stages = append(s.spec.Stages, serving.Stage{Name: "app"})
			}
			st := s.stage(args["stage"])
			id := serving.VariantID(len(s.spec.Variants))
			s.spec.Variants = append(s.spec.Variants,
				serving.Variant{Name: name[1], Stage: st, Accuracy: float(args["accuracy"], 0.9),
					MaxBatch:    number(args["max"], 8),
					MemoryBytes: int64(number(args["memory"], 0)), ItemBytes: int64(number(args["each"], 0))})
			s.spec.Stages[st].Variants = append(s.spec.Stages[st].Variants, id)
			s.profile = append(s.profile, [2]time.Duration{
				duration(args["base"], 10*time.Millisecond), duration(args["item"], 5*time.Millisecond),
			})
		case "queue", "level":
			if len(s.spec.Stages) == 0 {
				app.Stages = append(app.Stages, 0)
				s.spec.Stages = append(s.spec.Stages, serving.Stage{Name: "app"})
			}
			st := &s.spec.Stages[len(s.spec.Stages)-1]
			if name[0] == "queue" {
				var preferred []int
				for _, n := range strings.Split(args["preferred"], "/") {
					if n != "" {
						preferred = append(preferred, number(n, 0))
					}
				}
				st.Queue = &serving.QueueRules{
					Delay: duration(args["delay"], 0), Preferred: preferred,
				}
				break
			}
			st.Queue.Default = 1
			st.Queue.Levels = append(st.Queue.Levels, serving.QueueLevel{
				Timeout: duration(args["timeout"], 0), Defers: args["defers"] != "", Override: args["override"] != "",
				Limit: number(args["limit"], 0),
			})
		case "instance":
			placed = append(placed, line)
		}
	}
	for _, e := range edges {
		from, to := s.stage(e.from), s.stage(e.to)
		s.spec.Stages[from].Next = append(s.spec.Stages[from].Next, serving.Edge{To: to, FanOut: float(e.fan, 1)})
		s.spec.Stages[to].Joins++
	}
	s.spec.Apps = []serving.App{app}
	for w := range 8 {
		s.spec.Workers = append(s.spec.Workers, serving.Worker{Name: fmt.Sprint("w", w)})
	}
	s.instances(strings.Join(placed, "\n"))
	s.keepAlive = systems.KeepAliveOptions{Rule: head["keep"], Alive: duration(head["alive"], 0)}
	var err error
	s.engine, err = systems.System{Router: head["router"], Batcher: head["batcher"], Scaler: head["scaler"],
		Options: systems.Options{Timeout: duration(head["timeout"], 0), BatchSize: number(head["size"], 0),
			Replan:    duration(head["replan"], 0),
			Following: systems.Following{TurnOff: duration(head["turnoff"], 0), Change: float(head["change"], 0)},
			KeepAlive: s.keepAlive}}.
		Engine(s.spec, s.profile, plan.Shares|plan.Limits|plan.BatchTimeouts|plan.Bands)
	return err
}

func (s *scenario) instances(text string) string {
	s.plan = &plan.Plan{Planner: "script"}
	if s.engine != nil {
		s.plan.Snapshot = s.seq
	}
	for _, line := range strings.Split(text, "\n") {
		name, args := words(line)
		if len(name) == 0 {
			continue
		}
		if name[0] == "carries" {
			s.plan.Capacity = []float64{float(args["capacity"], 0)}
			s.plan.Demand = []float64{float(args["demand"], 0)}
			continue
		}
		i := plan.Instance{Worker: serving.WorkerID(number(args["worker"], 0)), Stage: s.stage(args["stage"]),
			Slots: number(args["slots"], 1), Share: float(args["share"], 1), Place: int32(number(args["place"], 0)),
			Low: float(args["low"], 0), Up: float(args["up"], 0), TimeShared: args["turns"] != ""}
		for _, v := range strings.Split(args["variants"], ",") {
			i.Variants = append(i.Variants, plan.Variant{Variant: s.variant(v), Limit: number(args["limit"], 8)})
		}
		s.plan.Instances = append(s.plan.Instances, i)
	}
	return ""
}

func (s *scenario) stage(name string) serving.StageID {
	for k := range s.spec.Stages {
		if s.spec.Stages[k].Name == name {
			return serving.StageID(k)
		}
	}
	return 0
}

func (s *scenario) variant(name string) serving.VariantID {
	for k := range s.spec.Variants {
		if s.spec.Variants[k].Name == name {
			return serving.VariantID(k)
		}
	}
	return serving.None
}

func (s *scenario) inputs(at serving.Time, text string) ([]engine.Input, error) {
	var in []engine.Input
	for _, line := range strings.Split(text, "\n") {
		name, args := words(line)
		if len(name) == 0 {
			continue
		}
		id := 0
		if len(name) > 1 {
			id = number(strings.TrimLeft(name[1], "qib"), 0)
		}
		x := engine.Input{Variant: serving.None}
		switch name[0] {
		case "arrive":
			x.Kind = engine.QueryArrived
			x.Query = serving.Query{ID: serving.QueryID(id), Arrived: at,
				Deadline: at.Add(duration(args["due"], s.spec.Apps[0].SLO.Latency)),
				Items:    int32(number(args["items"], 1)),
				Priority: int32(number(args["priority"], 0)), MinAccuracy: float(args["floor"], 0),
				Variant: s.variant(args["pin"]), Stream: uint64(number(args["stream"], 0)),
				Slack: duration(args["slack"], 0), QueueTimeout: duration(args["timeout"], 0)}
		case "cancel":
			x.Kind, x.Query.ID = engine.QueryCancelled, serving.QueryID(id)
		case "ready", "failed", "lost":
			x.Kind, x.Instance, x.Change = engine.InstanceChanged, serving.InstanceID(id), map[string]engine.Change{
				"ready": engine.VariantReady, "failed": engine.LoadFailed, "lost": engine.Lost,
			}[name[0]]
			if len(name) > 2 {
				x.Variant = s.variant(name[2])
			}
		case "machine":
			var ok bool
			x.Kind, x.Worker = engine.MachineChanged, serving.WorkerID(id)
			if x.Machine, ok = engine.ParseMachineChange(name[2]); !ok {
				return nil, fmt.Errorf("machine change %q is unknown", name[2])
			}
			x.For, x.Took = duration(args["for"], 0), duration(args["took"], 0)
		case "done", "broken", "oom":
			x.Kind, x.Batch = engine.BatchDone, serving.BatchID(id)
			x.Took = duration(args["took"], 0)
			switch name[0] {
			case "broken":
				x.Result = engine.Broken
			case "oom":
				x.Result = engine.Exceeded
			}
			for _, i := range s.engine.Fleet().Live() {
				for k := range i.Running() {
					if i.Batch(k).ID == x.Batch {
						x.Instance = i.ID()
					}
				}
			}
			if args["sent"] != "" {
				for _, n := range strings.Split(args["sent"], ",") {
					x.Emitted = append(x.Emitted, int32(number(n, 0)))
				}
			}
		case "plan":
			x.Kind, x.Plan = engine.PlanReady, s.plan
		case "unplanned":
			x.Kind, x.Failure = engine.PlanFailed, &engine.PlanFailure{Seq: s.seq, Err: args["why"]}
		case "recall":
			rule := func() inflessrules.KeepAlive { return systems.NewKeepAlive(s.keepAlive) }
			keepAlive := inflessrules.NewRateBands(rule)
			every, now := duration(args["every"], time.Minute), serving.Time(0)
			for range number(args["calls"], 10) {
				now = now.Add(every)
				keepAlive.Invoked(now, 0, every)
			}
			idle := duration(args["idle"], 0)
			x.Kind, x.Recalled = engine.IdleRecalled, &engine.Recalled{
				Memory: keepAlive.Remember(0, now), Older: idle, Idle: idle,
			}
		default:
			return nil, fmt.Errorf("unknown input %q", name[0])
		}
		in = append(in, x)
	}
	engine.Sort(in)
	return in, nil
}

func (s *scenario) step(at serving.Time, in []engine.Input) string {
	var b strings.Builder
	out := s.engine.Step(at, in)
	for k := range out {
		text := out[k].String()
		if r := out[k].Request; r != nil {
			sn := r.Snapshot
			s.seq = sn.Seq
			for _, w := range sn.Down {
				text += fmt.Sprintf(", worker %d down", w)
			}
			for _, v := range sn.Broken {
				text += fmt.Sprintf(", %s broken", s.spec.Variants[v].Name)
			}
		}
		for v := range s.spec.Variants {
			text = strings.ReplaceAll(text, fmt.Sprintf("variant %d", v), s.spec.Variants[v].Name)
		}
		fmt.Fprintln(&b, text)
		for _, x := range out[k].Tasks {
			if x.Turn > 0 {
				fmt.Fprintf(&b, "  q%d has waited %v for its stream, %v for an instance, %v in all\n", x.Query, x.Turn,
					x.Route, x.Queue)
			}
		}
		for _, x := range out[k].Stages {
			fmt.Fprintf(&b, "  %s on %s: %d items in a batch of %d, ready %v, started %v, done %v\n",
				s.spec.Stages[x.Stage].Name, s.spec.Variants[x.Variant].Name,
				x.Items, x.Batch, x.Ready, x.Started, x.Done)
		}
	}
	fmt.Fprintf(&b, "wake %v\n", s.engine.NextWake())
	if err := s.engine.Check(); err != nil {
		fmt.Fprintln(&b, "INVARIANT:", err)
	}
	return b.String()
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}

func float(s string, otherwise float64) float64 {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return otherwise
}

func duration(s string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	return otherwise
}
