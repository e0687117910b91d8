package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/serving/workload"
)

// lives are the lives of a fleet's machines, as the API server tells them: from a pod's creation until it is gone.
type lives struct {
	mu    sync.Mutex
	begun map[types.UID]time.Time
	ended map[types.UID]time.Time
	asked map[types.UID]time.Time // to go
	kinds map[types.UID]string
}

// watchLives follows the machines of a namespace from now on.
func (p *place) watchLives() *lives {
	p.Helper()
	set, err := kubernetes.NewForConfig(p.c.Config)
	if err != nil {
		p.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.Cleanup(stop)
	w, err := set.CoreV1().Pods(p.ns).Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelRole + "=worker"})
	if err != nil {
		p.Fatal(err)
	}
	l := &lives{begun: map[types.UID]time.Time{}, ended: map[types.UID]time.Time{}, asked: map[types.UID]time.Time{},
		kinds: map[types.UID]string{}}
	go func() {
		for e := range w.ResultChan() {
			if x, ok := e.Object.(*corev1.Pod); ok {
				l.see(x, e.Type)
			}
		}
	}()
	return l
}

func (l *lives) see(x *corev1.Pod, what watch.EventType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if _, ok := l.begun[x.UID]; !ok {
		l.begun[x.UID], l.kinds[x.UID] = now, x.Labels[v1alpha1.LabelMachineType]
	}
	if _, ok := l.asked[x.UID]; !ok && x.DeletionTimestamp != nil {
		l.asked[x.UID] = now
	}
	if what == watch.Deleted {
		l.ended[x.UID] = now
	}
}

// between is how long machines lived in a span, by type.
func (l *lives) between(from, until time.Time) map[string]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]time.Duration{}
	for id, begun := range l.begun {
		ended, gone := l.ended[id]
		if !gone || ended.After(until) {
			ended = until
		}
		if begun.Before(from) {
			begun = from
		}
		out[l.kinds[id]] += max(ended.Sub(begun), 0)
	}
	return out
}

// ending is how long machines took to be gone from when they were asked to go, on average.
func (l *lives) ending() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum time.Duration
	for id, ended := range l.ended {
		sum += ended.Sub(l.asked[id])
	}
	return sum / time.Duration(max(len(l.ended), 1))
}

// rentedKind is a machine type that may be rented: what it takes for a batch, and its price in $/h.
type rentedKind struct {
	name       string
	base, item time.Duration
	price      float64
}

var rentedKinds = []rentedKind{
	{"small", 200 * time.Millisecond, 50 * time.Millisecond, 0.05},
	{"medium", 100 * time.Millisecond, 24 * time.Millisecond, 0.105},
	{"large", 48 * time.Millisecond, 12 * time.Millisecond, 0.2},
}

// The day: the rates of the trace that papers/ramsis/figures has, which its authors squeezed from 24 hours into 27
// steps.
const (
	dayTrace   = "papers/ramsis/figures/data/twitter.csv"
	daySteps   = 27
	dayPeak    = 150.0 // queries/s of both apps at the peak of the day
	dayBatch   = 8
	daySLO     = 2 * time.Second
	dayReplan  = 5 * time.Second
	dayLinger  = 2 * time.Second
	dayMachine = 12 // of each type at most
)

// day is the load of a day that lasts so long.
func day(t *testing.T, lasts time.Duration, shares map[string]float64) *workload.Spec {
	t.Helper()
	f, err := os.Open(filepath.Join(cluster.Root(), dayTrace))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != daySteps+1 {
		t.Fatalf("%s has %d rows, %v", dayTrace, len(rows), err)
	}
	rates, most := make([]float64, daySteps), 0.0
	for k, row := range rows[1:] {
		if rates[k], err = strconv.ParseFloat(row[1], 64); err != nil {
			t.Fatal(err)
		}
		most = max(most, rates[k])
	}
	spec := &workload.Spec{Seed: 1, DurationS: lasts.Seconds()}
	for _, app := range slices.Sorted(maps.Keys(shares)) {
		a := workload.AppSpec{App: app, Interpolate: "linear"}
		for k, rate := range rates {
			a.Rates = append(a.Rates, workload.Segment{AtS: lasts.Seconds() * float64(k) / daySteps,
				Rate: rate / most * dayPeak * shares[app]})
		}
		spec.Apps = append(spec.Apps, a)
	}
	return spec
}

// rents is a fleet that rents machines, and its apps.
func (p *place) rents(load *workload.Spec) {
	p.Helper()
	x := fleet(1)
	x.Spec.Replan, x.Spec.Linger = &metav1.Duration{Duration: dayReplan}, &metav1.Duration{Duration: dayLinger}
	p.create(x)
	for _, k := range rentedKinds {
		m := waiting(k.name, fmt.Sprint(k.price), dayMachine)
		c := &m.Spec.PodTemplate.Spec.Containers[0]
		c.Args = []string{"node", "--grpc", ":8001", "--http", ":8000", "--fake", k.base.String(), "--fake-item",
			k.item.String()}
		// Work has moved before a machine is given back; a second of the day is minutes.
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
		p.create(m)
	}
	for _, a := range load.Apps {
		list := p.waits(a.App, a.Rates[0].Rate, "small", "medium", "large")
		list[0].(*v1alpha1.InferenceApp).Spec.Objective.Latency = metav1.Duration{Duration: daySLO}
		list[0].(*v1alpha1.InferenceApp).Spec.Variants[0].MaxBatch = dayBatch
		for k, o := range list[1:] {
			x, kind := o.(*v1alpha1.Profile), rentedKinds[k]
			x.Spec.Latencies = nil
			for n := int32(1); n <= dayBatch; n *= 2 {
				mean := kind.base + waitCarried + time.Duration(n)*kind.item
				x.Spec.Latencies = append(x.Spec.Latencies, v1alpha1.Latency{Batch: n,
					Mean: metav1.Duration{Duration: mean}, P95: metav1.Duration{Duration: mean + 2*time.Millisecond},
					Deviation: metav1.Duration{Duration: time.Millisecond}, Runs: 100})
			}
		}
		p.create(list...)
	}
}

// dollars is what machines that lived so long have cost, in $/h of a span.
func dollars(lived map[string]time.Duration, span time.Duration) (sum float64) {
	for _, k := range rentedKinds {
		sum += k.price * lived[k.name].Seconds()
	}
	return sum / span.Seconds()
}

// TestDay serves a day of a real trace, squeezed into minutes, with machines that are rented as the load needs them,
// and prints what they cost and how many queries missed their objective beside what the simulator says. In its long
// form (make kube-cost) the two must agree within 3 % and one point.
func TestDay(t *testing.T) {
	lasts, long := 40*time.Second, os.Getenv("SLUICE_LONG") != ""
	if long {
		lasts = daySteps * 10 * time.Second
	}
	p := install(t, 2)
	if err := p.c.AddProcessNodes(t.Context(), cluster.Nodes{Name: "rented", Count: 2,
		Labels: map[string]string{"pool": "machines"}}); err != nil {
		t.Fatal(err)
	}
	machines := p.watchLives()
	load := day(t, lasts, map[string]float64{"news": 2. / 3, "spam": 1. / 3})
	apps := []string{"news", "spam"}
	p.rents(load)
	c := newCaller(p)
	for _, a := range apps {
		c.answers(a, 1, 2)
	}
	src, err := load.Source(appIn(apps))
	if err != nil {
		t.Fatal(err)
	}
	x := send(t, c, src, apps...)
	begun := x.begun
	time.Sleep(lasts) // the day
	ended := time.Now()
	x.end()
	lived := machines.between(begun, ended)
	all := x.between(0, lasts, daySLO)

	starts := map[string]time.Duration{}
	f := &faulty{place: p}
	for _, k := range rentedKinds {
		starts[k.name] = f.startTime()
	}
	// A machine is paid for while it ends, too, which to the simulator is the same as if it were kept so much longer.
	files, rates := p.config(0), map[string]float64{}
	kept := dayLinger + machines.ending()
	files[cell.KeyConfig] = strings.ReplaceAll(files[cell.KeyConfig], "linger: "+dayLinger.String(),
		"linger: "+kept.String())
	if !strings.Contains(files[cell.KeyConfig], "linger: "+kept.String()) {
		t.Fatalf("the configuration does not say how long machines are kept:\n%s", files[cell.KeyConfig])
	}
	for _, a := range load.Apps {
		rates[a.App] = a.Rates[0].Rate
	}
	r := simulate(t, open(t, files, rates), load, starts, nil)

	real, simulated := dollars(lived, ended.Sub(begun)), *r.Overall.CostPerHour
	missed := 100 * float64(missed(r)) / float64(r.Overall.Offered)
	t.Logf("a day in %v: %.0f times as fast; plans every %v, machines start in %v and end in %v, are kept %v\n"+
		"| | queries | $/h | violations |\n| --- | --- | --- | --- |\n"+
		"| cluster | %d | %.4f | %.2f %% |\n| simulator | %d | %.4f | %.2f %% |\n| difference | | %+.1f %% | %+.2f |\n",
		lasts, (24*time.Hour).Seconds()/lasts.Seconds(), dayReplan, starts["small"],
		machines.ending().Round(time.Millisecond), dayLinger, all.sent, real, all.share(), r.Overall.Offered, simulated,
		missed, 100*(real/simulated-1), all.share()-missed)
	for _, k := range rentedKinds {
		t.Logf("%s machines: %.1f on average", k.name, lived[k.name].Seconds()/ended.Sub(begun).Seconds())
	}
	for text, n := range x.why {
		t.Logf("%d x %s", n, text)
	}
	if n := all.count[lost] + all.count[again] + all.count[broken]; n > 0 {
		t.Errorf("%d queries were lost, or told to try again, or broke", n)
	}
	if off := real/simulated - 1; long && (off > 0.03 || off < -0.03) {
		t.Errorf("costs differ by %.1f %%, want at most 3 %%", 100*off)
	}
	if off := all.share() - missed; long && (off > 1 || off < -1) {
		t.Errorf("violations differ by %.2f points, want at most one", off)
	}
}
