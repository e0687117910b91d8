package dataplane_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// A planner that panics, or makes nothing, has failed; its plans and errors are passed on.
func TestMakePlan(t *testing.T) {
	made, broken := &plan.Plan{Planner: "p"}, errors.New("no room")
	for _, c := range []struct {
		name string
		plan func() (*plan.Plan, error)
		want string // of the error
	}{
		{"a plan", func() (*plan.Plan, error) { return made, nil }, ""},
		{"an error", func() (*plan.Plan, error) { return nil, broken }, "no room"},
		{"nothing", func() (*plan.Plan, error) { return nil, nil }, "made no plan"},
		{"a panic", func() (*plan.Plan, error) { panic("on purpose") }, "the planner panicked: on purpose"},
		{"a fault", func() (*plan.Plan, error) { var none []int; return nil, errors.New(string(rune(none[1]))) },
			"the planner panicked: runtime error: index out of range"},
	} {
		p := planFunc(func(context.Context, plan.Request) (*plan.Plan, error) { return c.plan() }, nil)
		got, err := dataplane.MakePlan(t.Context(), p, plan.Request{})
		switch {
		case c.want == "" && (err != nil || got != made):
			t.Errorf("%s: %v, %v", c.name, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		var panicked *dataplane.Panic
		if is := errors.As(err, &panicked); is != strings.Contains(c.want, "panicked") {
			t.Errorf("%s: %v is a panic: %v", c.name, err, is)
		} else if is && !strings.Contains(string(panicked.Stack), "safely_test.go") {
			t.Errorf("%s: the stack does not say where: %s", c.name, panicked.Stack)
		}
	}
}

// Before a panic of the engine ends the process, it is told with the inputs of the step that did not end.
func TestTheCrashOfTheEngineIsTold(t *testing.T) {
	var told *dataplane.Panic
	var inputs []engine.Input
	p := plane(t, &runtime{run: echo}, 1e9, dataplane.Config{
		Crash: func(_ serving.Time, in []engine.Input, x *dataplane.Panic) { inputs, told = in, x },
	})
	p.Close()
	defer func() {
		if x := recover(); x != "on purpose" {
			t.Errorf("the panic went on as %v", x)
		}
		if told == nil || told.What != "engine" || told.Value != "on purpose" || len(inputs) != 1 {
			t.Errorf("%v, %v", told, inputs)
		}
	}()
	p.CrashWith([]engine.Input{engine.NewQueryCancelled(1)}, "on purpose")
}
