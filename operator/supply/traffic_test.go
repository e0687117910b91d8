package supply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	hostserver "github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/tensor"
)

// kubelet answers at the addresses of a fleet's simulated pods: with a real node for each.
type kubelet struct {
	t       *testing.T
	f       *fixture
	program string
	models  string
	stop    chan struct{}
	done    sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*exec.Cmd // by the pod's address
}

// sluiceProgram builds the program, which takes models by ONNX Runtime.
func buildSluice(t *testing.T) string {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "sluice")
	cmd := exec.Command("go", "build", "-o", out, "./cmd/sluice")
	cmd.Dir = cluster.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func startKubelet(t *testing.T, f *fixture) *kubelet {
	k := &kubelet{t: t, f: f, program: buildSluice(t), models: t.TempDir(), stop: make(chan struct{}),
		nodes: make(map[string]*exec.Cmd)}
	echo := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 4)
	if err := echo.Write(filepath.Join(k.models, "echo", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	k.done.Go(func() {
		for {
			k.look()
			select {
			case <-k.stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		close(k.stop)
		k.done.Wait()
		for at := range k.nodes {
			k.end(at)
		}
	})
	return k
}

// look starts nodes for new pods, and ends those of pods that are gone.
func (k *kubelet) look() {
	var pods corev1.PodList
	if err := k.f.c.Client.List(context.Background(), &pods, client.InNamespace(k.f.ns)); err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	there := make(map[string]bool)
	for i := range pods.Items {
		at := pods.Items[i].Status.PodIP
		if at == "" {
			continue
		}
		there[at] = true
		if k.nodes[at] != nil {
			continue
		}
		cmd := exec.Command(k.program, "node", "--grpc", fmt.Sprintf("%s:%d", at, PortGRPC), k.models)
		if err := cluster.StartTied(cmd); err != nil {
			k.t.Errorf("a node does not start: %v", err)
			continue
		}
		k.nodes[at] = cmd
	}
	for at := range k.nodes {
		if !there[at] {
			k.end(at)
		}
	}
}

func (k *kubelet) end(at string) {
	_ = k.nodes[at].Process.Kill()
	_ = k.nodes[at].Wait()
	delete(k.nodes, at)
}

// load sends queries at a rate until it ends.
type load struct {
	client pb.GRPCInferenceServiceClient
	pause  atomic.Int64
	stop   chan struct{}
	all    sync.WaitGroup

	ok, again, other atomic.Int64
	last             atomic.Value
}

func (l *load) rate(perSecond int) { l.pause.Store(int64(time.Second) / int64(perSecond)) }

func (l *load) run() {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(time.Duration(l.pause.Load())):
			l.all.Go(l.one)
		}
	}
}

func (l *load) one() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // of a query that hangs
	defer cancel()
	_, err := l.client.ModelInfer(ctx, oip.EncodeRequest("app", "", "", []tensor.Tensor{
		{Name: "input", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)},
	}, nil))
	switch code := status.Code(err); {
	case err == nil:
		l.ok.Add(1)
	case code == codes.Unavailable, code == codes.DeadlineExceeded && ctx.Err() == nil:
		l.again.Add(1)
		l.last.Store(err.Error())
	default:
		l.other.Add(1)
		l.last.Store(err.Error())
	}
}

// The whole of it but for a kubelet: a dispatcher whose machines are pods that a real scheduler places, and a real node
// that answers at each pod's address. Machines come with the load. A drained node costs no query, a lost one none but
// some that are told to try again.
func TestTrafficOverPods(t *testing.T) {
	f := newFixture(t, nil)
	k := startKubelet(t, f)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [
  {"variant": "echo", "device_type": "large", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 20000,
      "stddev_us": 500, "p50_us": 20000, "p90_us": 21000, "p95_us": 22000, "p99_us": 23000, "interpolated": false},
  {"variant": "echo", "device_type": "large", "batch": 4, "concurrency": 1, "samples": 100, "mean_us": 80000,
      "stddev_us": 500, "p50_us": 80000, "p90_us": 81000, "p95_us": 82000, "p99_us": 83000, "interpolated": false}],
 "loads": []}`)
	file := write("sluice.yaml", `
version: 1
device_types: [{name: large, price_per_hour: 1, tenure: rented, cores: 1}]
workers: [{name: large, device_type: large, count: 4, backend: {kind: supplied, linger: 1s}}]
profiles: [profile.json]
apps:
  - name: app
    slo: {latency: 10s}
    demand: 40
    inputs: [{name: input, datatype: FP32, shape: [-1, 4]}]
    outputs: [{name: output, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, model: echo, max_batch: 4}]
server: {not_ready: 0s, http: "off", grpc: "127.0.0.1:0", admin: "off", drain_timeout: 5s}
`)
	opened, err := host.Open(file, host.Options{Machines: f.Supply})
	if err != nil {
		t.Fatal(err)
	}
	profiled, err := measuring.EnsureProfile(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	server, err := hostserver.New(t.Context(), profiled, hostserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	if err := server.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(server.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l := &load{client: pb.NewGRPCInferenceServiceClient(conn), stop: make(chan struct{})}
	l.rate(80) // of some 50 queries/s that each machine is believed to carry
	l.all.Go(l.run)
	answered := func(what string, n int64) {
		t.Helper()
		from := l.ok.Load()
		cluster.Eventually(t, what, func() error {
			if l.ok.Load() < from+n {
				return fmt.Errorf("%d answered of %d; %d to try again, %d otherwise, %v", l.ok.Load()-from, n,
					l.again.Load(), l.other.Load(), l.last.Load())
			}
			return nil
		})
	}
	cluster.Eventually(t, "machines have come with the load", func() error {
		if n := f.Stats()["large"].Ready; n < 2 {
			return fmt.Errorf("%d are ready", n)
		}
		return nil
	})
	answered("queries are answered", 200)

	// A node is drained: cordoned, and its pods go when their work has moved.
	name := k.nodeOf(t)
	cordon(t, f.c, name, true)
	cluster.Eventually(t, "the node's machines are given back", func() error { return f.noneOn(name) })
	answered("queries are answered after the drain", 200)
	if again, other := l.again.Load(), l.other.Load(); again+other > 0 {
		t.Errorf("until after the drain %d queries were to be tried again, %d failed otherwise: %v", again, other,
			l.last.Load())
	}
	cordon(t, f.c, name, false)

	// A node dies: its processes are gone, and later so is it.
	name = k.nodeOf(t)
	k.kill(t, name)
	answered("queries are answered after the loss", 300)
	close(l.stop)
	l.all.Wait()
	t.Logf("%d answered, %d to be tried again", l.ok.Load(), l.again.Load())
	if n := l.other.Load(); n > 0 {
		t.Errorf("%d queries failed with errors that do not say to try again, such as %v", n, l.last.Load())
	}
}

// nodeOf is a node with a machine.
func (k *kubelet) nodeOf(t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := k.f.c.Client.List(t.Context(), &pods, client.InNamespace(k.f.ns)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if isReady(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			return pods.Items[i].Spec.NodeName
		}
	}
	t.Fatal("no machine is ready")
	return ""
}

// noneOn fails while a machine is on a node.
func (f *fixture) noneOn(node string) error {
	var pods corev1.PodList
	if err := f.c.Client.List(context.Background(), &pods, client.InNamespace(f.ns)); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == node {
			return errors.New(strings.Join([]string{pods.Items[i].Name, "is there"}, " "))
		}
	}
	return nil
}

// kill ends the processes of a node's pods, and has the pods fail as a kubelet says so.
func (k *kubelet) kill(t *testing.T, node string) {
	t.Helper()
	var pods corev1.PodList
	if err := k.f.c.Client.List(t.Context(), &pods, client.InNamespace(k.f.ns)); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	for i := range pods.Items {
		if at := pods.Items[i].Status.PodIP; pods.Items[i].Spec.NodeName == node && k.nodes[at] != nil {
			_ = k.nodes[at].Process.Kill()
		}
	}
	k.mu.Unlock()
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == node {
			if err := k.f.c.Client.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
