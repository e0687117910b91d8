package systems

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/policy/scale"
)

// The systems of the registry set no option that none of their components reads.
func TestSystemsSetWhatTheyRead(t *testing.T) {
	for _, s := range All() {
		again := s
		again.Options = Options{}
		if err := again.Set(untyped(s.Options.Given())); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("system %s: %v", s.Name, err)
		}
	}
}

// untyped are texts as values.
func untyped(given map[string]string) map[string]any {
	out := make(map[string]any, len(given))
	for name, text := range given {
		out[name] = text
	}
	return out
}

// An option that no component of the system reads is an error that names the components that would.
func TestUnreadOptionsAreRefused(t *testing.T) {
	const remedy = "leave it out, or choose a component that reads it"
	for _, x := range []struct {
		system string
		given  map[string]string
		want   string
	}{
		{"infless", map[string]string{"gamma": "0.3", "linger": "1m", "turnoff": "1s"}, ""},
		{"kairos", map[string]string{"budget": "2", "bound": "fluid", "cells": "2", "learn": "false"}, ""},
		{"infless", map[string]string{"keep": "cheapest", "cold_price": "1h"}, ""},
		{
			"proteus", map[string]string{"gamma": "0.3"},
			`option "gamma" is read by the keep-alive rule lsth; system proteus has none: ` + remedy,
		},
		{
			"infless", map[string]string{"keep": "cheapest", "gamma": "0.3"},
			`option "gamma" is read by the keep-alive rule lsth; system infless has the keep-alive rule cheapest: ` +
				remedy,
		},
		{
			"fcfs+adaptive", map[string]string{"release": "false", "replan": "2s"},
			`option "release" is read by the planners infaas and infless and the batcher aimd; system fcfs+adaptive ` +
				`has the planner static and the batcher adaptive: ` + remedy + "\n" +
				`option "replan" is read by the scalers periodic, replan, mixshift, trypools, anticipate, ratebands, ` +
				`complexity and arrivals; system fcfs+adaptive has the scaler fixed: ` + remedy,
		},
	} {
		s, err := Named(x.system)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Set(untyped(x.given)); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s with %v: %s\nwant %s", x.system, x.given, got, x.want)
		}
	}
}

// The components that the table lists for an option are exactly those that differ when the option does.
func TestComponentsReadTheOptionsOfTheTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	for _, k := range Kinds() {
		for _, p := range Components(k) {
			if k == Engine {
				continue // TestEverySystemIsRecorded
			}
			for at := range table {
				o := &table[at]
				differs := false
				for range 20 {
					changed := Options{}
					if k == KeepAlive {
						changed.KeepAlive.Rule = p.Name
					}
					plain := changed
					if err := changed.Set(map[string]string{o.Name: some(rng, o)}); err != nil {
						t.Fatal(err)
					}
					differs = differs || !same(built(t, p, c, plain), built(t, p, c, changed))
				}
				if k == KeepAlive && o.Name == "keep" {
					continue // it chose the rule
				}
				if _, listed := o.reader(p); listed != differs {
					t.Errorf("option %s is listed for the %v: %v; the component differs with it: %v", o.Name, p, listed,
						differs)
				}
			}
		}
	}
}

// built is a component made with options, with the keep-alive rule's name for a scaler that lets apps go; nil where the
// options are refused.
func built(t *testing.T, p Component, c *simtest.Cluster, o Options) (out any) {
	t.Helper()
	var err error
	switch p.Kind {
	case Planner:
		if out, err = NewPlanner(p.Name, PlannerInputs{Profile: c.Profile, Solver: &noSolver{}}, o); err != nil {
			return nil
		}
	case Router:
		out, err = NewRouter(p.Name, o)
	case Batcher:
		out, err = NewBatcher(p.Name, o)
	case KeepAlive:
		out = NewKeepAlive(o.KeepAlive)
	case Scaler:
		var s scale.Scaler
		s, err = NewScaler(p.Name, o)
		out = s
		if b, ok := s.(*inflessrules.RateBands); ok {
			bands := *b
			bands.KeepAlive = nil
			out = []any{&bands, b.KeepAlive().Name()}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
