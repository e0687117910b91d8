package functions

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// Binder sets the model files of variants.
type Binder interface {
	// Bind sets the model file of a variant that may be below serving.None, which no spec has.
	Bind(v serving.VariantID, f *File)
	// Unbind forgets it. Instances that run keep it.
	Unbind(v serving.VariantID)
}

// lastAlias counts down from serving.None. Deployments that are measured at the same time have the same next variant,
// so each is run under a number of its own.
var lastAlias atomic.Int32

func init() { lastAlias.Store(int32(serving.None)) }

// alias is a backend on which a variant has another number.
type alias struct {
	dataplane.Backend
	from, to serving.VariantID
}

// aliased binds the model of a subject under a number of its own. The backend of a worker runs it under that.
func (s *Subject) aliased(b Binder) (of func(dataplane.Backend) dataplane.Backend, release func()) {
	if b == nil {
		return func(x dataplane.Backend) dataplane.Backend { return x }, func() {}
	}
	to := serving.VariantID(lastAlias.Add(-1))
	b.Bind(to, &s.File)
	return func(x dataplane.Backend) dataplane.Backend { return alias{x, s.Variant, to} }, func() { b.Unbind(to) }
}

func (a alias) number(v serving.VariantID) serving.VariantID {
	if v == a.from {
		return a.to
	}
	return v
}

// Launch implements dataplane.Backend.
func (a alias) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	s.Variants = slices.Clone(s.Variants)
	for k := range s.Variants {
		s.Variants[k] = a.number(s.Variants[k])
	}
	r, err := a.Backend.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	return aliasRunner{r, a}, nil
}

type aliasRunner struct {
	dataplane.Runner
	a alias
}

// Load implements dataplane.Runner.
func (r aliasRunner) Load(ctx context.Context, v serving.VariantID, limit int) error {
	return r.Runner.Load(ctx, r.a.number(v), limit)
}

// Unload implements dataplane.Runner.
func (r aliasRunner) Unload(ctx context.Context, v serving.VariantID) error {
	return r.Runner.Unload(ctx, r.a.number(v))
}

// Run implements dataplane.Runner.
func (r aliasRunner) Run(ctx context.Context, b *dataplane.Batch) error {
	c := *b // its portions are shared: the outputs are the caller's
	c.Variant = r.a.number(b.Variant)
	return r.Runner.Run(ctx, &c)
}

// Footprint implements dataplane.Footprint.
func (r aliasRunner) Footprint() (int64, bool) {
	if f, ok := r.Runner.(dataplane.Footprint); ok {
		return f.Footprint()
	}
	return 0, false
}
