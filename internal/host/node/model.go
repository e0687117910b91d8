package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

// model is one that is loaded. Each runner runs one batch at a time.
type model struct {
	seen     *server.Model
	variants []serving.VariantID // the version that answers who names none first
	launch   func(context.Context, settings) (dataplane.Runner, error)
	sent     string      // the folder of its files, if they came with the load; else ""
	broken   atomic.Bool // a runner is lost: only a load makes it work again

	free    chan dataplane.Runner // room for mostSlots
	runners []dataplane.Runner    // under the turn of its name
	running sync.WaitGroup
	closing sync.RWMutex // held for reading while a run begins
	closed  bool         // under closing

	runs, failures, ns, failedNS atomic.Uint64
	items                        atomic.Uint64
	last                         atomic.Int64 // ms since 1970
}

// widen has as many runners as are wanted, each warm.
func (m *model) widen(ctx context.Context, want settings) error {
	for len(m.runners) < max(want.slots, 1) {
		r, err := m.launch(ctx, want)
		if err != nil {
			return err
		}
		m.runners = append(m.runners, r)
		m.free <- r
	}
	return nil
}

// begin has close wait for a run; false once the model is closed.
func (m *model) begin() bool {
	m.closing.RLock()
	defer m.closing.RUnlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	return true
}

// close waits for what runs and releases the runners.
func (m *model) close() error {
	m.closing.Lock()
	m.closed = true
	m.closing.Unlock()
	m.running.Wait()
	var errs []error
	for _, r := range m.runners {
		errs = append(errs, r.Close())
	}
	m.runners = nil
	return errors.Join(append(errs, removed(m.sent))...)
}

// run runs a batch as it came.
func (m *model) run(ctx context.Context, b *dataplane.Batch) (took time.Duration, err error) {
	if !m.begin() {
		return 0, oip.Errorf(oip.Unavailable, "", "the model is being unloaded")
	}
	defer m.running.Done()
	var r dataplane.Runner
	select {
	case r = <-m.free:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { m.free <- r }()
	began := time.Now()
	err = dataplane.Safely("runtime", func() error { return r.Run(ctx, b) })
	took = time.Since(began)
	if errors.Is(err, dataplane.ErrInstanceLost) {
		m.broken.Store(true)
	}
	return took, err
}

// count adds a run to the statistics.
func (m *model) count(items int, took time.Duration, err error) {
	if err != nil {
		m.failures.Add(1)
		m.failedNS.Add(uint64(took))
		return
	}
	m.runs.Add(1)
	m.items.Add(uint64(items))
	m.ns.Add(uint64(took))
	m.last.Store(time.Now().UnixMilli())
}

func (m *model) statistics() []server.VersionStatistics {
	ns, runs := m.ns.Load(), m.runs.Load()
	return []server.VersionStatistics{{
		Version: m.seen.Versions[0].Version, LastInference: m.last.Load(), InferenceCount: m.items.Load(),
		ExecutionCount: runs, Success: runs, SuccessNS: ns, Fail: m.failures.Load(), FailNS: m.failedNS.Load(),
		Queue: runs, Compute: runs, ComputeNS: ns,
	}}
}

// Chain implements server.Service.
func (n *Node) Chain(front server.Links) server.Infer {
	return server.Chain(n.infer, front.Tenant, front.Deadline, front.Trace)
}

// infer runs a query at once, as one batch.
func (n *Node) infer(ctx context.Context, q *dataplane.Request) (*dataplane.Response, error) {
	n.mu.Lock()
	m := n.apps[q.App]
	n.mu.Unlock()
	if m == nil || m.broken.Load() {
		return nil, oip.Errorf(oip.Unavailable, "", "the model is not loaded")
	}
	v := q.Variant
	if v == serving.None {
		v = m.variants[0]
	}
	b := dataplane.Batch{Variant: v, Items: q.Items, Portions: []dataplane.Portion{{
		Items: q.Items, Inputs: q.Inputs, Wanted: q.Outputs, Stream: q.Stream, Begins: q.Begins, Ends: q.Ends,
	}}}
	if q.Partial != nil {
		b.Portions[0].Partial = partials(q)
	}
	took, err := m.run(ctx, &b)
	m.count(q.Items, took, err)
	switch {
	case err == nil:
	case errors.Is(err, dataplane.ErrInstanceLost):
		return nil, oip.Errorf(oip.Unavailable, "", "%v", err)
	case errors.Is(err, dataplane.ErrOutOfMemory):
		return nil, oip.Errorf(oip.Limited, "", "%v", err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, err
	}
	return &dataplane.Response{
		Outputs: b.Portions[0].Outputs, Variant: v, Total: took, BatchSize: q.Items, Accuracy: 1,
	}, nil
}
