package fake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// ErrBatch is wrapped by the errors of batches that fail because Config.ErrorRate says so.
var ErrBatch = errors.New("batch failed on purpose")

type instance struct {
	b         *Backend
	spec      dataplane.InstanceSpec
	lossTimer *time.Timer

	mu      sync.Mutex
	loaded  map[serving.VariantID]int
	running int
	closed  bool

	lost     chan struct{} // closed when the instance is lost
	loseOnce sync.Once
}

func (in *instance) lose() {
	in.loseOnce.Do(func() {
		in.b.forget(in)
		close(in.lost)
	})
}

func (in *instance) lostError() error {
	return fmt.Errorf("fake instance %d: %w", in.spec.ID, dataplane.ErrInstanceLost)
}

// usable returns why the instance takes no more calls.
func (in *instance) usable() error {
	select {
	case <-in.lost:
		return in.lostError()
	default:
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return fmt.Errorf("fake instance %d: closed", in.spec.ID)
	}
	return nil
}

// wait waits for d, or until ctx ends or the instance is lost.
func (in *instance) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-in.lost:
		return in.lostError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Load implements dataplane.Runner.
func (in *instance) Load(ctx context.Context, v serving.VariantID, limit int) error {
	if err := in.usable(); err != nil {
		return err
	}
	var d time.Duration
	if in.b.cfg.Load != nil {
		d = in.b.cfg.Load(v)
	}
	if err := in.wait(ctx, d); err != nil {
		return fmt.Errorf("load variant %d: %w", v, err)
	}
	in.mu.Lock()
	in.loaded[v] = max(in.loaded[v], limit)
	in.mu.Unlock()
	in.b.count(func(s *Stats) { s.Loads++ })
	return nil
}

// Unload implements dataplane.Runner.
func (in *instance) Unload(ctx context.Context, v serving.VariantID) error {
	if err := in.usable(); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.loaded[v] == 0 {
		return fmt.Errorf("fake instance %d: variant %d is not loaded", in.spec.ID, v)
	}
	delete(in.loaded, v)
	in.b.count(func(s *Stats) { s.Unloads++ })
	return nil
}

// Close implements dataplane.Runner.
func (in *instance) Close() error {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	if in.lossTimer != nil {
		in.lossTimer.Stop()
	}
	in.b.forget(in)
	return nil
}

// Run implements dataplane.Runner. Besides the configured failures it refuses calls that break the interface: a variant
// that is not loaded, more batches at once than slots, a batch over the limit or of inconsistent size.
func (in *instance) Run(ctx context.Context, b *dataplane.Batch) (err error) {
	in.b.count(func(s *Stats) { s.Batches++; s.Items += b.Items })
	defer func() {
		if err != nil {
			in.b.count(func(s *Stats) { s.Failed++ })
		}
	}()
	if err := in.usable(); err != nil {
		return err
	}
	if err := in.enter(b); err != nil {
		return fmt.Errorf("fake instance %d: batch %d: %w", in.spec.ID, b.ID, err)
	}
	defer in.leave()
	var d time.Duration
	if in.b.cfg.Latency != nil {
		d = in.b.cfg.Latency(b.Variant, b.Items)
	}
	if err := in.wait(ctx, d); err != nil {
		return err
	}
	if in.b.cfg.MostItems != nil {
		if most := in.b.cfg.MostItems(b.Variant); most > 0 && b.Items > most {
			return fmt.Errorf("fake instance %d: batch %d of %d items: %w", in.spec.ID, b.ID, b.Items,
				dataplane.ErrOutOfMemory)
		}
	}
	if in.b.fails(b.ID) {
		return fmt.Errorf("fake instance %d: batch %d: %w", in.spec.ID, b.ID, ErrBatch)
	}
	for i := range b.Portions {
		out, err := answer(in.b.cfg.Outputs, &b.Portions[i])
		if err != nil {
			return fmt.Errorf("fake instance %d: batch %d: query %d: %w", in.spec.ID, b.ID, b.Portions[i].Query, err)
		}
		b.Portions[i].Outputs = addRowOutputs(out, in.b.cfg.RowOutputs[b.Variant], &b.Portions[i])
	}
	return nil
}

func (in *instance) enter(b *dataplane.Batch) error {
	sum := 0
	for i := range b.Portions {
		if b.Portions[i].Items < 1 {
			return fmt.Errorf("query %d has %d items", b.Portions[i].Query, b.Portions[i].Items)
		}
		sum += b.Portions[i].Items
	}
	if sum != b.Items || sum < 1 {
		return fmt.Errorf("says %d items, its %d parts have %d", b.Items, len(b.Portions), sum)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	limit := in.loaded[b.Variant]
	if limit == 0 {
		return fmt.Errorf("variant %d is not loaded", b.Variant)
	}
	if b.Items > limit {
		return fmt.Errorf("%d items are over the limit of %d", b.Items, limit)
	}
	if in.running >= in.spec.Slots {
		return fmt.Errorf("all %d slots are taken", in.spec.Slots)
	}
	in.running++
	return nil
}

func (in *instance) leave() {
	in.mu.Lock()
	in.running--
	in.mu.Unlock()
}
