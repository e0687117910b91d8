package host

import (
	"context"
	"fmt"
)

// EnsureProfile is [Opened.Begin], after which the models are measured at once where Options.ProfileFirst says so.
func (o *Opened) EnsureProfile(ctx context.Context, paths ...string) (*Profiled, error) {
	p, err := o.Begin(ctx, paths...)
	if err != nil || !o.options.ProfileFirst || len(p.unmeasured()) == 0 {
		return p, err
	}
	p.announce("measuring the models on this machine")
	f, err := p.Measure(ctx, Measuring{File: p.toKeep(), Tune: o.options.tune()})
	if f == nil {
		return nil, err
	}
	if err != nil {
		o.options.Notice(fmt.Sprintf("the profile is not kept, the next start measures again: %v", err))
	}
	measured, err := p.ProfileOf(f)
	if err != nil {
		return nil, err
	}
	return measured.assuming(begun{file: f})
}

// Again gets latencies for a configuration of the same models as p's, which are not looked at again.
func (o *Opened) Again(ctx context.Context, p *Profiled) (*Profiled, error) {
	if p.begun.file == nil {
		return o.EnsureProfile(ctx)
	}
	return o.BeginLike(ctx, p)
}
