package systems

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
)

// papers are docs/papers.md and the pages below it.
func papers(t *testing.T) string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/papers/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("docs/papers holds %d pages: %v", len(pages), err)
	}
	var all strings.Builder
	for _, page := range append(pages, "../../docs/papers.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// Every name leads to a component, every system builds, and docs/papers says where each comes from.
func TestRegistry(t *testing.T) {
	pages := papers(t)
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	named := slices.Concat(Names(), Routers(), Batchers(), Planners(), Scalers())
	for _, name := range named {
		if !strings.Contains(pages, "`"+name+"`") {
			t.Errorf("neither docs/papers.md nor a page of docs/papers mentions `%s`", name)
		}
	}
	for _, s := range All() {
		if s.Doc == "" || s.Source == "" {
			t.Errorf("system %q does not say what it does or where it comes from", s.Name)
		}
		if _, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides()); err != nil {
			t.Errorf("system %q: %v", s.Name, err)
		}
	}
	for _, name := range Routers() {
		if r, err := NewRouter(name, Options{}); err != nil || r.Name() != name {
			t.Errorf("router %q: %v", name, err)
		}
	}
	for _, name := range Batchers() {
		if b, err := NewBatcher(name, Options{}); err != nil || b.Name() != name {
			t.Errorf("batcher %q: %v", name, err)
		}
	}
	if _, err := Get("none"); err == nil || !strings.Contains(err.Error(), "use one of sluice, ") {
		t.Errorf("an unknown system: %v", err)
	}
}

// Static is the only planner that runs the written placement. Systems that name no planner use it.
func TestWritten(t *testing.T) {
	for _, name := range append(Planners(), "") {
		if got, want := Written(name), name == "static" || name == ""; got != want {
			t.Errorf("planner %q runs the written placement: %v", name, got)
		}
	}
}

// A composition that lacks a section of the plan is refused when it is built, and the error says what to do.
func TestMissingSections(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
	_, err := System{Router: "weighted", Batcher: "single"}.Engine(c.Spec, c.Profile, plan.Limits)
	if err == nil || !strings.Contains(err.Error(), `router "weighted" needs the plan's shares`) {
		t.Errorf("%v", err)
	}
}

// The options of renting reach the planner, and a value that does not exist is refused.
func TestRentingOptions(t *testing.T) {
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	var o Options
	if err := o.Set(map[string]string{"bound": "fluid", "late": "0.05"}); err != nil {
		t.Fatal(err)
	}
	o.Renting.Budget = 1
	if got := o.String(); got != "budget=1 bound=fluid late=0.05" {
		t.Errorf("options are shown as %q", got)
	}
	p, err := NewPlanner("kairos", PlannerInputs{Profile: c.Profile}, o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Plan(context.Background(), plan.Request{Spec: c.Spec})
	if err != nil || len(out.Instances) != 1 {
		t.Errorf("a budget of one machine of two rents %+v: %v", out, err)
	}
	if err := o.Set(map[string]string{"bound": "guess"}); err == nil {
		t.Error("a bound that does not exist was taken")
	}
	o.Renting.Bound = "guess"
	if _, err := NewPlanner("kairos", PlannerInputs{Profile: c.Profile}, o); err == nil {
		t.Error("a planner was made with a bound that does not exist")
	}
}

// The options of keep-alive rules are shown as they were given, and make the rule that is named.
func TestKeepAliveOptions(t *testing.T) {
	given := map[string]string{
		"keep": "lsth", "gamma": "0.3", "head": "0.1", "tail": "0.9", "alive": "1m0s", "linger": "20s",
		"tracked": "2h0m0s", "cold_price": "10m0s", "alpha": "0.5", "cells": "3",
	}
	var o Options
	if err := o.Set(given); err != nil {
		t.Fatal(err)
	}
	if got := o.Given(); !maps.Equal(got, given) {
		t.Errorf("options are %v, given were %v", got, given)
	}
	for _, name := range KeepAlives() {
		if err := o.Set(map[string]string{"keep": name}); err != nil {
			t.Error(err)
		}
		if k := NewKeepAlive(o.KeepAlive); k.Name() != name {
			t.Errorf("%s makes %s", name, k.Name())
		}
	}
	for k, v := range map[string]string{"keep": "for ever", "gamma": "1", "alive": "soon", "tracked": "-1h"} {
		if err := o.Set(map[string]string{k: v}); err == nil {
			t.Errorf("%s %s was taken", k, v)
		}
	}
	if got := (Options{}).String(); got != "" {
		t.Errorf("nothing given, options are %v", got)
	}
}

// The options of pipelines reach the planners and are shown, and a value that does not exist is refused.
func TestPipelineOptions(t *testing.T) {
	c := simtest.Uniform(3, time.Millisecond, time.Millisecond, time.Second, 8)
	var o Options
	if err := o.Set(map[string]string{
		"method": "greedy", "placement": "paper", "spatial": "false", "frontends": "3", "alike": "cpu",
	}); err != nil {
		t.Fatal(err)
	}
	if got := o.String(); got != "method=greedy placement=paper spatial=false frontends=3 alike=cpu" {
		t.Errorf("options are shown as %q", got)
	}
	r := plan.Request{Spec: c.Spec, Rates: []float64{10}}
	for _, name := range []string{"scrooge", "nexus"} {
		p, err := NewPlanner(name, PlannerInputs{Profile: c.Profile}, o)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Plan(context.Background(), r); err != nil || len(out.Instances) != 1 ||
			out.Forecast.CostPerHour != 1 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	o.Pipelines.Alike = "gpu"
	if p, err := NewPlanner("nexus", PlannerInputs{Profile: c.Profile}, o); err != nil {
		t.Error(err)
	} else if _, err := p.Plan(context.Background(), r); err == nil || !strings.Contains(err.Error(), `"gpu"`) {
		t.Errorf("all machines like one that does not exist: %v", err)
	}
	o.Pipelines.Method = "guess"
	if _, err := NewPlanner("scrooge", PlannerInputs{Profile: c.Profile}, o); err == nil {
		t.Error("a planner was made with method guess")
	}
	for k, v := range map[string]string{"method": "guess", "placement": "free", "spatial": "maybe", "frontends": "0"} {
		if err := o.Set(map[string]string{k: v}); err == nil {
			t.Errorf("%s %s was taken", k, v)
		}
	}
}
