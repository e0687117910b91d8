package python

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A model's framework takes seconds to import. Forking a process that has imported one is unsafe, since it has threads
// by then. So spare processes wait that have been started like any other, with the environment and limits of the
// instances that were launched last, and have imported what those models use. One that is taken loads one model and is
// that model's alone; no code of a user runs before.

// spares are the spare processes of a backend.
type spares struct {
	b    *Backend
	most int

	mu      sync.Mutex
	ready   []*spare
	wanted  []*kind // of the launches, latest last; most of them at most
	used    map[string][]string
	filling bool
	closed  bool
	settled chan struct{} // closed, and replaced, whenever filling ends
	ctx     context.Context
	cancel  context.CancelFunc
	ends    sync.WaitGroup
}

// kind is what a spare process is fit for.
type kind struct {
	environment []string
	modules     []string // in the order of their import
	failed      int      // starts in a row
}

func (k *kind) is(environment, modules []string) bool {
	return slices.Equal(k.environment, environment) && slices.Equal(k.modules, modules)
}

type spare struct {
	x     *process
	kind  *kind
	bytes int64 // that it takes
}

// maxKnown bounds the models whose modules are remembered.
const maxKnown = 1000

func newSpares(b *Backend, most int) *spares {
	s := &spares{b: b, most: most, used: make(map[string][]string), settled: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// take returns a spare process for a model in an environment; nil where none is fit. One is fit that has imported
// nothing but what an earlier process of the model has, or else what the model names.
func (s *spares) take(m *Model, environment []string) *process {
	if s.most == 0 {
		return nil
	}
	s.mu.Lock()
	modules, known := s.used[m.Name]
	s.mu.Unlock()
	uses := packagesOf(modules)
	if !known {
		uses = named(m)
	}
	if len(uses) == 0 || shadows(m, uses) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, r := range s.ready {
		has := packagesOf(r.kind.modules)
		other := slices.ContainsFunc(has, func(p string) bool { return !slices.Contains(uses, p) })
		if other || r.x.dead() || !slices.Equal(r.kind.environment, environment) {
			continue
		}
		s.ready = slices.Delete(s.ready, at, at+1)
		r.x.model.Store(&m.Name)
		return r.x
	}
	return nil
}

// learn notes which modules of frameworks a model has imported by the time it is warm, and has spare processes wait
// with them.
func (s *spares) learn(m *Model, environment, modules []string) {
	if s.most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.used[m.Name]; known || len(s.used) < maxKnown {
		s.used[m.Name] = modules
	}
	if len(modules) > 0 && !shadows(m, packagesOf(modules)) {
		k := &kind{environment: environment, modules: modules}
		if at := slices.IndexFunc(s.wanted, func(o *kind) bool { return o.is(environment, modules) }); at >= 0 {
			k = s.wanted[at]
			s.wanted = slices.Delete(s.wanted, at, at+1)
			k.failed = 0
		}
		s.wanted = append(s.wanted, k)
		s.wanted = s.wanted[max(0, len(s.wanted)-s.most):]
	}
	s.fill()
}

// missing returns the kind that the next spare process is to be of; nil where enough wait. Where fewer kinds are wanted
// than processes may wait, the latest have several. The caller holds mu.
func (s *spares) missing() *kind {
	have := make(map[*kind]int)
	for _, r := range s.ready {
		have[r.kind]++
	}
	want := make(map[*kind]int)
	for n := range s.most {
		if len(s.wanted) == 0 {
			break
		}
		k := s.wanted[len(s.wanted)-1-n%len(s.wanted)]
		if want[k]++; want[k] > have[k] && k.failed < maxRestarts {
			return k
		}
	}
	return nil
}

// fill starts what is missing, one after the other, in the background. The caller holds mu.
func (s *spares) fill() {
	if s.filling || s.closed {
		return
	}
	s.filling = true
	s.ends.Go(func() {
		for {
			s.mu.Lock()
			var over []*spare
			s.ready = slices.DeleteFunc(s.ready, func(r *spare) bool {
				old := !slices.Contains(s.wanted, r.kind)
				if old {
					over = append(over, r)
				}
				return old
			})
			k := s.missing()
			if k == nil || s.closed {
				s.filling = false
				close(s.settled)
				s.settled = make(chan struct{})
			}
			s.mu.Unlock()
			for _, r := range over {
				r.x.discard()
			}
			if k == nil || s.ctx.Err() != nil {
				return
			}
			s.add(k)
		}
	})
}

// add starts a process of a kind.
func (s *spares) add(k *kind) {
	x, err := s.start(k)
	var bytes int64
	if err == nil {
		own, files, _ := x.footprint()
		bytes = own + files
		if limit := s.b.c.Memory; limit > 0 && own > limit {
			x.discard()
			err = fmt.Errorf("it takes %d MiB, more than process_memory, %d MiB", own>>20, limit>>20)
			x = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if k.failed++; k.failed == maxRestarts && s.ctx.Err() == nil {
			s.b.c.Log(spareName, fmt.Sprintf("no spare process waits with %s: %v",
				strings.Join(packagesOf(k.modules), ", "), err))
		}
		return
	}
	if s.closed {
		s.ends.Go(x.discard)
		return
	}
	s.ready = append(s.ready, &spare{x, k, bytes})
	s.ends.Go(func() { s.attend(x, k) })
}

// spareName is what spare processes are called until they are taken.
const spareName = "(spare)"

func (s *spares) start(k *kind) (*process, error) {
	interpreter, err := s.b.Interpreter(s.ctx)
	if err != nil {
		return nil, err
	}
	x, err := start(s.ctx, &s.b.c, interpreter, spareName, k.environment)
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(s.ctx, importTimeout)
	defer done()
	var out answer
	if err := x.talk(ctx, &ask{Op: "import", Modules: k.modules}, &out); err != nil {
		x.discard()
		return nil, fmt.Errorf("it %s while it imported: %w", x.how, err)
	}
	return x, nil
}

// attend waits for the end of a process. One that ends while it waits is replaced, maxRestarts times.
func (s *spares) attend(x *process, k *kind) {
	select {
	case <-x.done:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.ready, func(r *spare) bool { return r.x == x })
	if at < 0 {
		return // it was taken, or was not wanted any more
	}
	s.ready = slices.Delete(s.ready, at, at+1)
	x.free()
	k.failed++
	s.fill()
}

// Settle waits until all spare processes wait that are to.
func (b *Backend) Settle(ctx context.Context) error {
	s := b.spares
	for {
		s.mu.Lock()
		filling, settled := s.filling, s.settled
		s.mu.Unlock()
		if !filling {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// SpareMemory returns how many bytes the spare processes take that wait.
func (b *Backend) SpareMemory() (total int64) {
	b.spares.mu.Lock()
	defer b.spares.mu.Unlock()
	for _, r := range b.spares.ready {
		total += r.bytes
	}
	return total
}

// close ends the spare processes, and starts none any more.
func (s *spares) close() {
	s.mu.Lock()
	s.closed = true
	all := s.ready
	s.ready = nil
	s.mu.Unlock()
	s.cancel()
	for _, r := range all {
		r.x.discard()
	}
	s.ends.Wait()
}
