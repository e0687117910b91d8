package supply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Defaults of Config and of what machines.json does not say.
const (
	DefaultAdopt          = 2 * time.Minute
	defaultPendingTimeout = 5 * time.Minute
	// askAgain is after how many times the pending timeout a machine that could not be had is asked for again.
	askAgain = 4
	// failedFor is how long a machine whose pod failed before it was ready is not asked for again.
	failedFor = 30 * time.Second
	// slower is how many times the pending timeout a pod that has a node may take to be ready.
	slower = 4
)

// Config is what the supply of a cell is made of.
type Config struct {
	Source   *Source
	Machines *cell.Machines
	// Adopt is how long pods that were there at the start wait for a plan that wants them, before they are given back.
	// 0 means DefaultAdopt.
	Adopt time.Duration
	// Port is where machines serve gRPC; 0 means PortGRPC.
	Port int
	Log  *slog.Logger // nil discards it
}

// Supply gives the machines of a cell. It implements provider.Supply.
type Supply struct {
	c   Config
	log *slog.Logger

	mu       sync.Mutex
	machines *cell.Machines
	prints   map[string]string   // wanted fingerprint of pods, by machine type
	workers  map[string]*machine // by name
	nodes    map[string]*corev1.Node
	missing  map[string]absence // by machine type
	stats    map[string]*counts // by machine type
	unhad    map[string]string  // why models could not be fetched, by name
	watcher  provider.Watcher
	events   []provider.Event
	more     chan struct{} // has room for one: there are events
	closed   chan struct{}
	once     sync.Once
	tasks    sync.WaitGroup
	unwatch  []func()
}

// absence is a machine type of which none can be had.
type absence struct {
	until time.Time
	why   string
}

// machine is a worker with its pod, as far as known.
type machine struct {
	worker  provider.Worker
	pod     *corev1.Pod // nil where there is none
	wanted  bool        // acquired, or being acquired, and not released
	given   bool        // Acquire has returned this pod
	told    string      // why it leaves, as the watcher was told; "" for nothing
	rolling bool        // it leaves because its template is outdated
	// nodeless is for how many looks its pod has been on a node that does not exist.
	nodeless int
	asked    time.Time // when its pod was asked for here; zero for one that was there
	changed  chan struct{}
}

// New begins to follow the pods and nodes of a cell. Pods that are there are adopted: they and what they have loaded
// stay, and Acquire returns them. The caller closes it before its source.
func New(ctx context.Context, c Config) (*Supply, error) {
	if c.Adopt <= 0 {
		c.Adopt = DefaultAdopt
	}
	if c.Port == 0 {
		c.Port = PortGRPC
	}
	s := &Supply{
		c: c, log: c.Log, workers: make(map[string]*machine), nodes: make(map[string]*corev1.Node),
		missing: make(map[string]absence), stats: make(map[string]*counts), unhad: make(map[string]string),
		more: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.Update(c.Machines)
	s.tasks.Go(s.tellAll)
	watch := func(kind client.Object, changed func(x any, gone bool)) error {
		i, err := c.Source.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("machine supply: watching %T: %w", kind, err)
		}
		handler, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(x any) { changed(x, false) },
			UpdateFunc: func(_, x any) { changed(x, false) },
			DeleteFunc: func(x any) {
				if last, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
					x = last.Obj
				}
				changed(x, true)
			},
		})
		if err != nil {
			return fmt.Errorf("machine supply: watching %T: %w", kind, err)
		}
		s.unwatch = append(s.unwatch, func() { _ = i.RemoveEventHandler(handler) })
		if !toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			return fmt.Errorf("machine supply: %T: %w", kind, context.Cause(ctx))
		}
		return nil
	}
	var err error
	if why := c.Source.withoutNodes; why != nil {
		s.log.Warn("what happens to nodes is not noticed: give the dispatcher the right to list and watch nodes",
			"error", why)
	} else {
		err = watch(&corev1.Node{}, s.nodeChanged) // notices come from nodes: they are known before pods
	}
	if err == nil {
		err = watch(&corev1.Pod{}, s.podChanged)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.tasks.Go(s.forgetUnclaimed)
	return s, nil
}

// Close stops following. Pods stay as they are: who serves the cell next adopts them.
func (s *Supply) Close() {
	s.once.Do(func() {
		for _, f := range s.unwatch {
			f()
		}
		close(s.closed)
		s.tasks.Wait()
		s.c.Source.claims.forget(s)
	})
}

// Update puts another machines.json into force. Pods of an outdated template are replaced bit by bit: as many at a time
// as maxSurge says are announced to leave, and given back when the plan has moved their work.
func (s *Supply) Update(m *cell.Machines) {
	prints := make(map[string]string)
	for name := range m.Types {
		prints[name] = wantedPrint(m, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machines, s.prints = m, prints
	s.roll()
}

// Acquire implements provider.Supply.
func (s *Supply) Acquire(ctx context.Context, w provider.Worker) (provider.Machine, error) {
	s.mu.Lock()
	m := s.machine(w)
	m.worker, m.wanted = w, true
	s.c.Source.claims.set(podName(s.machines, w.Name), s, true)
	s.mu.Unlock()
	for {
		s.mu.Lock()
		out, wait, act, err := s.next(m)
		s.mu.Unlock()
		if err != nil || out.Address != "" {
			return out, err
		}
		if act != nil {
			if err := act(ctx); err != nil {
				return provider.Machine{}, err
			}
			continue
		}
		if err := s.await(ctx, wait); err != nil {
			return provider.Machine{}, err
		}
	}
}

// waiting is until when something is to change, or else another look is due.
type waiting struct {
	changed <-chan struct{}
	until   time.Time // zero for ever
}

func (s *Supply) await(ctx context.Context, w waiting) error {
	var late <-chan time.Time
	if !w.until.IsZero() {
		t := time.NewTimer(time.Until(w.until) + time.Millisecond)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-w.changed:
	case <-late:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errors.New("machine supply is closed")
	}
	return nil
}

// next looks at a machine that is wanted: it is there, it cannot be had, something is to be waited for, or act is to be
// done. The caller holds mu.
func (s *Supply) next(m *machine) (out provider.Machine, wait waiting, act func(context.Context) error,
	err error) {
	wait.changed = m.changed
	p, kind, now := m.pod, m.worker.DeviceType, time.Now()
	switch {
	case p == nil:
		if none := s.missing[kind]; none.until.After(now) {
			return out, wait, nil, s.unavailable(m, none.why, none.until.Sub(now))
		}
		return out, wait, func(ctx context.Context) error { return s.create(ctx, m) }, nil
	case p.DeletionTimestamp != nil:
		return out, wait, nil, nil
	case isOver(p):
		var failed error
		why := endedBy(p)
		if !m.asked.IsZero() && !m.given {
			s.lacks(kind, why, failedFor)
			failed = s.unavailable(m, why, failedFor)
		}
		return out, wait, func(ctx context.Context) error {
			return errors.Join(s.delete(ctx, p, 0), failed)
		}, nil
	case isReady(p):
		out.Address = fmt.Sprintf("%s:%d", p.Status.PodIP, s.c.Port)
		if !m.given && !m.asked.IsZero() {
			out.Started = max(now.Sub(m.asked), 1)
			s.started(kind, out.Started, s.nodes[p.Spec.NodeName], p)
		}
		m.given = true
		delete(s.missing, kind)
		s.judge(m)
		return out, wait, nil, nil
	}
	limit := s.pendingTimeout()
	from := p.CreationTimestamp.Time // in whole seconds
	if !m.asked.IsZero() {
		from = m.asked
	}
	if p.Spec.NodeName != "" {
		limit *= slower
	}
	if wait.until = from.Add(limit); now.Before(wait.until) {
		return out, wait, nil, nil
	}
	why := waitsFor(p)
	again := askAgain * s.pendingTimeout()
	s.lacks(kind, why, again)
	none := s.unavailable(m, why, again)
	return out, wait, func(ctx context.Context) error { return errors.Join(s.delete(ctx, p, 0), none) }, nil
}

func (s *Supply) unavailable(m *machine, why string, lasts time.Duration) error {
	return &provider.Unavailable{Worker: m.worker.Name, Why: why, For: lasts}
}

// lacks notes that no machine of a type can be had for some time, and has the watcher told of those that nobody has.
func (s *Supply) lacks(kind, why string, lasts time.Duration) {
	s.missing[kind] = absence{time.Now().Add(lasts), why}
	for name, m := range s.workers {
		if m.worker.DeviceType == kind && m.pod == nil && !m.wanted {
			s.tell(provider.Event{Worker: name, Kind: provider.Missing, Within: lasts, Why: why})
		}
	}
}

func (s *Supply) pendingTimeout() time.Duration {
	if d := s.machines.PendingTimeout.Duration; d > 0 {
		return d
	}
	return defaultPendingTimeout
}

// machine returns what is known of a worker. The caller holds mu.
func (s *Supply) machine(w provider.Worker) *machine {
	m := s.workers[w.Name]
	if m == nil {
		m = &machine{worker: w, changed: make(chan struct{})}
		s.workers[w.Name] = m
	}
	return m
}

// create asks for the pod of a machine.
func (s *Supply) create(ctx context.Context, m *machine) error {
	s.mu.Lock()
	w, machines := m.worker, s.machines
	s.mu.Unlock()
	p, err := newPod(machines, s.c.Source.namespace, w)
	if err != nil {
		return err
	}
	asked := time.Now()
	err = s.c.Source.client.Create(ctx, p)
	switch {
	case apierrors.IsAlreadyExists(err):
		// Its watch event is under way, or it is another's.
		return s.takeOver(ctx, m, p)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		again := s.refused(w.DeviceType, err)
		return &provider.Unavailable{Worker: w.Name, Why: err.Error(), For: again}
	case err != nil:
		return fmt.Errorf("worker %q: pod %s: %w", w.Name, p.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.asked = asked
	if m.pod == nil || m.pod.UID != p.UID {
		s.set(m, p)
	}
	return nil
}

// refused notes that the API server refuses pods of a type, such as for a quota.
func (s *Supply) refused(kind string, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.pendingTimeout()
	s.lacks(kind, err.Error(), again)
	return again
}

// takeOver waits for the watch to show a pod that is there already.
func (s *Supply) takeOver(ctx context.Context, m *machine, p *corev1.Pod) error {
	s.mu.Lock()
	w := waiting{changed: m.changed, until: time.Now().Add(10 * time.Second)}
	known := m.pod != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.await(ctx, w); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.pod == nil && time.Now().After(w.until) {
		return fmt.Errorf("worker %q: there is a pod %s that is none of this cell's machines: delete it", m.worker.Name,
			p.Name)
	}
	return nil
}

// Release implements provider.Supply.
func (s *Supply) Release(ctx context.Context, w provider.Worker) error {
	s.mu.Lock()
	m := s.workers[w.Name]
	if m == nil {
		s.mu.Unlock()
		return nil
	}
	m.wanted, m.given, m.asked = false, false, time.Time{}
	p := m.pod
	name := podName(s.machines, w.Name)
	s.mu.Unlock()
	s.c.Source.claims.set(name, s, false)
	if p == nil || s.c.Source.claims.others(name, s) {
		return nil
	}
	return s.delete(ctx, p, releaseGrace)
}

// delete deletes this very pod, with grace in seconds; not another one of its name.
func (s *Supply) delete(ctx context.Context, p *corev1.Pod, grace int64) error {
	if p.DeletionTimestamp != nil && grace > 0 {
		return nil
	}
	err := s.c.Source.client.Delete(ctx, p, client.Preconditions{UID: ptr.To(p.UID)},
		client.GracePeriodSeconds(grace))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", p.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Until the watch says so, nobody may take the pod for one that stays.
	if m := s.workers[p.Labels[labelMachine]]; m != nil && m.pod != nil && m.pod.UID == p.UID &&
		m.pod.DeletionTimestamp == nil {
		gone := m.pod.DeepCopy()
		gone.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)))
		s.set(m, gone)
	}
	return nil
}

// Watch implements provider.Supply.
func (s *Supply) Watch(f func(provider.Event)) (stop func()) {
	stop = s.watcher.Watch(f)
	s.wake()
	return stop
}

// tell has the watcher told of an event. The caller holds mu.
func (s *Supply) tell(e provider.Event) {
	s.events = append(s.events, e)
	s.wake()
}

func (s *Supply) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// untold is the first event that nobody was told of; false for none.
func (s *Supply) untold() (e provider.Event, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		return e, false
	}
	return s.events[0], true
}

// tellAll calls the watcher, outside of mu, in the order of the events.
func (s *Supply) tellAll() {
	for {
		select {
		case <-s.closed:
			return
		case <-s.more:
		}
		for {
			e, ok := s.untold()
			if !ok || !s.watcher.Tell(e) {
				break // without a watcher it is told when there is one
			}
			s.mu.Lock()
			s.events = slices.Delete(s.events, 0, 1)
			s.mu.Unlock()
		}
	}
}
