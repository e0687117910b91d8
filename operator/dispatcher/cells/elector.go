package cells

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server serves cells in this process. Its methods return at once.
type Server interface {
	// Prepare has a cell get ready to be served. It may be called again.
	Prepare(cell int)
	// Prepared reports whether the cell is ready.
	Prepared(cell int) bool
	// Release ends to serve a cell, after what it has accepted. After a handover it goes on for a moment, for queries
	// that were on their way; otherwise somebody else serves it without having been handed it.
	Release(cell int, handedOver bool)
}

// Options configure an Elector.
type Options struct {
	Client           client.Client // reads and writes the API server without a cache
	Namespace, Fleet string
	Me               Holder
	Owner            *metav1.OwnerReference // of the replica's own lease; nil for none
	Duration         time.Duration          // after which a silent holder is given up; whole seconds
	Renew            time.Duration          // between two renewals
	Server           Server
	// Changed is called with the holder of every cell when one has changed.
	Changed func(map[int]Holder)
	// CutOff asks other replicas whether they reach the API server while this one does not; nil never asks.
	CutOff func(ctx context.Context, others []Holder) bool
	// Wall is this machine's clock, for the times that leases show to people; nil for time.Now. No decision reads them.
	Wall func() time.Time
	Log  *slog.Logger
}

// Elector takes, renews and hands over cells.
type Elector struct {
	Options
	wake    chan struct{}
	results chan func(now time.Time)
	ops     sync.WaitGroup

	mu      sync.Mutex
	known   bool
	owners  map[int]metav1.OwnerReference // of the cells that there are
	seen    []sighting                    // from watches, not yet taken
	reached time.Time                     // when the API server last answered
	held    []int
	apart   bool // cut, for others to read

	cells    map[int]*held
	members  map[string]*member // by the name of the lease
	own      member
	failing  time.Time // since when the API server has not answered; zero while it does
	asked    time.Time // when other replicas were last asked
	accused  bool      // they said that they reach it
	cut      bool      // this replica alone does not reach it: it serves nothing
	leaving  bool
	told     map[int]Holder
	toldOnce bool
}

type sighting struct {
	name  string
	lease *coordinationv1.Lease // nil when it is gone
}

type held struct {
	observed
	renewAt time.Time
	busy    bool
	serving bool
	givenTo string // whom this replica hands it over to
}

type member struct {
	observed
	renewAt time.Time
	busy    bool
}

// New returns an elector. Run has it work.
func New(o Options) *Elector {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return &Elector{Options: o, wake: make(chan struct{}, 1), results: make(chan func(time.Time), 64),
		cells: make(map[int]*held), members: make(map[string]*member)}
}

// SetCells says which cells there are, with the object that each belongs to.
func (k *Elector) SetCells(owners map[int]metav1.OwnerReference) {
	k.mu.Lock()
	k.owners, k.known = maps.Clone(owners), true
	k.mu.Unlock()
	k.poke()
}

// See takes a lease from a watch; Gone takes the name of one that was deleted.
func (k *Elector) See(l *coordinationv1.Lease) { k.saw(sighting{l.Name, l}) }

// Gone takes the name of a lease that was deleted.
func (k *Elector) Gone(name string) { k.saw(sighting{name, nil}) }

func (k *Elector) saw(s sighting) {
	k.mu.Lock()
	k.seen = append(k.seen, s)
	k.mu.Unlock()
	k.poke()
}

// Poke has the elector look again, for instance because a cell has become ready.
func (k *Elector) Poke() { k.poke() }

func (k *Elector) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Reached is when the API server last answered; zero for never.
func (k *Elector) Reached() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reached
}

// IsCutOff reports whether this replica alone does not reach the API server, so that others have its cells.
func (k *Elector) IsCutOff() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.apart
}

// Held are the cells that this replica holds and may serve.
func (k *Elector) Held() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.held)
}

// leaveTime bounds how long a replica that ends tries to hand its cells over.
const leaveTime = 30 * time.Second

// Run keeps cells until ctx ends. Then it hands its cells over to other replicas, if there are any, and returns once it
// holds none, or cannot.
func (k *Elector) Run(ctx context.Context) {
	tick := time.NewTicker(k.Renew / 5)
	defer tick.Stop()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	ending := ctx.Done()
	var deadline <-chan time.Time
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-k.wake:
		case apply := <-k.results:
			apply(time.Now())
		case <-ending:
			ending, k.leaving, k.own.renewAt = nil, true, time.Time{}
			timer := time.NewTimer(leaveTime)
			defer timer.Stop()
			deadline = timer.C
		case <-deadline:
			done = true
		}
		k.step(working, time.Now())
		done = done || k.leaving && k.mayEnd()
	}
	k.finish()
	stop()
	go func() { // results of operations that were cut short
		for range k.results {
		}
	}()
	k.ops.Wait()
	close(k.results)
}

// mayEnd reports whether nothing is held any more, or nobody is there to take it.
func (k *Elector) mayEnd() bool {
	if k.anyBusy() {
		return false
	}
	for _, c := range k.cells {
		if k.promised(c) {
			return false
		}
	}
	return len(k.holding()) == 0 || len(k.live(time.Now())) == 0
}

func (k *Elector) anyBusy() bool {
	for _, c := range k.cells {
		if c.busy {
			return true
		}
	}
	return k.own.busy
}

// finish releases what is still held, and the replica's own lease, so that others need not wait until they lapse.
func (k *Elector) finish() {
	ctx, done := context.WithTimeout(context.Background(), 3*k.Renew)
	defer done()
	for _, n := range k.holding() {
		l := k.cells[n].lease.DeepCopy()
		give(l, Holder{}, k.Duration, k.Wall())
		if err := k.Client.Update(ctx, l); err != nil {
			k.Log.Warn("a cell was not released: others take it once its lease has lapsed", "cell", n, "error", err)
		}
		k.Server.Release(n, false)
	}
	if k.own.lease != nil {
		if err := client.IgnoreNotFound(k.Client.Delete(ctx, k.own.lease)); err != nil {
			k.Log.Warn("the replica's lease is left behind", "error", err)
		}
	}
}

// holding are the cells whose leases name this replica.
func (k *Elector) holding() (out []int) {
	for _, n := range slices.Sorted(maps.Keys(k.cells)) {
		if holderOf(k.cells[n].lease).Identity == k.Me.Identity {
			out = append(out, n)
		}
	}
	return out
}

// take moves what watches have seen into the elector's own view.
func (k *Elector) take(now time.Time) (known bool) {
	k.mu.Lock()
	seen, owners := k.seen, k.owners
	k.seen, known = nil, k.known
	k.mu.Unlock()
	for _, s := range seen {
		k.observe(s, now)
	}
	for n := range owners {
		if k.cells[n] == nil {
			k.cells[n] = &held{}
		}
	}
	return known
}

// observe takes one sighting.
func (k *Elector) observe(s sighting, now time.Time) {
	name := k.Fleet + "-cell-"
	if s.lease != nil {
		if n, ok := cellOf(s.lease); ok && s.name == LeaseName(k.Fleet, n) {
			if k.cells[n] == nil {
				k.cells[n] = &held{}
			}
			k.cells[n].see(s.lease, now)
			return
		}
		if IsMember(k.Fleet, s.lease) {
			if k.members[s.name] == nil {
				k.members[s.name] = &member{}
			}
			k.members[s.name].see(s.lease, now)
		}
		return
	}
	delete(k.members, s.name)
	if strings.HasPrefix(s.name, name) {
		for n, c := range k.cells {
			if s.name == LeaseName(k.Fleet, n) {
				c.see(nil, now)
			}
		}
	}
}

// live are the replicas that have shown themselves lately, with where they answer. Those that end are none of them.
func (k *Elector) live(now time.Time) map[string]Holder {
	out := make(map[string]Holder)
	fresh := func(o *observed) {
		if h := holderOf(o.lease); h.Identity != "" && now.Sub(o.since) < k.Duration {
			out[h.Identity] = h
		}
	}
	for _, m := range k.members {
		fresh(&m.observed)
	}
	for _, c := range k.cells {
		fresh(&c.observed)
	}
	for id := range k.ending() {
		delete(out, id)
	}
	delete(out, k.Me.Identity)
	if !k.leaving {
		out[k.Me.Identity] = k.Me
	}
	return out
}

// ending are the replicas that end and hand their cells over.
func (k *Elector) ending() map[string]bool {
	out := make(map[string]bool)
	for _, m := range k.members {
		if m.lease.Annotations[AnnotationLeaving] != "" {
			out[holderOf(m.lease).Identity] = true
		}
	}
	if k.leaving {
		out[k.Me.Identity] = true
	}
	return out
}
