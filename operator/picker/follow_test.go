package picker_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/picker"
)

// holder answers for cell 0 as its dispatcher does.
func holder(t *testing.T) (port int) {
	t.Helper()
	pages := map[string]any{
		"overview": map[string]any{"plan": map[string]any{"number": 3}},
		"machines": board.Machines{
			Kinds: []board.Kind{{Name: "cpu"}},
			Stages: []board.StageName{{App: "digits", Stage: "digits"}, {App: "graph", Stage: "a"},
				{App: "graph", Stage: "b"}},
			Variants: []string{"digits.big", "graph.a.x"},
			Workers:  []board.WorkerInfo{{Name: "cpu-0"}, {Name: "cpu-1"}, {Name: "cpu-2"}},
			States: []board.WorkerNow{
				{Worker: 0, Instances: []board.InstanceNow{{State: "ready", Variants: []board.VariantNow{{}}}}},
				{Worker: 1, Instances: []board.InstanceNow{{State: "loading", Variants: []board.VariantNow{{}}}}},
				{Worker: 2, Instances: []board.InstanceNow{{Stage: 1, State: "ready",
					Variants: []board.VariantNow{{Variant: 1}}}}},
			},
		},
		"plans/3": board.PlanView{PlanLine: board.PlanLine{Number: 3}, Rows: []board.PlanRow{
			{App: "digits", Stage: "digits", Kind: "cpu", Variants: []string{"digits.big"}, Instances: 2, Share: 1}}},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[strings.TrimPrefix(r.URL.Path, "/cells/0/api/v1/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(s.Close)
	_, text, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestPickerOnACluster runs the whole picker against a real API server: pods, a lease, pools and health.
func TestPickerOnACluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	define(t, c)
	ns, ctx := c.Namespace(t), t.Context()
	pod := func(name, role, address string, labels map[string]string, isReady bool) {
		all := map[string]string{v1alpha1.LabelFleet: "f", v1alpha1.LabelRole: role}
		for k, v := range labels {
			all[k] = v
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: all}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if err := c.Client.Create(ctx, p); err != nil {
			t.Fatal(err)
		}
		status := corev1.ConditionFalse
		if isReady {
			status = corev1.ConditionTrue
		}
		p.Status = corev1.PodStatus{PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}}
		if err := c.Client.Status().Update(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		pod(fmt.Sprintf("f-c0-cpu-%d", i), "worker", fmt.Sprintf("10.0.0.%d", i+1), map[string]string{
			v1alpha1.LabelCell: "0", v1alpha1.LabelMachine: fmt.Sprintf("cpu-%d", i)}, true)
	}
	pod("f-dispatcher-a", "dispatcher", "10.0.0.9", nil, true)
	pod("f-dispatcher-b", "dispatcher", "10.0.0.8", nil, false)
	me := "a"
	if err := c.Client.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "f-cell-0", Namespace: ns,
		Labels:      map[string]string{v1alpha1.LabelFleet: "f", v1alpha1.LabelCell: "0"},
		Annotations: map[string]string{"sluice.dev/http": "127.0.0.1:8000"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &me}}); err != nil {
		t.Fatal(err)
	}

	p, err := picker.New(picker.Options{Config: c.Config, Namespace: ns, Fleet: "f", Listen: "127.0.0.1:0",
		Health: "127.0.0.1:0", Every: 50 * time.Millisecond, Admin: holder(t), Most: 64, Service: "f-picker",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	run, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(run) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	dial := func(address string) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conn := dial(p.Addr())
	for _, service := range []string{"liveness", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"} {
		for _, at := range []*grpc.ClientConn{conn, dial(p.HealthAddr())} {
			cluster.Eventually(t, service+" serves", func() error {
				r, err := healthpb.NewHealthClient(at).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
				if err != nil {
					return err
				}
				if r.Status != healthpb.HealthCheckResponse_SERVING {
					return fmt.Errorf("it is %v", r.Status)
				}
				return nil
			})
		}
	}
	g := &gateway{t, extproc.NewExternalProcessorClient(conn), nil}
	ask := func(path string) string {
		x := g.request()
		x.send(post(path))
		got, _ := destination(t, x.recv())
		_ = x.stream.CloseSend()
		_, _ = x.stream.Recv()
		return got
	}
	expect := func(what, path, want string) {
		t.Helper()
		cluster.Eventually(t, what, func() error {
			if got := ask(path); got != want {
				return fmt.Errorf("it goes to %s, want %s", got, want)
			}
			return nil
		})
	}
	// Only machine 0 has it loaded and ready; graphs are the dispatchers', and one of these is not ready.
	expect("the app goes to its worker", "/v2/models/digits/infer", "10.0.0.1:8000")
	expect("the graph goes to the dispatcher", "/v2/models/graph/infer", "10.0.0.9:8000")
	for _, key := range []string{"00", ""} { // dispatchers serve TLS for a while
		l := &coordinationv1.Lease{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "f-cell-0"}, l); err != nil {
			t.Fatal(err)
		}
		l.Annotations["sluice.dev/key"] = key
		if err := c.Client.Update(ctx, l); err != nil {
			t.Fatal(err)
		}
		want := "10.0.0.9:8000"
		if key != "" {
			want = "503"
		}
		expect("nothing is sent to dispatchers in plain text that serve TLS", "/v2/models/graph/infer", want)
		expect("workers go on", "/v2/models/digits/infer", "10.0.0.1:8000")
	}
	if err := c.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "f-c0-cpu-0", Namespace: ns}},
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	expect("without its worker, the app goes to the dispatcher", "/v2/models/digits/infer", "10.0.0.9:8000")
	if err := c.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "f-dispatcher-a", Namespace: ns}},
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	expect("with nobody left it is refused", "/v2/models/digits/infer", "503")

	// The pools are there as the definition wants them, and publishing again changes nothing.
	for name, protocol := range map[string]string{"f": "http", "f-grpc": "kubernetes.io/h2c"} {
		pool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "inference.networking.k8s.io/v1",
			"kind": "InferencePool"}}
		cluster.Eventually(t, "the pool is published", func() error {
			return c.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, pool)
		})
		if got, _, _ := unstructured.NestedString(pool.Object, "spec", "appProtocol"); got != protocol {
			t.Errorf("pool %s speaks %q, want %q", name, got, protocol)
		}
	}
}

// define defines InferencePool as the Gateway API inference extension ships it.
func define(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json",
		"sigs.k8s.io/gateway-api-inference-extension@v1.6.0").Output()
	if err != nil {
		t.Skipf("the definition of InferencePool cannot be fetched: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "bases",
		"inference.networking.k8s.io_inferencepools.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Define(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}
