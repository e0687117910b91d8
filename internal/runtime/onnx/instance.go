//go:build cgo

package onnx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// instance is a set of loaded variants that share the slots.
type instance struct {
	b     *Backend
	spec  dataplane.InstanceSpec
	slots chan int // free ones
	// provider runs its sessions.
	provider string
	pinned   []*pinned // by slot; nil where its runs may use any processor

	mu     sync.RWMutex
	loaded map[serving.VariantID]*loaded
	closed bool
}

// loaded is one variant, with a session for every slot.
type loaded struct {
	m        *model
	mu       sync.RWMutex // held for reading by runs, so that releasing the sessions waits for them
	sessions []*session   // by slot; nil once released
}

func (l *loaded) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range l.sessions {
		errs = append(errs, s.close())
	}
	l.sessions = nil
	return errors.Join(errs...)
}

// Load implements dataplane.Runner. Loading a variant that is loaded does nothing. While batches run, loads go one at a
// time and give way to them.
func (in *instance) Load(ctx context.Context, v serving.VariantID, limit int) error {
	in.mu.RLock()
	have, closed := in.loaded[v], in.closed
	in.mu.RUnlock()
	if closed {
		return fmt.Errorf("onnx: instance %d: %w", in.spec.ID, errClosed)
	}
	if have != nil {
		return nil
	}
	m, err := in.b.model(v)
	if err != nil {
		return err
	}
	if in.b.activity.serves() {
		select {
		case in.b.turn <- struct{}{}:
			defer func() { <-in.b.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l := &loaded{m: m}
	for range in.spec.Slots {
		if err := in.add(ctx, l, limit); err != nil {
			_ = l.release()
			return fmt.Errorf("onnx: instance %d: load variant %d from %s: %w", in.spec.ID, v, m.path, err)
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.loaded[v] != nil {
		return errors.Join(fmt.Errorf("onnx: instance %d: variant %d was loaded or the instance closed meanwhile",
			in.spec.ID, v), l.release())
	}
	in.loaded[v] = l
	return nil
}

// add makes one more session of a variant and warms it up.
func (in *instance) add(ctx context.Context, l *loaded, limit int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := in.b.options(in.spec.Cores)
	if err != nil {
		return err
	}
	defer func() { _ = o.Destroy() }()
	if err := appendProvider(o, in.provider, in.b.device(in.spec.Worker), in.spec); err != nil {
		return fmt.Errorf("onnx: %w", err)
	}
	if l.m.asIs {
		if err := o.SetGraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll); err != nil {
			return fmt.Errorf("onnx: %w", err)
		}
	}
	if l.m.padding != nil {
		if err := o.AddSessionConfigEntry(denormalsAsZero, "1"); err != nil {
			return fmt.Errorf("onnx: %w", err)
		}
	}
	// The first session that has the setting also changes the thread on which it is made.
	var s *session
	in.mu.RLock()
	on := in.pinned[len(l.sessions)]
	in.mu.RUnlock()
	err = on.on(func() error {
		return l.m.flushed(func() (err error) { s, err = newSession(l.m, o); return err })
	})
	if err != nil {
		return classified(err, in.provider)
	}
	s.on = on
	l.sessions = append(l.sessions, s)
	if in.spec.Cold {
		return nil
	}
	if in.b.activity.serves() {
		err = s.warmGently(ctx, max(limit, 1), &in.b.activity)
	} else {
		err = s.warm(ctx, max(limit, 1))
	}
	if l.m.example == nil && errors.Is(err, errExample) {
		return nil // zeros suit few models that read indices or lengths: queries warm it up
	}
	return err
}

// errExample is wrapped where the runtime does not run a model with an example.
var errExample = errors.New("warm up")

// warm runs every batch size twice: the first run of a size plans its memory, the second uses the plan. A slow model is
// run once, because planning is a small part of its time.
func (s *session) warm(ctx context.Context, limit int) error {
	const slow = 100 * time.Millisecond
	for _, items := range warmSizes(limit, s.m.batched) {
		for range 2 {
			took, err := s.warmOnce(ctx, items, limit)
			if errors.Is(classified(err, ""), dataplane.ErrOutOfMemory) && items > 1 {
				break // the first batch of that size teaches the engine
			}
			if err != nil {
				return classified(err, "")
			}
			if took > slow {
				break
			}
		}
	}
	s.makeRoom(limit)
	return nil
}

// warmGently runs batch sizes once each, the smallest first and only as long as they are short, each at a moment
// without batches. Larger sizes plan their memory when they come.
func (s *session) warmGently(ctx context.Context, limit int, a *activity) error {
	for _, items := range slices.Backward(warmSizes(limit, s.m.batched)) {
		if err := a.giveWay(ctx); err != nil {
			return err
		}
		took, err := s.warmOnce(ctx, items, limit)
		if errors.Is(classified(err, ""), dataplane.ErrOutOfMemory) && items > 1 {
			break // as in warm
		}
		if err != nil {
			return err
		}
		if 2*took > longestWarming { // the next has twice as many items
			break
		}
	}
	s.makeRoom(limit)
	return nil
}

// warmOnce runs a batch of examples, and returns how long that took.
func (s *session) warmOnce(ctx context.Context, items, limit int) (time.Duration, error) {
	inputs, err := s.m.exampleInputs(items)
	if err != nil {
		return 0, err
	}
	b := dataplane.Batch{Items: items, Portions: []dataplane.Portion{{Items: items, Inputs: inputs}}}
	if err := s.m.check(&b, limit); err != nil {
		return 0, fmt.Errorf("example of %d items: %w", items, err)
	}
	start := time.Now()
	if err := s.run(ctx, b.Portions, items); err != nil {
		if ctx.Err() != nil || errors.Is(err, errNotBatched) ||
			errors.Is(classified(err, ""), dataplane.ErrOutOfMemory) {
			return 0, fmt.Errorf("warm up with %d items: %w", items, err)
		}
		return 0, fmt.Errorf("%w with %d items: %w", errExample, items, err)
	}
	return time.Since(start), nil
}

// makeRoom allocates the memory for joining now rather than under load: the batches that warm up have one part each and
// are not joined.
func (s *session) makeRoom(limit int) {
	for k := range s.m.inputs {
		if row := s.m.inputs[k].rowBytes; row > 0 && s.m.batched && limit > 1 && row*int64(limit) <= maxTensorBytes {
			s.grow(k, row*int64(limit))
		}
	}
}

// warmSizes returns limit and the powers of two below it, largest first so that the runtime's arena grows once.
func warmSizes(limit int, batched bool) []int {
	if !batched {
		return []int{1}
	}
	sizes := []int{limit}
	p := 1
	for p < limit {
		p *= 2
	}
	for p /= 2; p >= 1; p /= 2 {
		sizes = append(sizes, p)
	}
	return sizes
}

// Unload implements dataplane.Runner.
func (in *instance) Unload(_ context.Context, v serving.VariantID) error {
	in.mu.Lock()
	l := in.loaded[v]
	delete(in.loaded, v)
	in.mu.Unlock()
	if l == nil {
		return fmt.Errorf("onnx: instance %d: variant %d is not loaded", in.spec.ID, v)
	}
	return l.release()
}

// Close implements dataplane.Runner. Closing twice does nothing.
func (in *instance) Close() error {
	in.mu.Lock()
	all := in.loaded
	in.loaded, in.closed = nil, true
	in.mu.Unlock()
	var errs []error
	for _, v := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, all[v].release())
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, x := range in.pinned {
		in.b.processors.give(x)
	}
	clear(in.pinned)
	return errors.Join(errs...)
}

// pin gives every slot processors of its own, or none to any.
func (in *instance) pin() error {
	for k := range in.pinned {
		x, err := in.b.processors.take(in.spec.Cores)
		if err != nil {
			for _, taken := range in.pinned[:k] {
				in.b.processors.give(taken)
			}
			clear(in.pinned)
			return err
		}
		in.pinned[k] = x
	}
	return nil
}

// Run implements dataplane.Runner. Queries whose inputs differ in a dimension other than the first are joined where the
// model has a mask for what is padded; else they run one group after the other.
func (in *instance) Run(ctx context.Context, b *dataplane.Batch) error {
	in.mu.RLock()
	l, closed := in.loaded[b.Variant], in.closed
	in.mu.RUnlock()
	switch {
	case closed:
		return fmt.Errorf("onnx: instance %d: %w", in.spec.ID, errClosed)
	case l == nil:
		return fmt.Errorf("onnx: instance %d: variant %d is not loaded", in.spec.ID, b.Variant)
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.sessions == nil {
		return fmt.Errorf("onnx: instance %d: variant %d is not loaded", in.spec.ID, b.Variant)
	}
	whole := b
	if l.m.adapts() {
		adapted, err := l.m.adapt(b)
		if err != nil {
			return fmt.Errorf("onnx: variant %d: %w", b.Variant, err)
		}
		b = adapted
	}
	if err := l.m.check(b, math.MaxInt32); err != nil {
		return fmt.Errorf("onnx: variant %d: %w", b.Variant, err)
	}
	var slot int
	select {
	case slot = <-in.slots:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { in.slots <- slot }()
	in.b.activity.begin()
	defer in.b.activity.end()
	if err := l.sessions[slot].runAll(ctx, b); err != nil {
		return classified(fmt.Errorf("onnx: variant %d: %w", b.Variant, err), in.provider)
	}
	if whole != b {
		return l.m.restore(whole, b)
	}
	return nil
}
