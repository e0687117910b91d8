package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// place is a control plane with the operator installed, and a namespace for a test.
type place struct {
	*testing.T
	c      *cluster.Cluster
	ns     string
	models string
}

// install starts a control plane with nodes whose pods are processes, and installs the operator.
func install(t *testing.T, nodes int) *place {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Controllers: true, Processes: []cluster.Nodes{{Name: "node", Count: nodes}}})
	p := &place{T: t, c: c, models: t.TempDir()}
	for _, file := range []string{"namespace.yaml", "sluice.yaml"} {
		path := filepath.Join(cluster.Root(), "operator/deploy/kustomize", file)
		p.kubectl("", "apply", "-n", "sluice-system", "-f", path)
	}
	p.ns = c.Namespace(t)
	t.Cleanup(func() {
		if t.Failed() {
			p.explain()
		}
	})
	return p
}

func (p *place) kubectl(input string, args ...string) string {
	p.Helper()
	out, err := p.c.Kubectl(context.Background(), input, args...)
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// explain shows what there was when a test failed.
func (p *place) explain() {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"}, {"get", "fleets,machinetypes,inferenceapps", "-A", "-o", "yaml"},
		{"get", "events", "-n", p.ns, "--sort-by=.lastTimestamp"},
	} {
		out, err := p.c.Kubectl(context.Background(), "", args...)
		if len(out) > 6000 {
			out = out[:6000] + "..."
		}
		p.Logf("kubectl %v: %v\n%s", args, err, out)
	}
	logs, _ := filepath.Glob(filepath.Join(p.c.Kubelet().Logs(), "*.log")) // there are none, at worst
	for _, path := range logs {
		text, err := os.ReadFile(path)
		p.Logf("--- %s (%v)\n%s", filepath.Base(path), err, text[max(0, len(text)-2500):])
	}
}

// model writes a model that multiplies its input x by a number, and returns its URI.
func (p *place) model(name string, by float32) string {
	p.Helper()
	g := onnxmodel.NewGraph(name).Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	g.Initializer("by", []float32{by, by}, 2)
	g.Node("Mul", []string{"x", "by"}, []string{"y"})
	g.Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	path := filepath.Join(p.models, name, "model.onnx")
	if err := g.Write(path); err != nil {
		p.Fatal(err)
	}
	return "file://" + path
}

func (p *place) create(list ...client.Object) {
	p.Helper()
	for _, o := range list {
		o.SetNamespace(p.ns)
		if err := p.c.Client.Create(p.Context(), o); err != nil {
			p.Fatal(err)
		}
	}
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func fleet(dispatchers int32) *v1alpha1.Fleet {
	return &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.FleetSpec{Dispatchers: dispatchers}}
}

func machines(name string, most int32) *v1alpha1.MachineType {
	return &v1alpha1.MachineType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineTypeSpec{
		PricePerHour: quantity("0.1"), Most: most, Cores: 1,
	}}
}

// app is served by one variant that multiplies by a number.
func (p *place) app(name string, by float32) *v1alpha1.InferenceApp {
	p.Helper()
	tensor := func(name string) []v1alpha1.Tensor {
		return []v1alpha1.Tensor{{Name: name, DataType: "FP32", Shape: []int64{-1, 2}}}
	}
	return &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.InferenceAppSpec{
		Objective: v1alpha1.Objective{Latency: metav1.Duration{Duration: 2 * time.Second}},
		Demand:    quantity("20"), Late: "serve-late",
		Variants: []v1alpha1.Variant{{Name: "only", Model: v1alpha1.Model{URI: p.model(name, by)}}},
		Inputs:   tensor("x"), Outputs: tensor("y"),
	}}
}

// caller sends queries to the addresses behind the fleet's Service, as what routes in a cluster does.
type caller struct {
	p       *place
	service string // of the fleet
	scheme  string
	http    *http.Client

	mu        sync.Mutex
	addresses []string
}

func newCaller(p *place) *caller {
	return &caller{p: p, service: "default", scheme: "http", http: &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64,
			DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}}}
}

// look reads the addresses.
func (c *caller) look(ctx context.Context) error {
	var slices discoveryv1.EndpointSliceList
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.p.c.Client.List(ctx, &slices, client.InNamespace(c.p.ns),
		client.MatchingLabels{discoveryv1.LabelServiceName: c.service}); err != nil {
		return err
	}
	var found []string
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				found = append(found, e.Addresses...)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addresses = found
	return nil
}

func (c *caller) address() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.addresses) == 0 {
		return "", errors.New("the Service has no ready address")
	}
	return c.addresses[rand.IntN(len(c.addresses))], nil
}

// errRetry is an answer that says that the query may be sent again, or a server that is gone before it has answered.
var errRetry = errors.New("to be sent again")

// ask sends a query once and returns what came out for 1 and 2.
func (c *caller) ask(ctx context.Context, app string) ([]float32, error) {
	at, err := c.address()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRetry, err)
	}
	body := `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.scheme+"://"+net.JoinHostPort(at, "8000")+
		"/v2/models/"+app+"/infer", bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRetry, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errRetry, err)
	case answer.StatusCode == http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%w: %s: %s", errRetry, answer.Status, text)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	var out struct {
		Outputs []struct {
			Data []float32 `json:"data"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(text, &out); err != nil || len(out.Outputs) != 1 {
		return nil, fmt.Errorf("the answer %s: %w", text, err)
	}
	return out.Outputs[0].Data, nil
}

// answers waits until an app answers, and checks what.
func (c *caller) answers(app string, want ...float32) {
	c.p.Helper()
	cluster.Eventually(c.p, "app "+app+" answers", func() error {
		if err := c.look(c.p.Context()); err != nil {
			return err
		}
		got, err := c.ask(c.p.Context(), app)
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			c.p.Fatalf("app %s answers %v, want %v", app, got, want)
		}
		return err
	})
}

// load is a stream of queries that goes on while things happen.
type load struct {
	sent, answered, again, lost atomic.Int64
	first, last                 atomic.Pointer[error] // of those that were lost, and of those sent again
	stop                        func()
}

// load sends queries to apps at a rate until its stop. A query that is to be sent again is, for a minute.
func (c *caller) load(rate int, apps ...string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{}
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			_ = c.look(ctx) // without the API server the addresses stay
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			app := apps[n%len(apps)]
			all.Go(func() { l.one(c, app) })
		}
	})
	l.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	c.p.Cleanup(l.stop)
	return l
}

func (l *load) one(c *caller, app string) {
	l.sent.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := c.ask(ctx, app)
		switch {
		case err == nil:
			l.answered.Add(1)
			return
		case !errors.Is(err, errRetry) || ctx.Err() != nil:
			l.lost.Add(1)
			l.first.CompareAndSwap(nil, &err)
			return
		}
		l.again.Add(1)
		l.last.Store(&err)
		time.Sleep(50 * time.Millisecond) // a client waits before it tries again
	}
}

// more waits until so many queries more were answered.
func (l *load) more(p *place, n int64) {
	p.Helper()
	at := l.answered.Load()
	cluster.Eventually(p, fmt.Sprintf("%d queries more are answered", n), func() error {
		if got := l.answered.Load() - at; got < n {
			err := fmt.Errorf("%d are, %d sent, %d lost, %d sent again", got, l.sent.Load(), l.lost.Load(),
				l.again.Load())
			if last := l.last.Load(); last != nil {
				err = fmt.Errorf("%w; the latest of these: %w", err, *last)
			}
			return err
		}
		return nil
	})
}

// pods are those of a role that are ready.
func (p *place) pods(role string) []corev1.Pod {
	p.Helper()
	var list corev1.PodList
	if err := p.c.Client.List(p.Context(), &list, client.InNamespace(p.ns),
		client.MatchingLabels{v1alpha1.LabelRole: role}); err != nil {
		p.Fatal(err)
	}
	var out []corev1.Pod
	for _, x := range list.Items {
		for _, c := range x.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && x.DeletionTimestamp == nil {
				out = append(out, x)
			}
		}
	}
	return out
}
