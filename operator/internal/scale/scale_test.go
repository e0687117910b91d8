package scale

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/controller"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestScale has a fleet come from nothing to serving, and lets a tenth of its workers move. It prints what all of it
// took. The bounds that it checks are those of calls, which do not depend on the machine that runs it.
func TestScale(t *testing.T) {
	cluster.Need(t)
	z := longtest.Of(size{workers: 40, apps: 8, dispatchers: 2, steady: 5 * time.Second, updates: 3},
		size{workers: 2000, apps: 200, dispatchers: 8, steady: 30 * time.Second, updates: 20})
	if n, err := strconv.Atoi(os.Getenv(workersVariable)); err == nil && n >= 10*types {
		z = size{workers: n, apps: n / 10, dispatchers: 1 + n/250, steady: 30 * time.Second, updates: 20}
	}
	r := &report{t: t}
	began := time.Now()
	c := cluster.Start(t, cluster.Options{Controllers: true, Nodes: z.nodesOf(), NodeGrace: nodeGrace})
	r.row("control plane and nodes ready", "%v", time.Since(began))
	ns := c.Namespace(t)
	w := startWorkers(t, takes)
	v := watch(t, c, ns)
	o := startOperator(t, c)
	d := startDispatchers(t, c, ns, z.dispatchers, w.port)
	s := &stage{T: t, z: z, c: c, ns: ns, v: v, o: o, d: d, r: r, api: c.PID("kube-apiserver")}
	s.l = startLoad(t, z, d)

	s.comes()
	s.rests()
	s.changes()
	s.moves()
	s.l.end()
	r.print()
}

// workersVariable is a number of workers to take in place of the long form's 2,000, with an app for every ten.
const workersVariable = "SLUICE_WORKERS"

// nodeGrace has simulated nodes say rarely that they live: their news is not what is measured.
const nodeGrace = 20 * time.Minute

// stage is what a run of the test has.
type stage struct {
	*testing.T
	z   size
	c   *cluster.Cluster
	ns  string
	v   *view
	o   *operator
	d   *dispatchers
	l   *load
	r   *report
	api int
}

// hold is how long a state must have lasted to count as reached.
const hold = 5 * time.Second

// patience bounds how long a state may take to be reached; says is how often a long wait is told.
const (
	patience = 15 * time.Minute
	says     = 10 * time.Second
)

// settled waits until a state has lasted, and returns when it began.
func (s *stage) settled(what string, state func() error) (at time.Time) {
	s.Helper()
	began := time.Now()
	told := began
	for {
		err := state()
		now := time.Now()
		switch {
		case err != nil && now.Sub(began) > patience:
			s.Fatalf("%s: not within %v: %v", what, patience, err)
		case err != nil:
			at = time.Time{}
			if now.Sub(told) > says {
				told = now
				s.Logf("%v %s: %v", now.Sub(began).Round(time.Second), what, err)
			}
		case at.IsZero():
			at = now
		case now.Sub(at) > hold:
			return at
		}
		time.Sleep(poll)
	}
}

// poll is the time between two looks at a state.
const poll = 100 * time.Millisecond

// serving fails while not all machines that are wanted run and not all apps answer.
func (s *stage) serving() error {
	p, ready := s.v.pods(), s.v.apps("Ready")
	if p.pending > 0 || p.leaving > 0 || p.running < s.z.workers/2 || ready < s.z.apps {
		return fmt.Errorf("%d pods run, %d wait, %d leave; %d of %d apps answer", p.running, p.pending, p.leaving,
			ready, s.z.apps)
	}
	f := &v1alpha1.Fleet{}
	if err := s.v.cache.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: fleetName}, f); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(f.Status.Conditions, controller.Ready) {
		return fmt.Errorf("the fleet's conditions are %+v", f.Status.Conditions)
	}
	return nil
}

// comes applies all resources and waits until everything runs.
func (s *stage) comes() {
	operator, api := usedBy(s.T, s.o.cmd.Process.Pid), usedBy(s.T, s.api)
	calls, own := s.o.calls(), s.d.calls.seen()
	stop := s.o.profile("comes", 20)
	began := time.Now()
	list := s.z.resources()
	apply(s.T, s.c, s.ns, list)
	s.r.row("apply", "%d resources written in %v", len(list), time.Since(began))
	at := s.settled("everything runs", s.serving)
	stop()
	p := s.v.pods()
	s.r.row("from apply to all Running", "%v: %d workers, %d apps answer", at.Sub(began), p.running, s.z.apps)
	s.r.row("... its calls", "operator %d; dispatchers %s", s.o.calls()-calls, s.d.calls.seen().since(own))
	s.used("... its processors", operator, api, time.Since(began))
}

func (s *stage) used(what string, operator, api used, took time.Duration) {
	o, a := usedBy(s.T, s.o.cmd.Process.Pid), usedBy(s.T, s.api)
	s.r.row(what, "in %v: operator %v of a processor, %d MiB now and %d at most; API server %v, %d and %d MiB", took,
		(o.cpu - operator.cpu).Round(10*time.Millisecond), o.rss>>20, o.peak>>20,
		(a.cpu - api.cpu).Round(10*time.Millisecond), a.rss>>20, a.peak>>20)
}

// rests counts calls while nothing changes: once plans have settled.
func (s *stage) rests() {
	// What has just begun to serve is looked at and written for a while.
	s.settled("the operator has nothing more to do", s.quiet())
	operator, api := usedBy(s.T, s.o.cmd.Process.Pid), usedBy(s.T, s.api)
	calls, own, t := s.o.calls(), s.d.calls.seen(), s.l.tally()
	created, gone := s.v.moves()
	began := time.Now()
	time.Sleep(s.z.steady) // this time is what is measured
	took := time.Since(began)
	now, n := s.d.calls.seen().since(own), s.o.calls()-calls
	if n > len(s.z.resources())/10 {
		s.Errorf("the operator has made %d calls while nothing changed", n)
	}
	came, went := s.v.moves()
	s.r.row("steady state",
		"in %v: operator %d calls, dispatchers %d (%s) and %d of leases; %d pods came, %d went; %+v",
		took, n, now.total(), now, now.leases, came-created, went-gone, s.l.tally().since(t))
	s.used("... its processors", operator, api, took)
}

// quiet returns a state that fails whenever the operator has called since the last look.
func (s *stage) quiet() func() error {
	from := -s.z.apps
	return func() error {
		n := s.o.calls()
		if n-from > s.z.apps/callsAtRest {
			defer func() { from = n }()
			return fmt.Errorf("it has made %d calls", n-from)
		}
		return nil
	}
}

// callsAtRest is for how many apps the operator makes a call in the time that a state has to last: one of so many has
// always something to say.
const callsAtRest = 40

// changes changes apps, one after another, and waits each time until the operator has taken that in.
func (s *stage) changes() {
	var took []time.Duration
	for n := range s.z.updates {
		a := &v1alpha1.InferenceApp{}
		key := client.ObjectKey{Namespace: s.ns, Name: appName(n * s.z.apps / s.z.updates)}
		if err := s.c.Client.Get(s.Context(), key, a); err != nil {
			s.Fatal(err)
		}
		a.Spec.Weight = quantity(1.001)
		began := time.Now()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"weight":"1.001"}}`))
		if err := s.c.Client.Patch(s.Context(), a, patch); err != nil {
			s.Fatal(err)
		}
		cluster.Eventually(s.T, "the change is taken", func() error {
			now := &v1alpha1.InferenceApp{}
			if err := s.v.cache.Get(s.Context(), key, now); err != nil {
				return err
			}
			x := meta.FindStatusCondition(now.Status.Conditions, controller.Accepted)
			if x == nil || x.ObservedGeneration < a.Generation {
				return fmt.Errorf("the condition is %+v", x)
			}
			return nil
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	s.r.row("an app is changed, until it is accepted", "p50 %v, most %v of %d", took[len(took)/2], took[len(took)-1],
		len(took))
	all := s.o.series()
	for _, name := range []string{"fleet", "machinetype"} {
		half, n := s.o.quantile(all, "controller_runtime_reconcile_time_seconds", "controller", name, 0.5)
		most, _ := s.o.quantile(all, "controller_runtime_reconcile_time_seconds", "controller", name, 0.99)
		s.r.row("reconciling "+name, "p50 %.1f ms, p99 %.1f ms of %d", half*1e3, most*1e3, n)
	}
}

// What a plan may cost in calls, for each worker that moves: its pod and another's are two. In the short form, where
// few move, it is the statuses of apps that count.
const (
	callsPerMove = 10
	callsPerApp  = 25
)

// moves has a tenth of the workers' machines not be had any more, and others in their place, so that plans move them.
func (s *stage) moves() {
	s.settled("everything runs", s.serving)
	before := s.v.pods()
	left := s.z.most() - s.z.moves()
	operator, api := usedBy(s.T, s.o.cmd.Process.Pid), usedBy(s.T, s.api)
	calls, own, t := s.o.calls(), s.d.calls.seen(), s.l.tally()
	created, gone := s.v.moves()
	stop := s.o.profile("moves", 20)
	began := time.Now()
	for n := range types {
		m := &v1alpha1.MachineType{}
		m.Namespace, m.Name = s.ns, typeName(n)
		most := s.z.most() + s.z.spare()
		if n == 0 {
			most = left
		}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"most":%d}}`, most))
		if err := s.c.Client.Patch(s.Context(), m, patch); err != nil {
			s.Fatal(err)
		}
	}
	at := s.settled("the workers have moved", func() error {
		if n := s.v.pods().byType[typeName(0)]; n > left {
			return fmt.Errorf("%d of %d are there", n, left)
		}
		if n := s.v.pods().running; n < before.running*9/10 {
			return fmt.Errorf("%d run, before %d", n, before.running)
		}
		return s.serving()
	})
	stop()
	came, went := s.v.moves()
	came, went = came-created, went-gone
	now, n := s.d.calls.seen().since(own), s.o.calls()-calls
	all, moved := n+now.total(), max(went, came) // a worker that moves goes and comes
	s.r.row("a tenth of the machines goes", "%v until %d workers have gone and %d come; %+v", at.Sub(began), went, came,
		s.l.tally().since(t))
	s.r.row("... its calls", "%d, %.1f for each worker moved: operator %d; dispatchers %s; and %d of leases", all,
		float64(all)/float64(max(moved, 1)), n, now, now.leases)
	s.used("... its processors", operator, api, time.Since(began))
	if most := longtest.Of(callsPerApp*s.z.apps, callsPerMove*moved); all > most {
		s.Errorf("%d calls of the API server for %d workers that moved, want at most %d", all, moved, most)
	}
	if t := s.l.tally().since(t); t.failed > 0 {
		s.Errorf("%d queries failed otherwise than late or to be tried again, the last of all with %v", t.failed,
			*s.l.last.Load())
	}
}

// report is a table of what was measured.
type report struct {
	t    *testing.T
	rows [][2]string
}

func (r *report) row(what, format string, args ...any) {
	for i, a := range args {
		if d, ok := a.(time.Duration); ok {
			args[i] = d.Round(time.Millisecond)
		}
	}
	r.rows = append(r.rows, [2]string{what, fmt.Sprintf(format, args...)})
	r.t.Logf("%s: %s", what, r.rows[len(r.rows)-1][1])
}

func (r *report) print() {
	var b strings.Builder
	load, err := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&b, "\n| what | measured |\n| --- | --- |\n")
	for _, x := range r.rows {
		fmt.Fprintf(&b, "| %s | %s |\n", x[0], x[1])
	}
	fmt.Fprintf(&b, "load of the machine at the end: %s (%v)", strings.TrimSpace(string(load)), err)
	r.t.Log(b.String())
}
