package host

import (
	"context"
	"errors"
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

// panicsWhenPlanning is a planner that panics.
type panicsWhenPlanning struct{ plan.Planner }

func (panicsWhenPlanning) Plan(context.Context, plan.Request) (*plan.Plan, error) {
	panic("on purpose")
}
