package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/render"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// What machines of these tests take for a batch: they wait, since two cores compute no thousand queries a second.
const (
	waitBase, waitItem = 20 * time.Millisecond, 2800 * time.Microsecond
	waitCarried        = 2 * time.Millisecond // on top, by what is around it
	largestBatch       = 16
)

// slo is the objective of the apps that wait.
const slo = 500 * time.Millisecond

// waiting is a machine type whose machines are real `sluice node` processes that wait instead of computing. They are on
// nodes of their own.
func waiting(name, price string, most int32) *v1alpha1.MachineType {
	m := machines(name, most)
	m.Spec.PricePerHour, m.Spec.Backend = quantity(price), v1alpha1.BackendFake
	m.Spec.NodeSelector = map[string]string{"pool": "machines"}
	m.Spec.Tolerations = []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}
	m.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker",
		Args: []string{"node", "--grpc", ":8001", "--http", ":8000", "--fake", waitBase.String(),
			"--fake-item", waitItem.String()}}}}}
	return m
}

// waits is an app whose queries wait, and what was measured of it.
func (p *place) waits(name string, demand float64, on ...string) []client.Object {
	a := p.app(name, 1)
	a.Spec.Objective.Latency = metav1.Duration{Duration: slo}
	a.Spec.Demand = quantity(fmt.Sprint(demand))
	a.Spec.Variants[0].MaxBatch, a.Spec.Late = largestBatch, "drop"
	out := []client.Object{a}
	for _, machine := range on {
		x := &v1alpha1.Profile{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + machine}, Spec: v1alpha1.ProfileSpec{
			Fleet: "default", App: name, Variant: a.Spec.Variants[0].Name, MachineType: machine,
			Model: render.ModelOf(&a.Spec.Variants[0].Model), Load: &metav1.Duration{Duration: 50 * time.Millisecond},
		}}
		for n := int32(1); n <= largestBatch; n *= 2 {
			mean := waitBase + waitCarried + time.Duration(n)*waitItem
			x.Spec.Latencies = append(x.Spec.Latencies, v1alpha1.Latency{
				Batch: n, Mean: metav1.Duration{Duration: mean},
				P95:       metav1.Duration{Duration: mean + 2*time.Millisecond},
				Deviation: metav1.Duration{Duration: time.Millisecond}, Runs: 100})
		}
		out = append(out, x)
	}
	return out
}

// faulty is a fleet of two dispatchers under load, to which things happen.
type faulty struct {
	*place
	x      *traffic
	rate   float64 // of each app
	apps   []string
	after  time.Duration // that violations are counted for
	starts map[string]time.Duration
	table  strings.Builder
}

const machine = "wait"

// startFaulty installs the fleet and begins to send queries to it.
func startFaulty(t *testing.T, rate float64, after time.Duration) *faulty {
	f := &faulty{place: install(t, 3), apps: []string{"ant", "bee", "cat", "dog"}, after: after}
	f.rate = rate / float64(len(f.apps))
	f.addMachines("first", 3)
	f.kubectl("", "create", "clusterrolebinding", "nodes-"+f.ns, "--clusterrole=sluice-nodes",
		"--serviceaccount="+f.ns+":default-dispatcher")
	x := fleet(2)
	x.Spec.Linger = &metav1.Duration{Duration: 5 * time.Second}
	f.create(x, waiting(machine, "0.1", 12))
	load := &workload.Spec{Seed: 1, DurationS: time.Hour.Seconds()}
	for _, name := range f.apps {
		f.create(f.waits(name, f.rate, machine)...)
		// The first plans are made for less than that: machines come first.
		load.Apps = append(load.Apps, workload.AppSpec{App: name, Interpolate: "linear", Rates: []workload.Segment{
			{Rate: f.rate / 5}, {AtS: after.Seconds() / 6, Rate: f.rate}}})
	}
	c := newCaller(f.place)
	for _, name := range f.apps {
		c.answers(name, 1, 2)
	}
	f.settled()
	src, err := load.Source(appIn(f.apps))
	if err != nil {
		t.Fatal(err)
	}
	f.x = send(t, c, src, f.apps...)
	fmt.Fprintf(&f.table, "| what happens | sent | answered | dropped as late | told to try again | "+
		"broken with a connection | lost | violations in the %v after | simulated |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", after)
	return f
}

// addMachines adds nodes for machines alone.
func (f *faulty) addMachines(name string, count int) {
	f.Helper()
	if err := f.c.AddProcessNodes(f.Context(), cluster.Nodes{Name: name, Count: count,
		Labels: map[string]string{"pool": "machines"}}); err != nil {
		f.Fatal(err)
	}
	for k := range count {
		f.kubectl("", "taint", "node", fmt.Sprintf("%s-%d", name, k), "pool=machines:NoSchedule")
	}
}

// settled waits until both dispatchers hold a cell, every app is ready, and every machine that is wanted is.
func (f *faulty) settled() {
	f.Helper()
	cluster.Eventually(f, "the fleet has settled", func() error {
		if n := len(f.pods("dispatcher")); n != 2 {
			return fmt.Errorf("%d dispatchers are ready", n)
		}
		holders := map[string]bool{}
		now := f.fleet()
		for _, c := range now.Status.Cells {
			holders[c.Holder] = true
		}
		if len(now.Status.Cells) != 2 || len(holders) != 2 {
			return fmt.Errorf("cells are %+v", now.Status.Cells)
		}
		var list corev1.PodList
		if err := f.c.Client.List(f.Context(), &list, client.InNamespace(f.ns)); err != nil {
			return err
		}
		for i := range list.Items {
			if x := &list.Items[i]; x.DeletionTimestamp != nil || x.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", x.Name, x.Status.Phase)
			}
		}
		return nil
	})
	f.starts = map[string]time.Duration{machine: f.startTime()}
}

func (p *place) fleet() *v1alpha1.Fleet {
	p.Helper()
	now := &v1alpha1.Fleet{}
	if err := p.c.Client.Get(p.Context(), client.ObjectKey{Namespace: p.ns, Name: "default"}, now); err != nil {
		p.Fatal(err)
	}
	return now
}

// startTime is how long the machines that are there took to be ready, on average.
func (f *faulty) startTime() time.Duration {
	list := f.pods("worker")
	var sum time.Duration
	for i := range list {
		for _, c := range list[i].Status.Conditions {
			if c.Type == corev1.PodReady {
				sum += c.LastTransitionTime.Sub(list[i].CreationTimestamp.Time)
			}
		}
	}
	return max(sum/time.Duration(max(len(list), 1)), time.Second)
}

// appIn numbers apps by their place in a list.
func appIn(apps []string) func(string) (serving.AppID, error) {
	return func(name string) (serving.AppID, error) {
		return serving.AppID(slices.Index(apps, name)), nil
	}
}

// fault is something that happens to the fleet.
type fault struct {
	name string
	// do has it happen and returns when it is over. It returns what the simulator is told of a cell, which gets the
	// machines that it uses.
	do func() func(cell v1alpha1.CellStatus, machines []string) []host.Incident
}

// happens measures one fault.
func (f *faulty) happens(x fault) {
	f.Helper()
	f.settled()
	time.Sleep(f.after / 3) // of traffic in which nothing happens
	before := f.fleet().Status.Cells
	configs := map[int32]cell.Files{}
	for _, c := range before {
		configs[c.Cell] = f.config(c.Cell)
	}
	f.Logf("%s; cells %+v", x.name, before)
	from := time.Since(f.x.begun)
	told := x.do()
	if left := from + f.after - time.Since(f.x.begun); left > 0 {
		time.Sleep(left)
	}
	f.settled()
	until := time.Since(f.x.begun)
	f.x.ended(until)
	all, minute := f.x.between(from, until, slo), f.x.between(from, from+f.after, slo)
	expected, offered := 0, 0
	for _, c := range before {
		rates := map[string]float64{}
		load := &workload.Spec{Seed: 1, DurationS: (f.after + incidentAt).Seconds()}
		for _, a := range c.Apps {
			rates[a] = f.rate
			load.Apps = append(load.Apps, workload.AppSpec{App: a, Rate: f.rate})
		}
		r := simulate(f.T, open(f.T, configs[c.Cell], rates), load, f.starts, func(used []string) []host.Incident {
			if told == nil {
				return nil
			}
			return told(c, used)
		})
		expected += missed(r)
		offered += int(r.Overall.Offered)
	}
	predicted := 100 * float64(expected) / float64(offered) * float64(f.after+incidentAt) / float64(f.after)
	row := fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %.2f %% | %.2f %% |\n", x.name, all.sent,
		all.count[answered], all.count[dropped], all.count[again], all.count[broken], all.count[lost], minute.share(),
		predicted)
	f.table.WriteString(row)
	f.Logf("%sthe longest took %v; over %v; machines start in %v; %d were not sent", row,
		all.longest.Round(time.Millisecond), (until - from).Round(time.Second), f.starts[machine], f.x.unsent)
	if n := all.count[lost]; n > 0 {
		f.Errorf("%s: %d queries were lost", x.name, n)
	}
	if n := all.count[again] + all.count[broken]; n > 0 && x.name != killed && x.name != nodeLost {
		f.Errorf("%s: %d queries were told to try again or broke", x.name, n)
	}
}

// incidentAt is when faults happen in simulated runs.
const incidentAt = time.Second

// Names of the faults that cost queries: those in the process that dies.
const (
	killed   = "a dispatcher is killed"
	nodeLost = "a node is lost"
)

// takeoverGap is for how long nobody serves the cells of a dispatcher that dies: its leases' time (3 s), and a renewal.
const takeoverGap = 4 * time.Second

// onNode counts the machines of each cell on a node.
func (f *faulty) onNode(name string) map[int32]int {
	out := map[int32]int{}
	for _, x := range f.pods("worker") {
		if x.Spec.NodeName == name {
			var n int32
			_, _ = fmt.Sscan(x.Labels[v1alpha1.LabelCell], &n)
			out[n]++
		}
	}
	return out
}

// busiest is the node with most machines.
func (f *faulty) busiest() (name string, machines map[int32]int) {
	count := map[string]int{}
	for _, x := range f.pods("worker") {
		if count[x.Spec.NodeName]++; count[x.Spec.NodeName] > count[name] {
			name = x.Spec.NodeName
		}
	}
	return name, f.onNode(name)
}

func (f *faulty) faults() []fault {
	each := func(counts map[int32]int, make func(worker string) host.Incident) func(v1alpha1.CellStatus,
		[]string) []host.Incident {
		return func(c v1alpha1.CellStatus, used []string) (out []host.Incident) {
			for _, w := range used[:min(counts[c.Cell], len(used))] {
				out = append(out, make(w))
			}
			return out
		}
	}
	return []fault{
		{"nothing", func() func(v1alpha1.CellStatus, []string) []host.Incident { return nil }},
		{killed, func() func(v1alpha1.CellStatus, []string) []host.Incident {
			victim := f.fleet().Status.Cells[0].Holder
			f.kubectl("", "delete", "pod", victim, "-n", f.ns, "--force", "--grace-period=0", "--wait=false")
			return func(c v1alpha1.CellStatus, _ []string) []host.Incident {
				if c.Holder != victim {
					return nil
				}
				return []host.Incident{{Kind: host.TakenOver, At: incidentAt, For: takeoverGap}}
			}
		}},
		{nodeLost, func() func(v1alpha1.CellStatus, []string) []host.Incident {
			name, counts := f.busiest()
			f.c.Kubelet().KillNode(name)
			told := each(counts, func(w string) host.Incident {
				return host.Incident{Kind: host.Lost, At: incidentAt, For: nodeGrace, Worker: w}
			})
			time.Sleep(f.after)
			f.kubectl("", "delete", "node", name)
			f.addMachines("second", 1)
			return told
		}},
		{"a node is drained", func() func(v1alpha1.CellStatus, []string) []host.Incident {
			name, counts := f.busiest()
			f.kubectl("", "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=5m")
			f.kubectl("", "uncordon", name)
			return each(counts, func(w string) host.Incident {
				return host.Incident{Kind: host.Leaves, At: incidentAt, For: 30 * time.Second, Worker: w}
			})
		}},
		{"a new image is rolled out", func() func(v1alpha1.CellStatus, []string) []host.Incident {
			f.kubectl("", "patch", "fleet", "default", "-n", f.ns, "--type=merge", "-p",
				`{"spec":{"image":"sluice:next"}}`)
			cluster.Eventually(f, "all pods are of the new image", func() error {
				if n := len(f.pods("dispatcher")); n < 2 {
					return fmt.Errorf("%d dispatchers are ready", n)
				}
				for _, role := range []string{"dispatcher", "worker"} {
					for _, x := range f.pods(role) {
						if x.Spec.Containers[0].Image != "sluice:next" {
							return fmt.Errorf("pod %s is of image %s", x.Name, x.Spec.Containers[0].Image)
						}
					}
				}
				return nil
			})
			return func(_ v1alpha1.CellStatus, used []string) (out []host.Incident) {
				for k, w := range used { // one after the other
					out = append(out, host.Incident{Kind: host.Leaves, Worker: w,
						At: incidentAt + time.Duration(k)*f.starts[machine], For: 30 * time.Second})
				}
				return out
			}
		}},
		{"the operator is restarted", func() func(v1alpha1.CellStatus, []string) []host.Incident {
			f.kubectl("", "rollout", "restart", "-n", "sluice-system", "deployment/sluice-operator")
			f.kubectl("", "rollout", "status", "-n", "sluice-system", "deployment/sluice-operator", "--timeout=5m")
			return nil
		}},
	}
}

// nodeGrace is after how long without news a node counts as lost here, and its machines with it.
const nodeGrace = 20 * time.Second

// TestFaults has things go wrong under load and prints what became of the queries, beside what the simulator says of
// the same. In its long form that is 1,000 queries/s and a minute after each (make kube-faults). SLUICE_FAULT picks
// those whose names contain it.
func TestFaults(t *testing.T) {
	rate, after, most := 100.0, 15*time.Second, 2
	if os.Getenv("SLUICE_LONG") != "" {
		rate, after, most = 1000, time.Minute, 6
	}
	if os.Getenv("SLUICE_FAULT") != "" {
		most = 6
	}
	f := startFaulty(t, rate, after)
	for _, x := range f.faults()[:most] {
		if strings.Contains(x.name, os.Getenv("SLUICE_FAULT")) {
			f.happens(x)
		}
	}
	f.x.end()
	for text, n := range f.x.why {
		t.Logf("%d x %s", n, text)
	}
	t.Logf("%.0f queries/s to %d apps in 2 cells\n%s", rate, len(f.apps), f.table.String())
}
