package dispatcher_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// rate of the loads, in queries/s.
const rate = 1000

// threeReplicas are three replicas that serve a cell each.
func threeReplicas(t *testing.T, c *cluster.Cluster, flags ...string) (*fleet, map[int]string, []string) {
	t.Helper()
	f := newFleet(t, c)
	apps := []string{"a0", "a1", "a2"}
	for n, a := range apps {
		f.setCell(n, fakeCell(4, a))
	}
	for k := range 3 {
		f.start(fmt.Sprint("d", k), nil, flags...)
	}
	return f, f.served(3, 1, apps...), apps
}

// run has the load go on for a while before and after what happens: it is what the test is about.
func run(d time.Duration) { time.Sleep(d) }

// TestKilledReplicaIsTakenOver kills a replica under load. What it had is lost: its clients' connections break, queries
// that others had passed on to it are answered with an error that says to try again. All others are answered, some
// after they have waited for the cell to be taken over.
func TestKilledReplicaIsTakenOver(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	f, held, apps := threeReplicas(t, c)
	records := f.record()
	l := startLoad(t, f, rate, apps...)
	run(3 * time.Second)
	dead := f.named(held[0])
	began := time.Now()
	dead.kill()
	f.served(3, 2, apps...)
	t.Logf("all cells are served again %v after the kill", time.Since(began).Round(10*time.Millisecond))
	run(3 * time.Second)
	l.finish("a replica killed")
	lost := l.counts[retryable].Load() + l.counts[broken].Load()
	if share := float64(lost) / float64(rate); share > 0.5 {
		t.Errorf("%d queries were lost, more than a process can have had at that moment", lost)
	}
	records.check(t)
}

// TestStoppedReplicaLosesNothing stops a replica under load, and starts another one.
func TestStoppedReplicaLosesNothing(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	f, held, apps := threeReplicas(t, c)
	records := f.record()
	l := startLoad(t, f, rate, apps...)
	run(2 * time.Second)
	began := time.Now()
	f.named(held[1]).stop(t)
	t.Logf("the replica ended after %v", time.Since(began).Round(10*time.Millisecond))
	f.served(3, 2, apps...)
	f.start("d3", nil)
	f.served(3, 1, apps...)
	run(2 * time.Second)
	l.finish("a replica stopped and another started")
	l.noneLost()
	records.check(t)
}

// TestChangedConfigurationLosesNothing changes the configurations of the cells under load: other workers, other apps.
func TestChangedConfigurationLosesNothing(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	f, _, apps := threeReplicas(t, c)
	l := startLoad(t, f, rate, apps...)
	run(time.Second)
	for round := range 3 {
		for n, a := range apps {
			f.setCell(n, fakeCell(5+round, a, fmt.Sprintf("new%d-%d", round, n)))
		}
		f.served(3, 1, fmt.Sprintf("new%d-0", round), fmt.Sprintf("new%d-1", round), fmt.Sprintf("new%d-2", round))
	}
	for _, r := range f.live() {
		if status, _ := r.infer("new0-0"); status != http.StatusNotFound {
			t.Errorf("%s answers for an app that is not there any more: %d", r.name, status)
		}
	}
	f.setCell(0, "version: 1\napps: [{name: a0}]\n")
	cluster.Eventually(t, "a configuration that cannot be served is refused", func() error {
		for _, r := range f.live() {
			if len(r.said("a cell's configuration cannot be served")) > 0 {
				return nil
			}
		}
		return fmt.Errorf("no replica says so")
	})
	run(time.Second)
	l.finish("nine configurations changed, one refused")
	l.noneLost()
}

// TestServingGoesOnWithoutTheAPIServer stops the API server under load for a while.
func TestServingGoesOnWithoutTheAPIServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	f, held, apps := threeReplicas(t, c)
	records := f.record()
	l := startLoad(t, f, rate, apps...)
	run(time.Second)
	gone := 10 * time.Second
	if long() {
		gone = time.Minute
	}
	c.StopAPI()
	run(gone)
	if err := c.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(6 * time.Second)
	after := f.served(3, 1, apps...)
	for n, was := range held {
		if after[n] != was {
			t.Errorf("cell %d went from %s to %s", n, was, after[n])
		}
	}
	l.finish(fmt.Sprintf("no API server for %v", gone))
	l.noneLost()
	records.check(t)
}
