package dispatcher_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// fleetName is the name of the fleets of these tests; each has a namespace of its own.
const fleetName = "f"

// fleet is a namespace with cells, and processes of the built program that serve them.
type fleet struct {
	t         *testing.T
	c         *cluster.Cluster
	namespace string
	mu        sync.Mutex
	replicas  []*replica
}

func newFleet(t *testing.T, c *cluster.Cluster) *fleet {
	return &fleet{t: t, c: c, namespace: c.Namespace(t)}
}

// fakeApp is an app on workers that wait.
const fakeApp = `
  - name: %s
    slo: {latency: 200ms}
    late: serve-late
    demand: 100
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: %[1]s-v, accuracy: 0.9, max_batch: 16}]
`

// fakeCell is the configuration of a cell with these apps on a number of fake workers.
func fakeCell(workers int, apps ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\ndevice_types: [{name: d, price_per_hour: 1, cores: 2}]\n"+
		"workers: [{name: w, count: %d, backend: {kind: fake, latency: 3ms, latency_per_item: 200us}}]\napps:", workers)
	for _, a := range apps {
		fmt.Fprintf(&b, fakeApp, a)
	}
	return b.String()
}

// setCell writes the configuration of a cell.
func (f *fleet) setCell(n int, config string) {
	f.t.Helper()
	f.setFiles(n, map[string]string{cell.KeyConfig: config})
}

// setFiles writes all files of a cell.
func (f *fleet) setFiles(n int, data map[string]string) {
	f.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: cell.Name(fleetName, int32(n))}}
	if err := f.c.Client.Get(f.t.Context(), client.ObjectKeyFromObject(m), m); err == nil {
		m.Data = data
		if err := f.c.Client.Update(f.t.Context(), m); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	m.Labels = map[string]string{v1alpha1.LabelFleet: fleetName, v1alpha1.LabelCell: fmt.Sprint(n)}
	m.Data = data
	if err := f.c.Client.Create(f.t.Context(), m); err != nil {
		f.t.Fatal(err)
	}
}

// replica is a process.
type replica struct {
	name              string
	http, grpc, admin string
	process           *exec.Cmd
	ended             chan struct{}
	err               error

	mu    sync.Mutex
	lines []map[string]any
	text  []string
}

// start runs another replica and waits until it answers. environment is added to its own, wrap is put before it.
func (f *fleet) start(name string, wrap []string, flags ...string) *replica {
	f.t.Helper()
	path, err := binary()
	if err != nil {
		f.t.Fatal(err)
	}
	args := append(append([]string{}, wrap...), path, "dispatcher", "--fleet", fleetName, "--namespace", f.namespace,
		"--pod", name, "--address", "127.0.0.1", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--kubeconfig", f.c.Kubeconfig, "--not-ready", "1s", "--status-every", "1s")
	args = append(args, flags...)
	r := &replica{name: name, ended: make(chan struct{})}
	r.process = exec.Command(args[0], args[1:]...)
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := r.process.StderrPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	listening := make(chan struct{})
	if err := r.process.Start(); err != nil {
		f.t.Fatal(err)
	}
	go r.read(out, listening)
	f.mu.Lock()
	f.replicas = append(f.replicas, r)
	f.mu.Unlock()
	f.t.Cleanup(func() {
		_ = r.process.Process.Kill()
		<-r.ended
		if f.t.Failed() {
			f.t.Logf("log of %s:\n%s", name, r.tail(60))
		}
	})
	select {
	case <-listening:
	case <-r.ended:
		f.t.Fatalf("%s ended: %v\n%s", name, r.err, r.tail(60))
	}
	return r
}

// read follows the log of a replica.
func (r *replica) read(from io.Reader, listening chan struct{}) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	kept := io.Discard
	if dir := os.Getenv("SLUICE_LOGS"); dir != "" { // a folder to look into while a test runs
		if f, err := os.Create(filepath.Join(dir, r.name+".log")); err == nil {
			defer f.Close()
			kept = f
		}
	}
	for lines.Scan() {
		_, _ = fmt.Fprintln(kept, lines.Text())
		var x map[string]any
		r.mu.Lock()
		r.text = append(r.text, lines.Text())
		if json.Unmarshal(lines.Bytes(), &x) == nil {
			r.lines = append(r.lines, x)
		}
		r.mu.Unlock()
		if x["msg"] == "dispatching" {
			r.http, r.grpc, r.admin = x["http"].(string), x["grpc"].(string), x["admin"].(string)
			close(listening)
		}
	}
	r.err = r.process.Wait()
	close(r.ended)
}

// tail is the end of the log.
func (r *replica) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.text[max(0, len(r.text)-n):], "\n")
}

// said are the lines of the log with a message.
func (r *replica) said(message string) (out []map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.lines {
		if x["msg"] == message {
			out = append(out, x)
		}
	}
	return out
}

// ready reports whether a replica says that it is to get queries, as a Service's endpoints follow it.
func (r *replica) ready() bool {
	a, err := quick.Get("http://" + r.admin + "/readyz")
	if err != nil {
		return false
	}
	_ = a.Body.Close()
	return a.StatusCode == http.StatusOK
}

var quick = &http.Client{Timeout: 2 * time.Second}

// stop sends SIGTERM and waits for the end.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	if r.err != nil {
		t.Errorf("%s ended with %v", r.name, r.err)
	}
}

// kill ends a replica as a crash would.
func (r *replica) kill() {
	_ = r.process.Process.Signal(syscall.SIGKILL)
	<-r.ended
}

// holders are the holders of the cells, by cell, as the API server has them: the name of the replica.
func (f *fleet) holders() (map[int]string, error) {
	var list coordinationv1.LeaseList
	err := f.c.Client.List(f.t.Context(), &list, client.InNamespace(f.namespace), client.HasLabels{v1alpha1.LabelCell})
	out := make(map[int]string)
	for _, l := range list.Items {
		var n int
		if _, err := fmt.Sscan(l.Labels[v1alpha1.LabelCell], &n); err == nil && l.Spec.HolderIdentity != nil {
			id := *l.Spec.HolderIdentity
			out[n] = id[:max(0, strings.LastIndexByte(id, '-'))]
		}
	}
	return out, err
}

// served waits until every cell is held, each replica holds at most most of them, and every app answers everywhere.
func (f *fleet) served(cells, most int, apps ...string) map[int]string {
	f.t.Helper()
	var h map[int]string
	cluster.Eventually(f.t, "all cells are served", func() (err error) {
		if h, err = f.holders(); err != nil {
			return err
		}
		counts := map[string]int{}
		for n := range cells {
			if h[n] == "" {
				return fmt.Errorf("nobody holds cell %d: %v", n, h)
			}
			if counts[h[n]]++; counts[h[n]] > most {
				return fmt.Errorf("%s holds more than %d: %v", h[n], most, h)
			}
		}
		for _, r := range f.live() {
			if !r.ready() {
				return fmt.Errorf("%s is not ready", r.name)
			}
			for _, a := range apps {
				if status, body := r.infer(a); status != http.StatusOK {
					return fmt.Errorf("%s answers for %s: %d %s", r.name, a, status, body)
				}
			}
		}
		return nil
	})
	return h
}

// live are the replicas that run.
func (f *fleet) live() (out []*replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.replicas {
		select {
		case <-r.ended:
		default:
			out = append(out, r)
		}
	}
	return out
}

func (f *fleet) named(name string) *replica {
	for _, r := range f.live() {
		if r.name == name {
			return r
		}
	}
	f.t.Fatalf("there is no replica %q", name)
	return nil
}

const question = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`

// infer asks a replica about an app over HTTP.
func (r *replica) infer(app string) (int, string) {
	a, err := quick.Post("http://"+r.http+"/v2/models/"+app+"/infer", "application/json", strings.NewReader(question))
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

// long reports whether the tests that take minutes are to run.
func long() bool { return os.Getenv("SLUICE_LONG") != "" }
