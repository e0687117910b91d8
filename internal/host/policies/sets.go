// Package policies makes, describes and checks policies: tables that choose a variant and a number of queries by the
// state of a queue, made in advance for an arrival rate. They belong to systems whose planner makes them, such as
// ramsis.
//
// Rates are in queries/s; accuracies and shares are fractions in [0, 1].
package policies

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Sets are the policies of a configuration. Each app has a set for each type of its workers, and a set has a policy for
// each of several arrival rates.
type Sets struct {
	profiled *host.Profiled
	planner  plan.Planner
	plan     *plan.Plan
	notes    *timedStore
}

// Make returns the policies of a configuration for the given rates, in queries/s. Without rates it takes those that the
// system's options and the expected demand require. Existing policies are read from the store, and the planner makes
// the missing ones. An error is of kind fault.Usage when the system makes no policies.
func Make(ctx context.Context, p *host.Profiled, rates []float64) (*Sets, error) {
	system, demand := p.System(), p.Demand()
	if len(rates) > 0 {
		system.Options.Policies.Rates = rates
		p, demand = p.Under(system), make([]float64, len(demand))
	}
	notes := &timedStore{Store: p.Policies(), since: time.Now(), notes: make(map[*plan.Choice]note)}
	planner, err := p.PlannerWith(system, notes)
	if err != nil {
		return nil, err
	}
	if planner.Provides()&plan.Tables == 0 {
		return nil, fault.Errorf(fault.Usage, "system %s makes no policies; pass --system ramsis, or one of its kin "+
			"that 'sluice systems' lists", system.Name)
	}
	made, err := planner.Plan(ctx, plan.Request{Spec: p.Spec(), Rates: demand})
	if err != nil {
		if ctx.Err() == nil {
			err = fault.Wrap(fault.Config, err)
		}
		return nil, err
	}
	return &Sets{profiled: p, planner: planner, plan: made, notes: notes}, nil
}

// Policy describes a policy and its promise.
type Policy struct {
	App        string   `json:"app"`
	WorkerType string   `json:"worker_type"`
	Rate       float64  `json:"rate"` // at all workers of the app
	Accuracy   float64  `json:"expected_accuracy"`
	Violation  float64  `json:"expected_violation_ratio"` // negative if not known
	Median     float64  `json:"median_accuracy"`          // 0 if not known
	Worst99    float64  `json:"worst_99_accuracy"`        // reached by at least 99 % of the queries; 0 if not known
	Busy       float64  `json:"utilization"`
	TookMS     *float64 `json:"took_ms,omitempty"` // nil if it was found in the store
	File       string   `json:"file,omitempty"`    // path of its file; empty if it is not kept
}

// All lists the policies, by set and then by rate.
func (s *Sets) All() (out []Policy) {
	for i := range s.plan.Policies {
		set := &s.plan.Policies[i]
		for k := range set.ByRate {
			out = append(out, s.describe(set, &set.ByRate[k]))
		}
	}
	return out
}

// Kept returns the folder in which the policies are kept; "" when none is kept.
func (s *Sets) Kept() string {
	if len(s.notes.notes) == 0 {
		return ""
	}
	return s.profiled.PoliciesPath()
}

func (s *Sets) describe(set *plan.Policies, p *plan.Policy) Policy {
	v := Policy{App: s.profiled.Spec().Apps[s.app(set)].Name, WorkerType: s.workerType(set), Rate: p.Rate,
		Accuracy: p.Promise.Accuracy, Violation: p.Promise.Violation, Median: p.Promise.MedianAccuracy,
		Worst99: p.Promise.Worst99Accuracy, Busy: p.Promise.Utilization}
	if n, ok := s.notes.notes[&p.Choices[0]]; ok {
		v.File = filepath.Join(s.profiled.PoliciesPath(), n.key+".json")
		if n.took > 0 {
			ms := quantity.Milliseconds(n.took)
			v.TookMS = &ms
		}
	}
	return v
}

// app returns the app of a set.
func (s *Sets) app(p *plan.Policies) serving.AppID { return s.profiled.Spec().Stages[p.Stage].App }

// workerType returns the name of the type of worker of a set.
func (s *Sets) workerType(p *plan.Policies) string {
	if p.DeviceType == serving.None {
		return "any"
	}
	return s.profiled.Spec().DeviceTypes[p.DeviceType].Name
}

// of returns the sets of an app and a type of worker, by name; "" means any.
func (s *Sets) of(app, workerType string) ([]*plan.Policies, error) {
	var out []*plan.Policies
	var known []string
	for i := range s.plan.Policies {
		p := &s.plan.Policies[i]
		a, t := s.profiled.Spec().Apps[s.app(p)].Name, s.workerType(p)
		known = append(known, fmt.Sprintf("--app %s --worker-type %s", a, t))
		if (app == "" || app == a) && (workerType == "" || workerType == t) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, fault.Errorf(fault.Usage, "there are no such policies; there are %s", strings.Join(known, "; "))
	}
	return out, nil
}

// timedStore is a store that remembers the file of a policy and the time to make it.
type timedStore struct {
	ramsis.Store
	since time.Time
	notes map[*plan.Choice]note // by the first of a policy's choices: copies of a policy share them
}

type note struct {
	key  string
	took time.Duration // 0 if it was found in the store
}

// Get implements ramsis.Store.
func (n *timedStore) Get(key string) (*plan.Policy, bool) {
	p, ok := n.Store.Get(key)
	if ok {
		n.notes[&p.Choices[0]] = note{key: key}
	}
	n.since = time.Now()
	return p, ok
}

// Put implements ramsis.Store.
func (n *timedStore) Put(key string, p *plan.Policy) {
	n.notes[&p.Choices[0]] = note{key, max(time.Since(n.since), 1)}
	n.Store.Put(key, p)
	n.since = time.Now()
}
