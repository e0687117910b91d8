package priced

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// model is a variant: a batch of n items takes base + n*each ms, and as many times that as batches run at once.
type model struct {
	accuracy   float64
	base, each float64
}

// service is an app: by stage, its variants. Each stage sends an item to the next for each of its own.
type service struct {
	slo    float64 // ms
	late   bool    // late queries are served
	floor  float64 // below which accuracy answers only pinned queries
	stages [][]model
}

// lab is a small fleet under the rule, which is called as an engine calls it.
type lab struct {
	*Rule
	spec   *serving.Spec
	models []model
	fleet  *fleet.Fleet
	seen   *monitor.Rates
	view   route.View
	all    []*fleet.Instance
	tasks  int
	begun  int
}

// Latency implements profile.Profile.
func (l *lab) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, together int) time.Duration {
	m := &l.models[v]
	return time.Duration((m.base + float64(items)*m.each) * float64(together) * 1e6)
}

// Load implements profile.Profile.
func (*lab) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// Learner implements profile.Profile.
func (*lab) Learner() profile.Learner { return nil }

const mostItems = 4 // of a batch in a lab

// newLab returns machines that hold these variants each, in batches of up to mostItems. nil stands for all variants.
func newLab(services []service, machines ...[]serving.VariantID) *lab {
	l := &lab{Rule: New(Options{}), spec: &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "any"}}}}
	for a, s := range services {
		app := serving.App{
			Name: fmt.Sprint("app ", a), Weight: 1, Floor: s.floor,
			SLO: serving.SLO{Latency: time.Duration(s.slo * 1e6), Percentile: 99},
		}
		if s.late {
			app.Late = serving.ServeLate
		}
		for k, variants := range s.stages {
			id := serving.StageID(len(l.spec.Stages))
			stage := serving.Stage{Name: fmt.Sprint("stage ", id), App: serving.AppID(a), Joins: min(k, 1)}
			if k+1 < len(s.stages) {
				stage.Next = []serving.Edge{{To: id + 1, FanOut: 1}}
			}
			for _, m := range variants {
				stage.Variants = append(stage.Variants, serving.VariantID(len(l.models)))
				l.spec.Variants = append(l.spec.Variants, serving.Variant{
					Name: fmt.Sprint("variant ", len(l.models)), Stage: id, Accuracy: m.accuracy, MaxBatch: mostItems,
				})
				l.models = append(l.models, m)
			}
			app.Stages, l.spec.Stages = append(app.Stages, id), append(l.spec.Stages, stage)
		}
		l.spec.Apps = append(l.spec.Apps, app)
	}
	l.fleet, l.seen = fleet.New(l.spec, l), monitor.NewRates(len(l.spec.Apps))
	for w, held := range machines {
		for s := range l.spec.Stages {
			p := fleet.Placement{
				Key:   fleet.Key{Worker: serving.WorkerID(w), Ordinal: int32(s)},
				Stage: serving.StageID(s), Built: 1, Terms: fleet.Terms{Slots: 1, TimeShared: true},
			}
			for _, v := range l.spec.Stages[s].Variants {
				if held == nil || slices.Contains(held, v) {
					p.Variants = append(p.Variants, fleet.Loaded{Variant: v, Limit: mostItems, Wanted: true})
				}
			}
			if len(p.Variants) == 0 {
				continue
			}
			i := l.fleet.Launch(p, 0)
			for _, x := range p.Variants {
				l.fleet.Warm(i, x.Variant)
			}
			l.all = append(l.all, i)
		}
	}
	l.view.Open(l.fleet, &l.seen.View)
	l.at(0)
	return l
}

// at sets the time, in ms.
func (l *lab) at(ms float64) *lab {
	l.view.Begin(serving.Time(ms*1e6), -1, nil)
	return l
}

// come has queries of an app arrive over the last second.
func (l *lab) come(app serving.AppID, n int) *lab {
	const second = serving.Time(time.Second)
	for k := range n {
		l.seen.Add(l.view.Now-second+serving.Time(k+1)*second/serving.Time(n), app)
	}
	return l
}

// wait adds tasks of an item to a stage's queue that have so many ms left, for the stage and for the query.
func (l *lab) wait(s serving.StageID, left ...float64) *lab {
	for _, ms := range left {
		l.add(fleet.Work{Stage: s, Items: 1, Pin: serving.None}, ms)
	}
	return l
}

// add adds a task that has so many ms left, for the stage and, where nothing else is said, for the query.
func (l *lab) add(w fleet.Work, left float64) *lab {
	l.tasks++
	w.Query = serving.QueryID(l.tasks)
	w.Deadline = l.view.Now + serving.Time(left*1e6)
	w.Due = max(w.Due, w.Deadline)
	w.LatestEnd = w.Due
	l.fleet.Wait(l.fleet.Add(&w))
	return l
}

// run has an instance run a batch of as many tasks as these, which have so many ms left, for as long as believed.
func (l *lab) run(i *fleet.Instance, v serving.VariantID, left ...float64) *lab {
	for _, ms := range left {
		w := fleet.Work{Stage: i.Stage(), Items: 1, Pin: serving.None, Query: serving.QueryID(1000 + l.begun)}
		w.Deadline = l.view.Now + serving.Time(ms*1e6)
		w.LatestEnd, w.Due = w.Deadline, w.Deadline
		r := l.fleet.Add(&w)
		l.fleet.Wait(r)
		l.fleet.Assign(r, i, l.view.Now)
	}
	l.begun++
	l.fleet.Start(i, serving.BatchID(l.begun), v, len(left), l.view.Now, l.Latency(v, 0, len(left), 1))
	return l
}

// decide calls the rule. It returns what was given to instances, as "variant: tasks" in their order.
func (l *lab) decide() (given []string) {
	l.Route(&l.view)
	for _, i := range l.all {
		if n := i.Queue().Len(); n > 0 {
			given = append(given, fmt.Sprintf("%d: %d", i.Choice(), n))
		}
	}
	return given
}

// want checks what the rule gives to instances.
func (l *lab) want(t *testing.T, why string, given ...string) {
	t.Helper()
	if got := l.decide(); !slices.Equal(got, given) {
		t.Errorf("%s: given %q, want %q", why, got, given)
	}
}

// near checks a number that a test works out by hand.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if d := got - want; !(d < 1e-6 && d > -1e-6) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
