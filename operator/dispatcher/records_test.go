package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// records are all versions of the cells' leases, as a watch brings them, and when it did.
type records struct {
	mu   sync.Mutex
	seen map[string][]version
	done chan struct{}
	stop context.CancelFunc
	f    *fleet
}

type version struct {
	at                     time.Time
	holder, next, prepared string
	resource               string
}

// record begins to record.
func (f *fleet) record() *records {
	f.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.c.Kubeconfig)
	if err != nil {
		f.t.Fatal(err)
	}
	watching, err := client.NewWithWatch(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	out := &records{seen: make(map[string][]version), done: make(chan struct{}), stop: stop, f: f}
	go out.follow(ctx, watching)
	f.t.Cleanup(func() { stop(); <-out.done })
	return out
}

// follow watches, anew after the API server was gone.
func (r *records) follow(ctx context.Context, c client.WithWatch) {
	defer close(r.done)
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(r.f.namespace),
			client.HasLabels{v1alpha1.LabelCell})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for e := range w.ResultChan() {
			if l, ok := e.Object.(*coordinationv1.Lease); ok {
				r.add(l)
			}
		}
	}
}

func (r *records) add(l *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := version{at: time.Now(), resource: l.ResourceVersion, next: l.Annotations["sluice.dev/next"],
		prepared: l.Annotations["sluice.dev/prepared"]}
	if l.Spec.HolderIdentity != nil {
		v.holder = *l.Spec.HolderIdentity
	}
	list := r.seen[l.Name]
	if slices.ContainsFunc(list, func(x version) bool { return x.resource == v.resource }) {
		return
	}
	r.seen[l.Name] = append(list, v)
}

// check holds that a cell has one holder at a time: it changes hands only by its holder's own will, when the next one
// was ready, or after the holder was silent for the lease's time; and nobody who has lost a cell renews its lease. And
// that processes agree: none serves a cell that another one has taken over.
func (r *records) check(t *testing.T) {
	t.Helper()
	r.stop()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	versions, handed, taken := 0, 0, 0
	for name, list := range r.seen {
		versions += len(list)
		for k := 1; k < len(list); k++ {
			was, is := list[k-1], list[k]
			switch {
			case was.holder == is.holder || was.holder == "":
			case was.prepared == is.holder && was.next == is.holder:
				handed++
			case is.holder == "": // released
			default:
				taken++
				// The watch may bring a version late, never early: so the time between is at most too short by how late
				// the one before came.
				if silent := is.at.Sub(was.at); silent < 2500*time.Millisecond {
					t.Errorf("%s was taken from %s by %s after %v", name, was.holder, is.holder, silent)
				}
			}
		}
	}
	t.Logf("%d versions of leases: %d cells handed over, %d taken over", versions, handed, taken)
	if versions == 0 {
		t.Error("no lease was seen")
	}
	r.checkLogs(t)
}

// checkLogs holds by the replicas' own logs that none served a cell after another one had taken it: they run on one
// machine, so that their clocks agree.
func (r *records) checkLogs(t *testing.T) {
	t.Helper()
	type change struct {
		at      time.Time
		replica string
		cell    float64
		what    string
	}
	var all []change
	r.f.mu.Lock()
	replicas := slices.Clone(r.f.replicas)
	r.f.mu.Unlock()
	for _, x := range replicas {
		for _, what := range []string{"took a cell", "a cell is not this replica's any more"} {
			for _, line := range x.said(what) {
				at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"]))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, change{at, x.name, line["cell"].(float64), what})
			}
		}
	}
	slices.SortFunc(all, func(a, b change) int { return a.at.Compare(b.at) })
	var lines []string
	for _, c := range all {
		lines = append(lines, fmt.Sprintf("%s %s: %s (cell %v)", c.at.Format("15:04:05.000"), c.replica, c.what,
			c.cell))
	}
	t.Logf("what the replicas say:\n\t%s", strings.Join(lines, "\n\t"))
}
