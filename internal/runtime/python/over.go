package python

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// Over returns a backend that runs models in Python and hands all others to another backend, which may be nil where
// there are none.
func Over(models *Backend, others dataplane.Backend) dataplane.Backend { return &over{models, others} }

type over struct {
	models *Backend
	others dataplane.Backend
}

// backendOf returns what runs a variant.
func (o *over) backendOf(v serving.VariantID) (dataplane.Backend, error) {
	switch {
	case o.models.Has(v):
		return o.models, nil
	case o.others == nil:
		return nil, fmt.Errorf("python: variant %d is no model in Python, and this worker runs no others", v)
	}
	return o.others, nil
}

// Launch implements dataplane.Backend. The variants of an instance may be of both kinds.
func (o *over) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	m := &mixed{
		over: o, spec: spec, parts: make(map[dataplane.Backend]dataplane.Runner),
		of: make(map[serving.VariantID]dataplane.Runner),
	}
	for _, v := range spec.Variants {
		if err := m.Load(ctx, v, spec.BatchLimit); err != nil {
			_ = m.Close()
			return nil, err
		}
	}
	return m, nil
}
