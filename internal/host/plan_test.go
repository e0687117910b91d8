package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/policy/plan"
)

// A first plan whose planner panics is an error, and none of the configuration.
func TestAPanicOfAPlannerIsAnError(t *testing.T) {
	p, err := onFakes(t).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.planner = panicsWhenPlanning{p.planner}
	var panicked *dataplane.Panic
	if err := p.makeFirst(t.Context()); !errors.As(err, &panicked) || fault.Of(err) != fault.Failed {
		t.Errorf("a first plan: %v", err)
	}
}

// A queue that is too short for what comes within an objective is named.
func TestShortQueuesAreNamed(t *testing.T) {
	for more, want := range map[string]bool{
		", demand: 60": false, ", demand: 60, queue_limit: 5": true, ", demand: 60, queue_limit: 6": false, "": false,
	} {
		var said []string
		p := onFakesWith(t, more, Options{Notice: func(s string) { said = append(said, s) }})
		if _, err := p.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "larger queue_limit") })
		if named != want {
			t.Errorf("%q: %q, want a queue named: %v", more, said, want)
		}
	}
}

// panicsWhenPlanning is a planner that panics.
type panicsWhenPlanning struct{ plan.Planner }

func (panicsWhenPlanning) Plan(context.Context, plan.Request) (*plan.Plan, error) {
	panic("on purpose")
}
