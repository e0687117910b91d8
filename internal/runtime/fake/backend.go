package fake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// Backend launches fake instances. It is safe for concurrent use.
type Backend struct {
	cfg Config

	mu    sync.Mutex
	live  map[serving.InstanceID]*instance
	stats Stats
}

var _ dataplane.Backend = (*Backend)(nil)

// Stats counts the work of a backend since it was made.
type Stats struct {
	Launches int // asked for, failed ones included
	Loads    int // variants loaded, those of launches included
	Unloads  int
	Batches  int // started
	Items    int // in started batches
	Failed   int // batches that ended in an error of any kind
	Live     int // instances launched and neither closed nor lost
}

// New returns a backend that behaves as cfg says. It fails when a field of cfg is not valid; the error names it.
func New(cfg Config) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Backend{cfg: cfg, live: map[serving.InstanceID]*instance{}}, nil
}

// Launch brings up an instance after the load times of its variants. It fails while Config.LaunchFailures are left, and
// when ctx ends first.
func (b *Backend) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	if spec.Slots < 1 || spec.BatchLimit < 1 {
		return nil, fmt.Errorf(
			"fake backend: instance %d has %d slots and a batch limit of %d, want at least 1 of each",
			spec.ID, spec.Slots, spec.BatchLimit)
	}
	b.mu.Lock()
	b.stats.Launches++
	nth := b.stats.Launches
	b.mu.Unlock()

	in := &instance{
		b: b, spec: spec,
		loaded: map[serving.VariantID]int{},
		lost:   make(chan struct{}),
	}
	for _, v := range spec.Variants {
		if err := in.Load(ctx, v, spec.BatchLimit); err != nil {
			return nil, fmt.Errorf("launch instance %d: %w", spec.ID, err)
		}
	}
	if nth <= b.cfg.LaunchFailures {
		return nil, fmt.Errorf("launch instance %d: failure %d of %d was asked for", spec.ID, nth, b.cfg.LaunchFailures)
	}
	b.mu.Lock()
	b.live[spec.ID] = in
	b.mu.Unlock()
	if b.cfg.LoseAfter != nil {
		if d, ok := b.cfg.LoseAfter(spec.ID); ok {
			in.lossTimer = time.AfterFunc(d, in.lose)
		}
	}
	return in, nil
}

// Kill loses a live instance at once: its running batches and all later calls fail with dataplane.ErrInstanceLost. It
// returns false when there is no such instance.
func (b *Backend) Kill(id serving.InstanceID) bool {
	b.mu.Lock()
	in := b.live[id]
	b.mu.Unlock()
	if in == nil {
		return false
	}
	in.lose()
	return true
}

// Stats returns the counts so far.
func (b *Backend) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Live = len(b.live)
	return s
}

// forget removes an instance from the live ones, unless its id has been reused since.
func (b *Backend) forget(in *instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live[in.spec.ID] == in {
		delete(b.live, in.spec.ID)
	}
}

func (b *Backend) count(f func(*Stats)) {
	b.mu.Lock()
	f(&b.stats)
	b.mu.Unlock()
}

// fails reports whether a batch fails. That depends on the seed and the batch's id alone (a splitmix64 finalizer
// spreads the bits), so the same batches fail whatever the timing.
func (b *Backend) fails(id serving.BatchID) bool {
	if b.cfg.ErrorRate <= 0 {
		return false
	}
	x := b.cfg.Seed + uint64(id)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11)/(1<<53) < b.cfg.ErrorRate
}
