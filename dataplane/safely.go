package dataplane

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Panic is the error of something that panicked.
type Panic struct {
	What  string // in a word or two, such as "planner"
	Value any
	Stack []byte // of the goroutine
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("the %s panicked: %v", p.What, p.Value) }

// Safely runs f and returns its error, or a Panic. A fault in one plan, batch, question or request must not end the
// process, which serves others.
func Safely(what string, f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &Panic{What: what, Value: x, Stack: debug.Stack()}
		}
	}()
	return f()
}

// MakePlan has a planner answer a request. A planner that panics, or makes nothing, has failed.
func MakePlan(ctx context.Context, p plan.Planner, r plan.Request) (made *plan.Plan, err error) {
	err = Safely("planner", func() (err error) {
		made, err = p.Plan(ctx, r)
		return err
	})
	if err == nil && made == nil {
		err = errors.New("the planner made no plan")
	}
	return made, err
}
