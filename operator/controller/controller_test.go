package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// shared is the API server of the package's tests: each has a namespace of its own.
var shared = sync.OnceValues(func() (*cluster.Cluster, error) { return cluster.Open(cluster.Options{}) })

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if c, err := started(); c != nil && err == nil {
		c.Close()
	}
	os.Exit(code)
}

// used tells whether a test has started the API server.
var used bool

func started() (*cluster.Cluster, error) {
	if !used {
		return nil, nil
	}
	return shared()
}

// env is an operator on a namespace of a test's own.
type env struct {
	*testing.T
	c     *cluster.Cluster
	ns    string
	calls *calls
	stop  func()
}

// calls counts calls of the API server that are no watches.
type calls struct {
	mu   sync.Mutex
	all  []string
	next http.RoundTripper
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" && !strings.Contains(r.URL.Path, "/leases/") {
		c.mu.Lock()
		c.all = append(c.all, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

func (c *calls) since(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all[min(max(n, 0), len(c.all)):])
}

// newEnv starts an operator.
func newEnv(t *testing.T, change func(*Options)) *env {
	t.Helper()
	cluster.Need(t)
	used = true
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, c: c, ns: c.Namespace(t)}
	e.start(change)
	t.Cleanup(func() { e.stop() })
	return e
}

// start starts the operator, again after stop.
func (e *env) start(change func(*Options)) {
	e.Helper()
	o := Options{Namespaces: []string{e.ns}, Image: "sluice:test", Metrics: "0", Health: "0", Redeal: time.Hour}
	if change != nil {
		change(&o)
	}
	api := rest.CopyConfig(e.c.Config)
	e.calls = &calls{}
	api.Wrap(func(next http.RoundTripper) http.RoundTripper { e.calls.next = next; return e.calls })
	m, err := New(api, o)
	if err != nil {
		e.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			e.Errorf("the operator ended: %v", err)
		}
	})
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func (e *env) create(list ...client.Object) {
	e.Helper()
	for _, o := range list {
		o.SetNamespace(e.ns)
		if err := e.c.Client.Create(e.Context(), o); err != nil {
			e.Fatal(err)
		}
	}
}

// update changes an object as it is now.
func (e *env) update(o client.Object, change func()) {
	e.Helper()
	cluster.Eventually(e, "the update is taken", func() error {
		if err := e.c.Client.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return e.c.Client.Update(e.Context(), o)
	})
}

func (e *env) get(name string, o client.Object) error {
	return e.c.Client.Get(e.Context(), client.ObjectKey{Namespace: e.ns, Name: name}, o)
}

func fleetNamed(name string) *v1alpha1.Fleet {
	return &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func machinesNamed(name string, most int32) *v1alpha1.MachineType {
	return &v1alpha1.MachineType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineTypeSpec{
		PricePerHour: quantity("0.5"), Most: most, Cores: 4,
	}}
}

func appNamed(name string) *v1alpha1.InferenceApp {
	return &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.InferenceAppSpec{
		Objective: v1alpha1.Objective{Latency: metav1.Duration{Duration: 50 * time.Millisecond}},
		Variants:  []v1alpha1.Variant{{Name: "small", Model: v1alpha1.Model{URI: "pvc://models/" + name}}},
	}}
}

// accepted waits for the condition Accepted of an app.
func (e *env) accepted(name string, status metav1.ConditionStatus, message string) *v1alpha1.InferenceApp {
	e.Helper()
	a := &v1alpha1.InferenceApp{}
	cluster.Eventually(e, fmt.Sprintf("app %s is accepted: %s", name, status), func() error {
		if err := e.get(name, a); err != nil {
			return err
		}
		x := meta.FindStatusCondition(a.Status.Conditions, Accepted)
		if x == nil || x.Status != status || !strings.Contains(x.Message, message) ||
			x.ObservedGeneration != a.Generation {
			return fmt.Errorf("it is %+v", x)
		}
		return nil
	})
	return a
}

// config waits until the configuration of a cell has some texts and lacks others.
func (e *env) config(fleet string, at int32, has, lacks []string) cell.Files {
	e.Helper()
	var files cell.Files
	cluster.Eventually(e, fmt.Sprintf("cell %d has %q and lacks %q", at, has, lacks), func() error {
		m := &corev1.ConfigMap{}
		if err := e.get(cell.Name(fleet, at), m); err != nil {
			return err
		}
		var err error
		if files, err = cell.Get(m); err != nil {
			return err
		}
		for _, text := range has {
			if !strings.Contains(files[cell.KeyConfig], text) {
				return fmt.Errorf("%q is missing in\n%s", text, files[cell.KeyConfig])
			}
		}
		for _, text := range lacks {
			if strings.Contains(files[cell.KeyConfig], text) {
				return fmt.Errorf("%q is in\n%s", text, files[cell.KeyConfig])
			}
		}
		return nil
	})
	return files
}

func TestFleetIsMade(t *testing.T) {
	e := newEnv(t, nil)
	a := appNamed("faces")
	e.create(a)
	e.accepted("faces", metav1.ConditionFalse, `there is no fleet "default"`)
	e.create(fleetNamed("default"))
	e.accepted("faces", metav1.ConditionFalse, "has no machine that can be used")
	e.create(machinesNamed("cpu", 6))
	got := e.accepted("faces", metav1.ConditionTrue, "")
	if got.Status.Cell == nil || *got.Status.Cell != 0 ||
		got.Status.Endpoint != "http://default."+e.ns+":8000/v2/models/faces" {
		t.Errorf("status is %+v", got.Status)
	}
	e.config("default", 0, []string{"name: faces", "count: 6", "model: ", "price_per_hour: 0.5"}[:2], nil)

	// A second app has a second dispatcher, with machines of its own.
	e.create(appNamed("cars"))
	e.config("default", 1, []string{"count: 3"}, nil)
	e.config("default", 0, []string{"count: 3"}, nil)

	for _, o := range []client.Object{&appsv1.Deployment{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{},
		&policyv1.PodDisruptionBudget{}} {
		if err := e.get("default-dispatcher", o); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	service := &corev1.Service{}
	if err := e.get("default", service); err != nil || len(service.Spec.Ports) != 2 {
		t.Errorf("%+v, %v", service.Spec, err)
	}
	d := &appsv1.Deployment{}
	if err := e.get("default-dispatcher", d); err != nil || *d.Spec.Replicas != 2 ||
		d.Spec.Template.Spec.Containers[0].Image != "sluice:test" {
		t.Errorf("%+v, %v", d.Spec, err)
	}

	// Dispatchers serve both: the fleet is ready.
	f := &v1alpha1.Fleet{}
	cluster.Eventually(t, "the status is taken", func() error {
		if err := e.get("default", f); err != nil {
			return err
		}
		f.Status.Cells = []v1alpha1.CellStatus{
			{Cell: 0, Holder: "a", Machines: map[string]int32{"cpu": 2}}, {Cell: 1, Holder: "b"}}
		return e.c.Client.Status().Update(t.Context(), f)
	})
	cluster.Eventually(t, "the fleet is ready", func() error {
		if err := e.get("default", f); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(f.Status.Conditions, Ready) || f.Status.Machines != 2 ||
			f.Status.CostPerHour != "1.00" || f.Status.Apps != 2 {
			return fmt.Errorf("status is %+v", f.Status)
		}
		return nil
	})

	// Without apps nothing is left to serve.
	for _, name := range []string{"faces", "cars"} {
		gone := &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.ns}}
		if err := e.c.Client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int32(2) {
		cluster.Eventually(t, "the cell is gone", func() error {
			if err := e.get(cell.Name("default", n), &corev1.ConfigMap{}); err == nil {
				return errors.New("it is there")
			} else if client.IgnoreNotFound(err) != nil {
				return err
			}
			return nil
		})
	}
}

func TestWhatCannotBeUsedSaysWhy(t *testing.T) {
	e := newEnv(t, nil)
	two := appNamed("two")
	two.Spec.Stages = []v1alpha1.Stage{{Name: "a", Variants: two.Spec.Variants},
		{Name: "b", Variants: two.Spec.Variants}}
	two.Spec.Variants = nil
	part := machinesNamed("part", 1)
	part.Spec.Parts = []v1alpha1.Part{{Name: "cpu", Cores: 1}}
	e.create(fleetNamed("default"), machinesNamed("cpu", 2), part, appNamed("good"), two)
	e.accepted("good", metav1.ConditionTrue, "")
	e.accepted("two", metav1.ConditionFalse, `spec.stages 2 stages are fed by none ("a", "b")`)
	files := e.config("default", 0, []string{"name: good"}, []string{"name: two"})
	if strings.Contains(files[cell.KeyMachines], `"part"`) {
		t.Errorf("a machine type that is refused is supplied:\n%s", files[cell.KeyMachines])
	}
	cluster.Eventually(t, "the machine type says why", func() error {
		m := &v1alpha1.MachineType{}
		if err := e.get("part", m); err != nil {
			return err
		}
		x := meta.FindStatusCondition(m.Status.Conditions, Accepted)
		if x == nil || x.Status != metav1.ConditionFalse ||
			!strings.Contains(x.Message, "is already the name of machine type") {
			return fmt.Errorf("it is %+v", x)
		}
		return nil
	})

	// A system that does not exist is the fleet's mistake; what runs goes on.
	f := fleetNamed("default")
	f.Namespace = e.ns
	e.update(f, func() { f.Spec.System = "nosuch" })
	cluster.Eventually(t, "the fleet says why", func() error {
		if err := e.get("default", f); err != nil {
			return err
		}
		x := meta.FindStatusCondition(f.Status.Conditions, Accepted)
		if x == nil || x.Status != metav1.ConditionFalse || !strings.Contains(x.Message, "nosuch") {
			return fmt.Errorf("it is %+v", x)
		}
		return nil
	})
	e.config("default", 0, []string{"name: good", "name: sluice"}, nil)

	// Mended, all is well.
	e.update(f, func() { f.Spec.System = "sluice" })
	a := two.DeepCopy()
	e.update(a, func() { a.Spec.Stages[0].Next = []v1alpha1.Edge{{To: "b"}} })
	e.accepted("two", metav1.ConditionTrue, "")
}

// TestNothingIsWrittenWhenNothingChanges counts calls of the API server while rates change, as they do all the time.
func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.Redeal = 100 * time.Millisecond })
	e.create(fleetNamed("default"), machinesNamed("cpu", 6))
	for i := range 10 {
		e.create(appNamed(fmt.Sprintf("app-%d", i)))
	}
	for i := range 10 {
		e.accepted(fmt.Sprintf("app-%d", i), metav1.ConditionTrue, "")
	}
	e.quiet()

	// Somebody else's change is mended, with few calls.
	before := len(e.calls.since(0))
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cell.Name("default", 0), Namespace: e.ns}}
	e.update(m, func() { m.Data[cell.KeyConfig] = "version: 1\n" })
	e.config("default", 0, []string{"device_types"}, nil)
	e.quiet()
	if n := len(e.calls.since(before)); n > 10 {
		t.Errorf("%d calls to mend a ConfigMap: %v", n, e.calls.since(before))
	}

	// After a restart everything is as it should be: no more than one write for each object.
	e.stop()
	e.start(func(o *Options) { o.Redeal = 100 * time.Millisecond })
	e.quiet()
	writes := 0
	for _, c := range e.calls.since(0) {
		if !strings.HasPrefix(c, "GET ") {
			writes++
		}
	}
	if writes > 12 {
		t.Errorf("%d writes after a restart: %v", writes, e.calls.since(0))
	}
}

// quiet waits until the operator has looked at the fleet thirty times without a call.
func (e *env) quiet() {
	e.Helper()
	before, since := -1, time.Now()
	cluster.Eventually(e, "the operator calls no more", func() error {
		if n := len(e.calls.since(0)); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) < 3*time.Second || before == 0 {
			return fmt.Errorf("its last calls: %v", e.calls.since(before-3))
		}
		return nil
	})
}
