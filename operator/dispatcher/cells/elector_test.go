package cells

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// span is a time in which a replica served a cell.
type span struct {
	replica  string
	from, to time.Time
	given    bool // it ended because the cell was handed over
}

// history has who served which cell and when.
type history struct {
	mu    sync.Mutex
	spans map[int][]*span
}

// replica is an elector in this process, with a watch of its own and a client that can be cut.
type testReplica struct {
	name    string
	elector *Elector
	cut     atomic.Bool // its calls fail, and its watch brings nothing
	stop    context.CancelFunc
	ended   chan struct{}
	h       *history
	log     bytes.Buffer
	mu      sync.Mutex
	serving map[int]*span
}

// Write implements io.Writer for the log.
func (r *testReplica) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

// Prepare implements Server.
func (r *testReplica) Prepare(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.serving[n] == nil {
		r.serving[n] = &span{replica: r.name, from: time.Now()}
		r.h.mu.Lock()
		r.h.spans[n] = append(r.h.spans[n], r.serving[n])
		r.h.mu.Unlock()
	}
}

// Prepared implements Server.
func (r *testReplica) Prepared(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serving[n] != nil
}

// Release implements Server.
func (r *testReplica) Release(n int, given bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.serving[n]; x != nil {
		r.h.mu.Lock()
		x.to, x.given = time.Now(), given
		r.h.mu.Unlock()
		delete(r.serving, n)
	}
}

func (r *testReplica) cells() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.serving))
}

// cutClient fails while its replica is cut off.
type cutClient struct {
	client.Client
	cut *atomic.Bool
}

var errCut = errors.New("dial tcp: no route to host")

func (c cutClient) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Client.Get(ctx, k, o, opts...)
}

func (c cutClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Client.Create(ctx, o, opts...)
}

func (c cutClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Client.Update(ctx, o, opts...)
}

func (c cutClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Client.Delete(ctx, o, opts...)
}

const testFleet = "f"

// team are replicas of one fleet.
type team struct {
	t         *testing.T
	c         *cluster.Cluster
	namespace string
	h         *history
	all       []*testReplica
	cells     int
}

func newTeam(t *testing.T, c *cluster.Cluster, cells int) *team {
	return &team{t: t, c: c, namespace: c.Namespace(t), h: &history{spans: make(map[int][]*span)}, cells: cells}
}

// start adds a replica whose clock is wrong by skew.
func (x *team) start(name string, skew time.Duration) *testReplica {
	x.t.Helper()
	r := &testReplica{name: name, h: x.h, serving: make(map[int]*span), ended: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(r, nil))
	r.elector = New(Options{
		Client: cutClient{x.c.Client, &r.cut}, Namespace: x.namespace, Fleet: testFleet,
		Me:       Holder{Identity: name, HTTP: name + ":8000", GRPC: name + ":8001"},
		Duration: 3 * time.Second, Renew: time.Second, Server: r,
		Changed: func(map[int]Holder) {}, Log: log, Wall: func() time.Time { return time.Now().Add(skew) },
		CutOff: func(context.Context, []Holder) bool {
			return slices.ContainsFunc(x.all, func(o *testReplica) bool {
				return o != r && time.Since(o.elector.Reached()) < 1500*time.Millisecond
			})
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	watching, unwatch := context.WithCancel(context.Background())
	go r.watch(watching, x)
	owners := make(map[int]metav1.OwnerReference)
	for n := range x.cells {
		owners[n] = metav1.OwnerReference{}
	}
	r.elector.SetCells(owners)
	x.all = append(x.all, r)
	go func() { defer close(r.ended); defer unwatch(); r.elector.Run(ctx) }()
	x.t.Cleanup(func() {
		stop()
		<-r.ended
		if x.t.Failed() {
			r.mu.Lock()
			defer r.mu.Unlock()
			x.t.Logf("log of %s:\n%s", name, r.log.String())
		}
	})
	return r
}

// watch polls the leases for the elector, in place of a watch: what counts is what it sees and when.
func (r *testReplica) watch(ctx context.Context, x *team) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var list coordinationv1.LeaseList
		if r.cut.Load() || x.c.Client.List(ctx, &list, client.InNamespace(x.namespace)) != nil {
			continue
		}
		for k := range list.Items {
			r.elector.See(&list.Items[k])
		}
	}
}

// settled waits until every cell is served by one of these replicas, each serving from least to most of them.
func (x *team) settled(least, most int, among ...*testReplica) {
	x.t.Helper()
	cluster.Eventually(x.t, "the cells are spread", func() error {
		seen := map[int]string{}
		for _, r := range among {
			mine := r.cells()
			if len(mine) < least || len(mine) > most {
				return fmt.Errorf("%s serves %v", r.name, mine)
			}
			for _, n := range mine {
				if seen[n] != "" {
					return fmt.Errorf("cell %d is served by %s and %s", n, seen[n], r.name)
				}
				seen[n] = r.name
			}
		}
		if len(seen) != x.cells {
			return fmt.Errorf("of %d cells %v are served", x.cells, seen)
		}
		return nil
	})
}

// one holds that no cell was served by two replicas at once, but while it was handed over, or for less than slack.
func (x *team) one(slack time.Duration) {
	x.t.Helper()
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	spans, longest := 0, time.Duration(0)
	for n, list := range x.h.spans {
		spans += len(list)
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.replica == b.replica || a.given || b.given {
					continue
				}
				to := a.to
				if to.IsZero() {
					to = time.Now()
				}
				if both := to.Sub(b.from); both > slack {
					x.t.Errorf("cell %d was served by %s and %s at once for %v", n, a.replica, b.replica, both)
				} else {
					longest = max(longest, both)
				}
			}
		}
	}
	x.t.Logf("%d spans of service, none of them beside another for more than %v", spans, longest)
}

// TestClocksMayDiffer runs replicas whose clocks are an hour slow, right, and an hour fast: nobody takes what another
// one renews, and a silent one's cells are taken over.
func TestClocksMayDiffer(t *testing.T) {
	x := newTeam(t, cluster.Start(t, cluster.Options{}), 6)
	slow, right, fast := x.start("slow", -time.Hour), x.start("right", 0), x.start("fast", time.Hour)
	x.settled(2, 2, slow, right, fast)
	x.h.mu.Lock()
	before := 0
	for _, list := range x.h.spans {
		before += len(list)
	}
	x.h.mu.Unlock()
	time.Sleep(8 * time.Second) // long enough for each to lapse twice if clocks mattered
	x.h.mu.Lock()
	after := 0
	for _, list := range x.h.spans {
		after += len(list)
	}
	x.h.mu.Unlock()
	if after != before {
		t.Errorf("cells have moved %d times though all replicas lived", after-before)
	}
	fast.cut.Store(true)
	began := time.Now()
	x.settled(3, 3, slow, right)
	t.Logf("cells of a replica that is cut off were taken over within %v", time.Since(began).Round(10*time.Millisecond))
	fast.cut.Store(false)
	x.settled(2, 2, slow, right, fast)
	x.one(2 * time.Second)
}

// TestReplicasComeAndGo holds that a replica that comes gets its share, one that ends gives its own over, and nothing
// is unserved between.
func TestReplicasComeAndGo(t *testing.T) {
	x := newTeam(t, cluster.Start(t, cluster.Options{}), 4)
	a := x.start("a", 0)
	x.settled(4, 4, a)
	b := x.start("b", 0)
	x.settled(2, 2, a, b)
	b.stop()
	<-b.ended
	if left := b.cells(); len(left) > 0 {
		t.Errorf("a replica ended with cells %v", left)
	}
	x.settled(4, 4, a)
	x.h.mu.Lock()
	for n, list := range x.h.spans {
		for _, s := range list {
			if !s.to.IsZero() && !s.given {
				t.Errorf("%s gave up cell %d without handing it over", s.replica, n)
			}
		}
	}
	x.h.mu.Unlock()
	var leases coordinationv1.LeaseList
	if err := x.c.Client.List(t.Context(), &leases, client.InNamespace(x.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Items {
		if strings.HasSuffix(l.Name, "-dispatcher-b") {
			t.Errorf("the replica that ended has left %s", l.Name)
		}
	}
}

// TestNobodyReachesTheAPIServer holds that holders go on while the API server is gone for all, and that nobody takes
// anything when it is back.
func TestNobodyReachesTheAPIServer(t *testing.T) {
	x := newTeam(t, cluster.Start(t, cluster.Options{}), 3)
	a, b := x.start("a", 0), x.start("b", 0)
	x.settled(1, 2, a, b)
	was := map[string][]int{"a": a.cells(), "b": b.cells()}
	a.cut.Store(true)
	b.cut.Store(true)
	time.Sleep(7 * time.Second) // more than twice the time of a lease
	b.cut.Store(false)
	time.Sleep(300 * time.Millisecond) // some reach it before others do
	a.cut.Store(false)
	time.Sleep(5 * time.Second)
	for _, r := range []*testReplica{a, b} {
		if now := r.cells(); !slices.Equal(now, was[r.name]) {
			t.Errorf("%s served %v and serves %v", r.name, was[r.name], now)
		}
	}
	x.one(0)
}
