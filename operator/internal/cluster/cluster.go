package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster/kubelet"
)

// Cluster is a running control plane.
type Cluster struct {
	// Config of a client that may do everything.
	Config *rest.Config
	// Client with the same rights, without a cache.
	Client client.Client
	// Kubeconfig is a file with them.
	Kubeconfig string
	// URL of the API server.
	URL string

	options Options
	tools   string
	dir     string // certificates, logs, data
	auth    *Authority
	ports   []int
	block   *block

	kubelet         *kubelet.Kubelet
	etcd, apiserver *process
	others          []*process // controller manager, scheduler, kwok
}

// Timeouts of a start and an end. They are bounds, not what it takes.
const (
	startTimeout = 15 * time.Minute // with the build of the programs
	stopTimeout  = 10 * time.Second
	poll         = 20 * time.Millisecond
	attempts     = 3 // a port may be taken between finding it free and using it
)

// Start starts a control plane that ends with the test. It skips the test where none is built.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	tools, err := Tools()
	if err != nil {
		missing(t, err)
	}
	c, err := open(tools, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tails())
		}
		c.Close()
	})
	return c
}

// Open starts a control plane that ends with Close, or with the process.
func Open(o Options) (*Cluster, error) {
	tools, err := Tools()
	if err != nil {
		return nil, err
	}
	return open(tools, o)
}

func open(tools string, o Options) (c *Cluster, err error) {
	for range attempts {
		if c, err = attempt(tools, o); err == nil || !errors.Is(err, errEnded) {
			return c, err
		}
	}
	return nil, err
}

// errEnded is that a program ended while it was waited for.
var errEnded = errors.New("ended")

func attempt(tools string, o Options) (*Cluster, error) {
	c := &Cluster{options: o, tools: tools}
	if err := c.bringUp(); err != nil {
		err = fmt.Errorf("starting a control plane: %w\n%s", err, c.tails())
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) bringUp() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if c.dir, err = os.MkdirTemp("", "sluice-cluster-"); err != nil {
		return err
	}
	if c.ports, err = freePorts(portsInAll); err != nil {
		return err
	}
	if err = c.certificates(); err != nil {
		return err
	}
	if err = c.startAPI(ctx); err != nil {
		return err
	}
	if !c.options.Empty {
		// Before the controller manager, which learns of new kinds only every half minute.
		if err = c.InstallDefinitions(ctx); err != nil {
			return err
		}
	}
	if !c.options.Controllers {
		return nil
	}
	if c.block, err = takeBlock(); err != nil {
		return err
	}
	if err = c.block.route(true); err != nil {
		return err
	}
	if err = c.startControllers(ctx); err != nil {
		return err
	}
	if len(c.options.Processes) > 0 {
		if err = c.startKubelet(ctx); err != nil {
			return err
		}
		for _, n := range c.options.Processes {
			if err = c.AddProcessNodes(ctx, n); err != nil {
				return err
			}
		}
	}
	for _, n := range c.options.Nodes {
		if err = c.AddNodes(ctx, n); err != nil {
			return err
		}
	}
	return c.nodesReady(ctx)
}

// Close ends the control plane and removes its data.
func (c *Cluster) Close() {
	if c.kubelet != nil {
		c.kubelet.Close()
	}
	for _, p := range c.others {
		p.stop(stopTimeout)
	}
	c.apiserver.stop(stopTimeout)
	c.etcd.stop(stopTimeout)
	if c.block != nil {
		// The next one of this block replaces a route that stayed.
		_ = c.block.route(false)
		c.block.release()
	}
	if c.options.Keep != "" {
		for _, p := range c.processes() {
			// The logs are a help, no result.
			if data, err := os.ReadFile(p.log); err == nil {
				_ = os.WriteFile(filepath.Join(c.options.Keep, filepath.Base(p.log)), data, 0o600)
			}
		}
	}
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// StopAPI ends the API server, as a failure would. Serving must go on without it.
func (c *Cluster) StopAPI() { c.apiserver.stop(stopTimeout) }

// StartAPI starts it again on the same data and address.
func (c *Cluster) StartAPI(ctx context.Context) error {
	if err := c.startServer(); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

// PauseAPI has the API server stand still: connections stay and nothing is answered. The function that it returns has
// it go on.
func (c *Cluster) PauseAPI() (resume func()) {
	c.apiserver.signal(syscall.SIGSTOP)
	return func() { c.apiserver.signal(syscall.SIGCONT) }
}

// Scheme has Kubernetes' kinds and sluice's.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensions.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // the kinds are part of the program
		}
	}
	return s
}

// Namespace makes a namespace of its own for a test and returns its name. With controllers it waits until pods can be
// made in it.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	ctx := context.Background()
	if err := c.Client.Create(ctx, ns); err != nil {
		t.Fatal(err)
	}
	if c.options.Controllers {
		Eventually(t, "the namespace has a service account", func() error {
			return c.Client.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
		})
	}
	t.Cleanup(func() {
		// The control plane may be gone already, and then the namespace is, too.
		_ = c.Client.Delete(ctx, ns)
	})
	return ns.Name
}

// patience bounds how long Eventually waits. It is generous: machines that run tests are slow at times.
const patience = 5 * time.Minute

// Eventually waits until ok returns nil, and fails the test with its last error where that takes minutes.
func Eventually(t testing.TB, what string, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(poll) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %v: %v", what, patience, err)
}

func (c *Cluster) processes() []*process {
	var out []*process
	for _, p := range append([]*process{c.etcd, c.apiserver}, c.others...) {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// tails returns the ends of all logs.
func (c *Cluster) tails() string {
	var out string
	for _, p := range c.processes() {
		out += "--- " + p.name + "\n" + p.tail() + "\n"
	}
	return out
}
