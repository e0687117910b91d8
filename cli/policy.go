package cli

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func policyCommand() command {
	return command{
		name: "policy", summary: "make, look at and check the policies that choose variants by the state of a queue",
		usage: "generate | show | verify",
		about: `
A policy says for every state of a queue, how many queries wait and how much time the first of them has left,
which variant to run on how many of them. It is made in advance for an arrival rate and promises an accuracy and
a share of late queries. Systems whose planner makes policies (ramsis and its kin) have a set of them, for rates
up to what the workers carry; they are kept in the folder sluice.policies beside the sluice.yaml, where every
command finds them again.`,
		examples: "sluice policy generate -f sluice.yaml\nsluice policy show -f sluice.yaml --rate 100\nsluice " +
			"policy verify -f sluice.yaml",
		verbs: []command{policyGenerateCommand(), policyShowCommand(), policyVerifyCommand()},
	}
}

// policyFlags are common to the verbs.
type policyFlags struct {
	file, profile, system, rates *string
	asJSON                       *bool
}

func declarePolicy(fs *flag.FlagSet, rates string) *policyFlags {
	return &policyFlags{
		file:    fs.String("f", "sluice.yaml", "configuration `file`"),
		profile: fs.String("profile", "", "profile `file` instead of those of the configuration"),
		system:  fs.String("system", "", "`name` of another system than the configuration's"),
		rates:   fs.String("rates", "", rates),
		asJSON:  fs.Bool("json", false, "print JSON"),
	}
}

// policySets are what a world's planner has made, or found: a set for each type of worker of each app.
type policySets struct {
	world *world
	plan  *plan.Plan
	notes *noted
}

// open reads the configuration and has the policies made that are missing.
func (p *policyFlags) open(e *Env) (*policySets, error) {
	w, err := openWorld(e, *p.file)
	if err != nil {
		return nil, err
	}
	w.unplanned = true
	if *p.system != "" {
		if err := w.useSystem(*p.system); err != nil {
			return nil, err
		}
	}
	rates := make([]float64, len(w.Spec.Apps))
	if *p.rates == "" {
		rates = w.demand()
	} else if err := w.system.Options.Set(map[string]string{"rates": *p.rates}); err != nil {
		return nil, exit(ExitUsage, "--rates: %w", err)
	}
	var given []string
	if *p.profile != "" {
		given = []string{*p.profile}
	}
	if err := w.believe(given); err != nil {
		return nil, err
	}
	out := &policySets{
		world: w, notes: &noted{Store: w.making.store, since: time.Now(), notes: make(map[*plan.Choice]note)},
	}
	w.making.through = out.notes
	planner, err := w.newPlanner(w.system)
	if err != nil {
		return nil, err
	}
	if planner.Provides()&plan.Tables == 0 {
		return nil, exit(ExitUsage, "system %s makes no policies; pass --system ramsis, or one of its kin that "+
			"'sluice systems' lists", w.system.Name)
	}
	w.planner = planner
	done := w.making.wait(e, newProgress(e))
	out.plan, err = planner.Plan(e.Context, plan.Request{Spec: w.Spec, Rates: rates})
	done()
	if err != nil && e.Context.Err() == nil {
		err = &status{ExitConfig, err}
	}
	return out, err
}

// app is whose policies these are.
func (s *policySets) app(p *plan.Policies) serving.AppID { return s.world.Spec.Stages[p.Stage].App }

// workerType is the name of the type of worker that a set is for.
func (s *policySets) workerType(p *plan.Policies) string {
	if p.DeviceType == serving.None {
		return "any"
	}
	return s.world.Spec.DeviceTypes[p.DeviceType].Name
}

// noted is a store that remembers where a policy lies and how long it took to be made.
type noted struct {
	ramsis.Store
	since time.Time
	notes map[*plan.Choice]note // by the first of a policy's choices: copies of a policy share them
}

type note struct {
	key  string
	took time.Duration // 0 where it was found
}

// Get implements ramsis.Store.
func (n *noted) Get(key string) (*plan.Policy, bool) {
	p, ok := n.Store.Get(key)
	if ok {
		n.notes[&p.Choices[0]] = note{key: key}
	}
	n.since = time.Now()
	return p, ok
}

// Put implements ramsis.Store.
func (n *noted) Put(key string, p *plan.Policy) {
	n.notes[&p.Choices[0]] = note{key, max(time.Since(n.since), 1)}
	n.Store.Put(key, p)
	n.since = time.Now()
}

// policyView is a policy with what it promises, for programs.
type policyView struct {
	App        string   `json:"app"`
	WorkerType string   `json:"worker_type"`
	Rate       float64  `json:"rate"` // queries/s at all workers of the app
	Accuracy   float64  `json:"expected_accuracy"`
	Violation  float64  `json:"expected_violation_ratio"`
	Median     float64  `json:"median_accuracy"`
	Worst99    float64  `json:"worst_99_accuracy"`
	Busy       float64  `json:"utilization"`
	TookMS     *float64 `json:"took_ms,omitempty"` // nil where it was found
	File       string   `json:"file,omitempty"`
}

func (s *policySets) view(set *plan.Policies, p *plan.Policy) policyView {
	v := policyView{App: s.world.Spec.Apps[s.app(set)].Name, WorkerType: s.workerType(set), Rate: p.Rate,
		Accuracy:  p.Promise.Accuracy,
		Violation: p.Promise.Violation, Median: p.Promise.MedianAccuracy, Worst99: p.Promise.Worst99Accuracy,
		Busy: p.Promise.Utilization}
	if n, ok := s.notes.notes[&p.Choices[0]]; ok {
		v.File = filepath.Join(s.world.making.dir, n.key+".json")
		if n.took > 0 {
			ms := millis(n.took)
			v.TookMS = &ms
		}
	}
	return v
}

// only returns the sets of an app and a type of worker, each left open by "".
func (s *policySets) only(app, workerType string) ([]*plan.Policies, error) {
	var out []*plan.Policies
	var known []string
	for i := range s.plan.Policies {
		p := &s.plan.Policies[i]
		a, t := s.world.Spec.Apps[s.app(p)].Name, s.workerType(p)
		known = append(known, fmt.Sprintf("--app %s --worker-type %s", a, t))
		if (app == "" || app == a) && (workerType == "" || workerType == t) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, exit(ExitUsage, "there are no such policies; there are %s", strings.Join(known, "; "))
	}
	return out, nil
}

// parseRates reads numbers separated by commas and sorts them.
func parseRates(text string) ([]float64, error) {
	var out []float64
	for _, x := range strings.Split(text, ",") {
		r, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil || !(r > 0) || r > 1e9 {
			return nil, exit(ExitUsage, "%q is not a rate: want numbers of queries/s above 0, separated by commas",
				strings.TrimSpace(x))
		}
		out = append(out, r)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
