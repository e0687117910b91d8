package supply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// The tests of this package share a control plane with a scheduler, controllers and simulated nodes of two types.
var shared struct {
	once sync.Once
	c    *cluster.Cluster
	err  error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	status := m.Run()
	if shared.c != nil {
		shared.c.Close()
	}
	os.Exit(status)
}

func control(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.Need(t)
	shared.once.Do(func() {
		shared.c, shared.err = cluster.Open(cluster.Options{Controllers: true, Nodes: []cluster.Nodes{
			{Name: "small", Count: 2, Labels: map[string]string{"type": "small"}},
			{Name: "large", Count: 4, Labels: map[string]string{"type": "large"}},
		}})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.c
}

// fixture is a fleet with a cell in a namespace of its own.
type fixture struct {
	*Supply
	c  *cluster.Cluster
	ns string
	m  *cell.Machines

	mu     sync.Mutex
	events []provider.Event
}

func newFixture(t *testing.T, change func(*cell.Machines)) *fixture {
	t.Helper()
	c := control(t)
	f := &fixture{c: c, ns: c.Namespace(t)}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cell.Name("default", 0), Namespace: f.ns}}
	if err := c.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	f.m = &cell.Machines{
		Fleet: "default", UID: config.UID, Image: "sluice:test", MaxSurge: "1",
		PendingTimeout: metav1.Duration{Duration: time.Minute},
		Types: map[string]v1alpha1.MachineTypeSpec{
			"small": {Tenure: v1alpha1.Rented, Most: 4, Cores: 1, NodeSelector: map[string]string{"type": "small"}},
			"large": {Tenure: v1alpha1.Rented, Most: 4, Cores: 2, NodeSelector: map[string]string{"type": "large"}},
			"none":  {Tenure: v1alpha1.Rented, Most: 4, Cores: 1, NodeSelector: map[string]string{"type": "none"}},
		},
	}
	if change != nil {
		change(f.m)
	}
	f.Supply = f.open(t, Config{})
	f.Watch(func(e provider.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, e)
	})
	return f
}

func (f *fixture) open(t *testing.T, c Config) *Supply {
	t.Helper()
	source, err := NewSource(t.Context(), f.c.Config, f.ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	c.Source, c.Machines = source, f.m
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); source.Close() })
	return s
}

// saw waits for an event of a worker.
func (f *fixture) saw(t *testing.T, kind provider.Kind, worker string) provider.Event {
	t.Helper()
	var out provider.Event
	cluster.Eventually(t, fmt.Sprintf("%s of %s", kind, worker), func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		at := slices.IndexFunc(f.events, func(e provider.Event) bool { return e.Kind == kind && e.Worker == worker })
		if at < 0 {
			return fmt.Errorf("there was %v", f.events)
		}
		out = f.events[at]
		f.events = slices.Delete(f.events, at, at+1)
		return nil
	})
	return out
}

func worker(name, kind string) provider.Worker { return provider.Worker{Name: name, DeviceType: kind} }

func (f *fixture) acquire(t *testing.T, w provider.Worker) provider.Machine {
	t.Helper()
	m, err := f.Acquire(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (f *fixture) pod(t *testing.T, w provider.Worker) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	at := client.ObjectKey{Namespace: f.ns, Name: podName(f.m, w.Name)}
	if err := f.c.Client.Get(t.Context(), at, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func (f *fixture) noPods(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, "there is no pod", func() error {
		var pods corev1.PodList
		err := f.c.Client.List(context.Background(), &pods, client.InNamespace(f.ns))
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there is %s and %d more", pods.Items[0].Name, len(pods.Items)-1)
		}
		return err
	})
}

func TestMachineComesAndGoes(t *testing.T) {
	f := newFixture(t, nil)
	w := worker("large-0", "large")
	m := f.acquire(t, w)
	p := f.pod(t, w)
	if want := fmt.Sprintf("%s:%d", p.Status.PodIP, PortGRPC); m.Address != want || m.Started <= 0 {
		t.Errorf("the machine is %+v, want address %s and a time", m, want)
	}
	if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != f.m.UID {
		t.Errorf("the pod belongs to %v, want the fleet", p.OwnerReferences)
	}
	if again := f.acquire(t, w); again.Address != m.Address || again.Started != 0 {
		t.Errorf("acquired again it is %+v, want the same and no time", again)
	}
	if s := f.Stats()["large"]; s.Wanted != 1 || s.Ready != 1 || s.NodeThere == 0 || s.NodeBought != 0 {
		t.Errorf("of the type is known %+v", s)
	}
	if err := f.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.noPods(t)
	// The next one may be asked for while the pod before is still going.
	one := f.acquire(t, w)
	if err := f.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	before := f.identity(t, w)
	if two := f.acquire(t, w); two.Address == "" || f.pod(t, w).UID == before {
		t.Errorf("after %+v there is %+v of the same pod", one, two)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) > 0 {
		t.Errorf("machines that were given back made events: %v", f.events)
	}
}

// identity is that of a worker's pod, or none.
func (f *fixture) identity(t *testing.T, w provider.Worker) types.UID {
	t.Helper()
	var p corev1.Pod
	at := client.ObjectKey{Namespace: f.ns, Name: podName(f.m, w.Name)}
	if err := f.c.Client.Get(t.Context(), at, &p); err != nil {
		return ""
	}
	return p.UID
}

func TestEvictionIsToldBeforeTheLoss(t *testing.T) {
	f := newFixture(t, nil)
	w := worker("large-0", "large")
	f.acquire(t, w)
	p := f.pod(t, w)
	// Something that only a finalizer shows: a kwok pod ends at once, a real one takes its grace.
	p.Finalizers = []string{"sluice.dev/test"}
	if err := f.c.Client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := f.c.Client.SubResource("eviction").Create(t.Context(), p, &policyv1.Eviction{}); err != nil {
		t.Fatal(err)
	}
	if e := f.saw(t, provider.Leaving, w.Name); e.Why == "" {
		t.Error("the notice does not say why")
	}
	cluster.Eventually(t, "the pod may go", func() error {
		p := f.pod(t, w)
		p.Finalizers = nil
		return f.c.Client.Update(t.Context(), p)
	})
	f.saw(t, provider.Lost, w.Name)
	f.acquire(t, w) // another one
}

func TestCordonIsANotice(t *testing.T) {
	f := newFixture(t, nil)
	w := worker("small-0", "small")
	f.acquire(t, w)
	name := f.pod(t, w).Spec.NodeName
	cordon(t, f.c, name, true)
	defer cordon(t, f.c, name, false)
	f.saw(t, provider.Leaving, w.Name)
	cordon(t, f.c, name, false)
	f.saw(t, provider.Staying, w.Name)
	cordon(t, f.c, name, true)
	f.saw(t, provider.Leaving, w.Name)
	if err := f.Release(t.Context(), w); err != nil { // as when the plan has moved its work
		t.Fatal(err)
	}
	f.saw(t, provider.Staying, w.Name)
	f.acquire(t, w)
	if now := f.pod(t, w).Spec.NodeName; now == name {
		t.Errorf("the new machine is on node %s, too", name)
	}
}

func cordon(t *testing.T, c *cluster.Cluster, name string, on bool) {
	t.Helper()
	cluster.Eventually(t, "the node is cordoned", func() error {
		var n corev1.Node
		if err := c.Client.Get(context.Background(), client.ObjectKey{Name: name}, &n); err != nil {
			return err
		}
		n.Spec.Unschedulable = on
		return c.Client.Update(context.Background(), &n)
	})
}

func TestNodeThatIsGoneIsALoss(t *testing.T) {
	f := newFixture(t, func(m *cell.Machines) {
		m.Types["own"] = v1alpha1.MachineTypeSpec{Most: 1, Cores: 1, NodeSelector: map[string]string{"type": "own"}}
	})
	c := f.c
	own := cluster.Nodes{Name: "own", Count: 2, Labels: map[string]string{"type": "own"}}
	if err := c.AddNodes(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	w := worker("own-0", "own")
	f.acquire(t, w)
	before := f.pod(t, w)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: before.Spec.NodeName}}
	if err := c.Client.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	f.saw(t, provider.Lost, w.Name)
	f.acquire(t, w) // at once, and not when the garbage collector has seen to the old pod
	if after := f.pod(t, w); after.UID == before.UID || after.Spec.NodeName == before.Spec.NodeName {
		t.Errorf("the machine is pod %s on %s again", after.UID, after.Spec.NodeName)
	}
}

func TestTypeThatRunsOutIsNotToBeHad(t *testing.T) {
	f := newFixture(t, func(m *cell.Machines) { m.PendingTimeout.Duration = time.Second })
	w := worker("none-0", "none")
	other := worker("none-1", "none")
	if _, err := f.Acquire(t.Context(), w); !isUnavailable(err, 4*time.Second) {
		t.Fatalf("the error is %v, want that none can be had for 4 s", err)
	}
	f.noPods(t)
	if _, err := f.Acquire(t.Context(), other); !isUnavailable(err, 0) {
		t.Fatalf("the error is %v, want that none of the type can be had", err)
	}
	if s := f.Stats()["none"]; s.Missing == "" {
		t.Errorf("of the type is known %+v, want why it is missing", s)
	}
}

func isUnavailable(err error, lasts time.Duration) bool {
	var u *provider.Unavailable
	return errors.As(err, &u) && u.For >= lasts && u.Why != ""
}

func TestAnotherDispatcherAdopts(t *testing.T) {
	f := newFixture(t, nil)
	w, unclaimed := worker("large-0", "large"), worker("large-1", "large")
	m := f.acquire(t, w)
	f.acquire(t, unclaimed)
	before := f.pod(t, w).UID
	f.Close()
	next := f.open(t, Config{Adopt: time.Second})
	again, err := next.Acquire(t.Context(), w)
	if err != nil || again.Address != m.Address || again.Started != 0 {
		t.Fatalf("adopted is %+v (%v), want %+v without a time", again, err, m)
	}
	cluster.Eventually(t, "what nobody wants is given back", func() error {
		if f.identity(t, unclaimed) != "" {
			return errors.New("it is there")
		}
		return nil
	})
	if f.pod(t, w).UID != before {
		t.Error("the adopted pod was replaced")
	}
}

// While a cell's configuration is replaced it has two supplies. What one gives back the other keeps.
func TestTwoSuppliesOfOneCell(t *testing.T) {
	f := newFixture(t, nil)
	w := worker("large-0", "large")
	m := f.acquire(t, w)
	next, close, err := f.source().Supply(mustEncode(t, f.m), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	again, err := next.Acquire(t.Context(), w)
	if err != nil || again.Address != m.Address {
		t.Fatalf("%+v, %v", again, err)
	}
	before := f.pod(t, w).UID
	if err := f.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if p := f.pod(t, w); p.UID != before || p.DeletionTimestamp != nil {
		t.Error("the pod goes although the other supply uses it")
	}
	if err := next.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.noPods(t)
}

// source is that of the fixture's supply.
func (f *fixture) source() *Source { return f.Supply.c.Source }

func mustEncode(t *testing.T, m *cell.Machines) []byte {
	t.Helper()
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func TestNewTemplateRollsWithinMaxSurge(t *testing.T) {
	f := newFixture(t, nil)
	workers := []provider.Worker{worker("large-0", "large"), worker("large-1", "large"), worker("large-2", "large")}
	for _, w := range workers {
		f.acquire(t, w)
	}
	newer := *f.m
	newer.Image = "sluice:newer"
	f.Update(&newer)
	left := slices.Clone(workers)
	for len(left) > 0 {
		var at int
		cluster.Eventually(t, "one machine leaves", func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			leaving := slices.DeleteFunc(slices.Clone(f.events), func(e provider.Event) bool {
				return e.Kind != provider.Leaving
			})
			if len(leaving) == 0 {
				return errors.New("none leaves")
			}
			if len(leaving) > 1 {
				t.Fatalf("%d leave at once, maxSurge is 1: %v", len(leaving), leaving)
			}
			at = slices.IndexFunc(left, func(w provider.Worker) bool { return w.Name == leaving[0].Worker })
			f.events = nil
			return nil
		})
		w := left[at]
		left = slices.Delete(left, at, at+1)
		if err := f.Release(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		f.saw(t, provider.Staying, w.Name)
		f.acquire(t, w)
		if image := f.pod(t, w).Spec.Containers[0].Image; image != "sluice:newer" {
			t.Errorf("the new pod of %s has image %s", w.Name, image)
		}
	}
}

// The pods are as pod security's level restricted wants them: a namespace that enforces it takes them.
func TestPodsAreRestricted(t *testing.T) {
	f := newFixture(t, func(m *cell.Machines) {
		m.Models = map[string]v1alpha1.Model{
			"a": {URI: "pvc://models/a"}, "b": {URI: "s3://bucket/b", Secret: "keys"},
		}
		m.Types["triton"] = v1alpha1.MachineTypeSpec{Backend: v1alpha1.BackendTriton, Image: "triton", Cores: 1}
	})
	ns := &corev1.Namespace{}
	if err := f.c.Client.Get(t.Context(), client.ObjectKey{Name: f.ns}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := f.c.Client.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for kind := range f.m.Types {
		p, err := newPod(f.m, f.ns, provider.Worker{Name: kind + "-9", DeviceType: kind, Models: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.c.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Errorf("type %s: %v", kind, err)
		}
	}
}
