package deploy_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/controller"
	"github.com/sluice-serving/sluice/operator/dispatcher"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/supply"
)

// refusals collects what the API server refuses to a client.
type refusals struct {
	next http.RoundTripper
	mu   sync.Mutex
	list []string
}

func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusForbidden {
		r.mu.Lock()
		r.list = append(r.list, req.Method+" "+req.URL.Path)
		r.mu.Unlock()
	}
	return res, err
}

// as is a configuration with the rights of a service account alone.
func as(c *cluster.Cluster, user string) (*rest.Config, *refusals) {
	config, seen := rest.CopyConfig(c.Config), &refusals{}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + user,
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	return config, seen
}

// none fails for refusals but those that are expected.
func (r *refusals) none(t *testing.T, who string, expected ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.list {
		if !slices.Contains(expected, x) {
			t.Errorf("%s was refused %s", who, x)
		}
	}
}

// background runs something until the test ends.
func background(t *testing.T, what string, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%s does not end", what)
		}
	})
}

// TestRolesSuffice has the operator and a dispatcher do their work with the rights that the chart gives them, in a
// namespace of restricted pods: the dispatchers' Deployment and the workers' pods are admitted, and nothing is refused.
func TestRolesSuffice(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Controllers: true, Empty: true,
		Nodes: []cluster.Nodes{{Name: "n", Count: 2}}})
	restricted(t, c, system)
	restricted(t, c, "models")
	if out, err := c.Kubectl(t.Context(), "", "apply", "--server-side", "-k", "kustomize"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The chart's own pods would be operators, too, if they ran.
	if out, err := c.Kubectl(t.Context(), "", "scale", "deployment", "-n", system, "sluice-operator",
		"--replicas=0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, refused := as(c, "sluice-system:sluice-operator")
	m, err := controller.New(config, controller.Options{Image: "sluice:test", Metrics: "0", Health: "0", Elect: true,
		ElectIn: system})
	if err != nil {
		t.Fatal(err)
	}
	background(t, "the operator", m.Start)

	price, demand := resource.MustParse("0.5"), resource.MustParse("20")
	for _, o := range []client.Object{
		&v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "models"}},
		&v1alpha1.MachineType{ObjectMeta: metav1.ObjectMeta{Name: "cpu", Namespace: "models"},
			Spec: v1alpha1.MachineTypeSpec{
				PricePerHour: &price, Most: 2, Cores: 1, Backend: v1alpha1.BackendFake}},
		&v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: "faces", Namespace: "models"},
			Spec: v1alpha1.InferenceAppSpec{
				Objective:    v1alpha1.Objective{Latency: metav1.Duration{Duration: 100 * time.Millisecond}},
				Demand:       &demand,
				MinInstances: 1,
				Inputs:       []v1alpha1.Tensor{{Name: "x", DataType: "FP32", Shape: []int64{-1, 2}}},
				Outputs:      []v1alpha1.Tensor{{Name: "x", DataType: "FP32", Shape: []int64{-1, 2}}},
				Variants:     []v1alpha1.Variant{{Name: "v", Model: v1alpha1.Model{URI: "file:///models/faces"}}}}},
	} {
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Eventually(t, "the dispatchers' pods run", func() error {
		var d appsv1.Deployment
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "models", Name: "default-dispatcher"},
			&d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d are ready: %+v", d.Status.ReadyReplicas, d.Status.Conditions)
		}
		return nil
	})
	cluster.Eventually(t, "the fleet's status is written", func() error {
		var f v1alpha1.Fleet
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "models", Name: "default"}, &f); err != nil {
			return err
		}
		if len(f.Status.Conditions) == 0 {
			return fmt.Errorf("it has no conditions")
		}
		return nil
	})

	// Simulated pods run nothing: a dispatcher of this process holds the cell in their place.
	dispatching, notAllowed := as(c, "models:default-dispatcher")
	source, err := supply.NewSource(t.Context(), dispatching, "models", "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	d, err := dispatcher.New(dispatcher.Options{Config: dispatching, Namespace: "models", Fleet: "default",
		Pod:     "default-dispatcher-x",
		Address: "127.0.0.1", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0", Admin: "127.0.0.1:0", Lease: 3 * time.Second,
		Renew: time.Second, Hold: time.Second, Waiting: 16, Drain: 5 * time.Second, StatusEvery: time.Second,
		Supply: source.Supplier(log), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	background(t, "the dispatcher", d.Run)
	cluster.Eventually(t, "a worker's pod is admitted", func() error {
		var pods corev1.PodList
		if err := c.Client.List(t.Context(), &pods, client.InNamespace("models"), client.MatchingLabels{
			v1alpha1.LabelRole: "worker"}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("there is none; refused: %s", strings.Join(notAllowed.list, ", "))
		}
		return nil
	})
	cluster.Eventually(t, "the dispatcher writes its cell's status", func() error {
		var f v1alpha1.Fleet
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "models", Name: "default"}, &f); err != nil {
			return err
		}
		if len(f.Status.Cells) == 0 || f.Status.Cells[0].Holder == "" {
			return fmt.Errorf("the cells are %+v", f.Status.Cells)
		}
		return nil
	})
	refused.none(t, "the operator")
	notAllowed.none(t, "the dispatcher", "GET /api/v1/nodes") // it asks whether it may, and does without
}
