package python

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// pool is the processes of one variant of one instance. It replaces those that end, until it is closed.
type pool struct {
	b     *Backend
	model Model
	spec  dataplane.InstanceSpec
	limit int // items that they are warm for

	mu       sync.Mutex
	held     map[*process]*seat
	idle     []*process
	starting int           // replacements under way
	since    time.Time     // when the first of those began
	took     time.Duration // that the latest start took, until it was warm
	failed   int           // starts in a row
	closed   bool
	ctx      context.Context // ends with the pool
	cancel   context.CancelFunc
	replaces sync.WaitGroup
	more     chan struct{} // has a token when a process may have become idle
}

// seat is what is known of a process.
type seat struct {
	busy    bool
	retired bool // it ends after its batch
	leaking bool // its replacement has begun
	ended   bool // its end was noticed
}

// open starts the processes of a variant, side by side, and returns when all are warm.
func (b *Backend) open(ctx context.Context, m Model, spec dataplane.InstanceSpec, limit int) (*pool, error) {
	p := &pool{
		b: b, model: m, spec: spec, limit: limit, held: make(map[*process]*seat), more: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	n := b.c.Processes
	if n <= 0 {
		n = max(1, spec.Slots)
	}
	failed := make([]error, n)
	var starts sync.WaitGroup
	for k := range n {
		starts.Add(1)
		go func() {
			defer starts.Done()
			failed[k] = p.add(ctx)
		}()
	}
	starts.Wait()
	if err := errors.Join(failed...); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// add starts one more process and warms it up.
func (p *pool) add(ctx context.Context) error {
	begun := time.Now()
	x, err := p.b.launch(ctx, &p.model, p.spec)
	if err != nil {
		return err
	}
	var out answer
	warm := ask{Op: "warm", Limit: min(p.limit, x.about.maxBatch), Frameworks: frameworks}
	if err = x.talk(ctx, &warm, &out); err == nil {
		err = out.failure(&p.model, "its warm-up")
	}
	p.mu.Lock()
	if err == nil && p.closed {
		err = errClosed
	}
	if err != nil {
		p.mu.Unlock()
		x.discard()
		return err
	}
	p.took, p.failed = time.Since(begun), 0
	p.held[x] = &seat{}
	p.idle = append(p.idle, x)
	p.mu.Unlock()
	p.notify()
	p.b.spares.learn(&p.model, p.b.c.environment(p.spec), out.Modules)
	go x.watch(p.b.c.Memory, func(bytes int64) { p.leaks(x, bytes) }, p.b.c.Log)
	go p.attend(x)
	return nil
}

var errClosed = errors.New("the instance is closed")

func (p *pool) notify() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// attend waits for the end of a process.
func (p *pool) attend(x *process) {
	<-x.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended(x)
}

// ended has another process take the place of one that has ended and should not have. The caller holds p.mu.
func (p *pool) ended(x *process) {
	s := p.held[x]
	if s == nil {
		return
	}
	if !s.ended {
		s.ended = true
		if !s.retired && !s.leaking && !p.closed {
			p.b.c.Log(p.model.Name, x.how+": another process takes its place")
			p.replace(nil)
		}
	}
	if !s.busy {
		delete(p.held, x)
		x.free()
	}
}

// leaks has a process replaced that takes more memory than it may: another starts, then it ends after its batch.
func (p *pool) leaks(x *process, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.held[x]
	if s == nil || s.leaking || s.retired || p.closed {
		return
	}
	s.leaking = true
	p.b.c.Log(p.model.Name, fmt.Sprintf(
		"takes %d MiB, more than process_memory, %d MiB: another process takes its place", bytes>>20, p.b.c.Memory>>20))
	p.replace(x)
}

// replace starts a process in the background. was retires when that is warm. The caller holds p.mu.
func (p *pool) replace(was *process) {
	if p.starting++; p.starting == 1 {
		p.since = time.Now()
	}
	p.replaces.Add(1)
	go func() {
		defer p.replaces.Done()
		pause := time.Duration(0)
		for {
			select {
			case <-time.After(pause):
			case <-p.ctx.Done():
			}
			if p.ctx.Err() != nil {
				return
			}
			err := p.add(p.ctx)
			p.mu.Lock()
			if err == nil || p.failed >= maxRestarts {
				p.starting--
				if s := p.held[was]; s != nil && err == nil {
					p.retire(was)
				} else if s != nil {
					s.leaking = false
				}
				p.mu.Unlock()
				p.notify()
				return
			}
			p.failed++
			p.mu.Unlock()
			p.b.c.Log(p.model.Name, fmt.Sprintf("does not start again: %v", err))
			pause = max(100*time.Millisecond, 2*pause)
		}
	}()
}

// retire ends a process, after its batch if it runs one. The caller holds p.mu.
func (p *pool) retire(x *process) {
	s := p.held[x]
	if s == nil {
		return
	}
	s.retired = true
	if !s.busy {
		p.finish(x)
	}
}

// finish ends an idle process in the background. The caller holds p.mu.
func (p *pool) finish(x *process) {
	s := p.held[x]
	s.busy, s.retired = true, true
	p.replaces.Add(1)
	go func() {
		defer p.replaces.Done()
		x.end()
		p.mu.Lock()
		defer p.mu.Unlock()
		s.busy = false
		p.ended(x)
	}()
}

// take returns an idle process, waiting for one. It returns an error that wraps dataplane.ErrInstanceLost when there is
// none and none comes soon.
func (p *pool) take(ctx context.Context) (*process, error) {
	for {
		p.mu.Lock()
		for len(p.idle) > 0 {
			x := p.idle[len(p.idle)-1]
			p.idle = p.idle[:len(p.idle)-1]
			s := p.held[x]
			if s == nil || s.retired || x.cut.Load() {
				continue
			}
			s.busy = true
			left := len(p.idle)
			p.mu.Unlock()
			if left > 0 {
				p.notify()
			}
			return x, nil
		}
		alive := 0
		for x, s := range p.held { // any order: they are counted
			if !s.retired && !x.cut.Load() {
				alive++
			}
		}
		closed, soon := p.closed, p.starting > 0 && p.failed == 0 && p.took-time.Since(p.since) < patience
		p.mu.Unlock()
		switch {
		case closed:
			return nil, errClosed
		case alive == 0 && !soon:
			return nil, fmt.Errorf("python: no process of model %q can answer: %w", p.model.Name,
				dataplane.ErrInstanceLost)
		}
		wait := time.NewTimer(patience / 10) // a start may fail, or take longer than the last
		select {
		case <-p.more:
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil, fmt.Errorf("python: model %q: %w: %w", p.model.Name, dataplane.ErrInstanceLost, ctx.Err())
		}
		wait.Stop()
	}
}

// put gives a process back after a batch.
func (p *pool) put(x *process) {
	p.mu.Lock()
	s := p.held[x]
	s.busy = false
	switch {
	case x.dead():
		p.ended(x)
	case x.cut.Load(): // attend waits for its end
	case s.retired:
		p.finish(x)
	default:
		p.idle = append(p.idle, x)
	}
	p.mu.Unlock()
	p.notify()
}

// close ends all processes and returns when they have ended. No batch runs.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var ends []*process
	for x, s := range p.held { // any order: all end
		if !s.busy {
			ends = append(ends, x)
		}
	}
	for _, x := range ends {
		p.finish(x)
	}
	p.mu.Unlock()
	p.cancel()
	p.replaces.Wait()
}
