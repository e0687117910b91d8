package scale

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/supply"
)

const fleetName = "scale"

// size is how large a world is.
type size struct {
	workers, apps, dispatchers int
	steady                     time.Duration // how long calls are counted while nothing changes
	updates                    int           // apps that are changed, one after another
}

// types is the number of machine types; each node is of one.
const types = 5

// takes is how long a worker runs a query: so long that few queries/s keep many machines busy, since two processors
// answer for all of them.
const takes = 5 * time.Second

// objective is the latency that apps promise.
const objective = 40 * time.Second

// machinesOf is how many machines the load of an app keeps busy, on average. Without a budget plans have more, for what
// is uneven.
func (z size) machinesOf() float64 { return 0.5 * float64(z.workers) / float64(z.apps) }

// most is how many workers of a type there can be at first, and spare how many more nodes of it there are: those of
// four types take the workers that move when the fifth loses a tenth of all.
func (z size) most() int  { return z.workers / types }
func (z size) moves() int { return z.workers / 10 }
func (z size) spare() int { return (z.moves() + types - 2) / (types - 1) }

// rate of an app, in queries/s.
func (z size) rate() float64 { return z.machinesOf() / takes.Seconds() }

func typeName(n int) string { return fmt.Sprintf("type-%d", n) }
func appName(n int) string  { return fmt.Sprintf("app-%03d", n) }

// nodes are what the cluster has.
func (z size) nodesOf() (out []cluster.Nodes) {
	for n := range types {
		out = append(out, cluster.Nodes{Name: typeName(n), Count: z.most() + z.spare(),
			Labels: map[string]string{"type": typeName(n)},
			Capacity: corev1.ResourceList{ // one worker, and a dispatcher's pod
				corev1.ResourceCPU: resource.MustParse("5"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			}})
	}
	return out
}

func quantity(x float64) *resource.Quantity {
	q := resource.MustParse(fmt.Sprintf("%.3f", x))
	return &q
}

func gibibytes(n int) *resource.Quantity {
	q := resource.MustParse(fmt.Sprintf("%dGi", n))
	return &q
}

// resources are the fleet, its machine types, its apps, and what their variants take.
func (z size) resources() (list []client.Object) {
	list = append(list, &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: fleetName},
		Spec: v1alpha1.FleetSpec{Dispatchers: int32(z.dispatchers)}})
	for n := range types {
		list = append(list, &v1alpha1.MachineType{ObjectMeta: metav1.ObjectMeta{Name: typeName(n)},
			Spec: v1alpha1.MachineTypeSpec{Fleet: fleetName, PricePerHour: quantity(0.1 + 0.02*float64(n)),
				Most: int32(z.most()), Cores: 4, Memory: gibibytes(8), Backend: v1alpha1.BackendFake,
				NodeSelector: map[string]string{"type": typeName(n)}}})
	}
	tensors := func(name string) []v1alpha1.Tensor {
		return []v1alpha1.Tensor{{Name: name, DataType: "FP32", Shape: []int64{-1, 1}}}
	}
	for n := range z.apps {
		uri, digest := "https://models.example.org/"+appName(n)+".onnx", fmt.Sprintf("%064x", n)
		list = append(list, &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: appName(n)},
			Spec: v1alpha1.InferenceAppSpec{Fleet: fleetName, Demand: quantity(z.rate()),
				Objective: v1alpha1.Objective{Latency: metav1.Duration{Duration: objective}},
				Variants: []v1alpha1.Variant{{Name: "only", MaxBatch: 1, Memory: gibibytes(3),
					Model: v1alpha1.Model{URI: uri, SHA256: digest}}},
				Inputs: tensors("x"), Outputs: tensors("y")}})
		for k := range types {
			now := metav1.Now()
			list = append(list, &v1alpha1.Profile{
				ObjectMeta: metav1.ObjectMeta{Name: appName(n) + "-" + typeName(k)},
				Spec: v1alpha1.ProfileSpec{Fleet: fleetName, App: appName(n), Variant: "only", MachineType: typeName(k),
					Model: digest, Measured: &now, Latencies: []v1alpha1.Latency{{Batch: 1,
						Mean: metav1.Duration{Duration: takes}, P95: metav1.Duration{Duration: takes}, Runs: 10}}}})
		}
	}
	return list
}

// writers is how many resources are written at a time, as a tool that applies many does.
const writers = 8

// apply writes resources.
func apply(t *testing.T, c *cluster.Cluster, ns string, list []client.Object) {
	t.Helper()
	next := make(chan client.Object)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for o := range next {
				o.SetNamespace(ns)
				if err := c.Client.Create(context.Background(), o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, o := range list {
		next <- o
	}
	close(next)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// view is what the API server shows, as a watch keeps it.
type view struct {
	*testing.T
	cache cache.Cache
	ns    string

	mu            sync.Mutex
	created, gone int // pods of workers
}

func watch(t *testing.T, c *cluster.Cluster, ns string) *view {
	t.Helper()
	from, err := cache.New(c.Config, cache.Options{
		Scheme: cluster.Scheme(), DefaultNamespaces: map[string]cache.Config{ns: {}},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		t.Fatal(err)
	}
	v := &view{T: t, cache: from, ns: ns}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- from.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	pods, err := from.GetInformer(ctx, &corev1.Pod{})
	if err == nil {
		_, err = pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(x any) { v.count(x, &v.created) },
			DeleteFunc: func(x any) { v.count(x, &v.gone) },
		})
	}
	if err == nil {
		_, err = from.GetInformer(ctx, &v1alpha1.InferenceApp{})
	}
	if err == nil {
		_, err = from.GetInformer(ctx, &v1alpha1.Fleet{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *view) count(x any, n *int) {
	if last, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
		x = last.Obj
	}
	if p, ok := x.(*corev1.Pod); ok && p.Labels[v1alpha1.LabelRole] == supply.RoleWorker {
		v.mu.Lock()
		defer v.mu.Unlock()
		*n++
	}
}

// moves is how many pods of workers have come and gone so far.
func (v *view) moves() (created, gone int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.created, v.gone
}

// pods counts the workers' pods.
type pods struct {
	running, pending, leaving int
	byType                    map[string]int // running ones
}

func (v *view) pods() pods {
	v.Helper()
	var list corev1.PodList
	if err := v.cache.List(v.Context(), &list, client.InNamespace(v.ns),
		client.MatchingLabels{v1alpha1.LabelRole: supply.RoleWorker}, client.UnsafeDisableDeepCopy); err != nil {
		v.Fatal(err)
	}
	out := pods{byType: map[string]int{}}
	for i := range list.Items {
		p := &list.Items[i]
		switch {
		case p.DeletionTimestamp != nil:
			out.leaving++
		case p.Status.Phase == corev1.PodRunning:
			out.running++
			out.byType[p.Labels[v1alpha1.LabelMachineType]]++
		default:
			out.pending++
		}
	}
	return out
}

// apps counts the apps for which a condition is true.
func (v *view) apps(condition string) (n int) {
	v.Helper()
	var list v1alpha1.InferenceAppList
	if err := v.cache.List(v.Context(), &list, client.InNamespace(v.ns), client.UnsafeDisableDeepCopy); err != nil {
		v.Fatal(err)
	}
	for i := range list.Items {
		if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, condition) {
			n++
		}
	}
	return n
}
