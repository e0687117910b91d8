package measuring

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/host"
)

// EnsureProfile is [host.Opened.Begin], after which the models are measured at once where Options.ProfileFirst says so.
func EnsureProfile(ctx context.Context, o *host.Opened, paths ...string) (*host.Profiled, error) {
	p, err := o.Begin(ctx, paths...)
	if err != nil || !o.Options().ProfileFirst || len(p.Unmeasured()) == 0 {
		return p, err
	}
	p.Announce("measuring the models on this machine")
	f, err := Measure(ctx, p.Opened, Measuring{File: p.ToKeep(), Tune: o.Options().Tune()})
	if f == nil {
		return nil, err
	}
	if err != nil {
		o.Options().Notice(fmt.Sprintf("the profile is not kept, the next start measures again: %v", err))
	}
	measured, err := p.ProfileOf(f)
	if err != nil {
		return nil, err
	}
	return measured.Assuming(host.Known{File: f})
}

// Again gets latencies for a configuration of the same models as p's, which are not looked at again.
func Again(ctx context.Context, o *host.Opened, p *host.Profiled) (*host.Profiled, error) {
	if p.Begun().File == nil {
		return EnsureProfile(ctx, o)
	}
	return o.BeginLike(ctx, p)
}
