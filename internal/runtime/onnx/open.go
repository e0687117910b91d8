//go:build cgo

package onnx

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// Open loads one model file as variant 0, for measurements. The backend's own models are not affected. Batches of up to
// limit items are warmed up; a model whose first dimension is fixed has no batches. asIs is Model.AsIs.
func (b *Backend) Open(ctx context.Context, path string, threads, limit int, asIs bool) (dataplane.Runner, error) {
	cfg := b.cfg
	cfg.Models = map[serving.VariantID]Model{0: {Path: path, AsIs: asIs}}
	alone := &Backend{cfg: cfg, models: map[serving.VariantID]*model{}}
	return alone.Launch(ctx, dataplane.InstanceSpec{
		Variants: []serving.VariantID{0}, BatchLimit: max(limit, 1), Slots: 1, Cores: threads,
	})
}
