package infaas

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// at reads a request by whose snapshot workers host variants.
func at(t *testing.T, w cluster, rate float64, now ...int) (*state, *Planner, plan.Request) {
	t.Helper()
	spec, believed := w.build()
	p := &Planner{Profile: believed, Options: Options{Oddities: true}}
	r := plan.Request{Spec: spec, Rates: []float64{rate}, Snapshot: hosting(spec, now...)}
	x, err := p.read(r)
	if err != nil {
		t.Fatal(err)
	}
	return x, p, r
}

// tally counts a state's workers by variant and device type, in the order of the options.
func tally(x *state) map[[2]int]int {
	out := make(map[[2]int]int)
	for k, n := range x.counts {
		if n > 0 {
			out[[2]int{int(x.options[k].variant), int(x.groups[x.options[k].group].device)}] = n
		}
	}
	return out
}

func expect(t *testing.T, what string, x *state, want map[[2]int]int) {
	t.Helper()
	got := tally(x)
	same := len(got) == len(want)
	for k, n := range want {
		same = same && got[k] == n
	}
	if !same {
		t.Errorf("%s: %v, want %v (workers by variant and device type)", what, got, want)
	}
}

// 30/s are asked of one instance that carries 10/s. The most accurate variant takes 100 ms on the slow device and 20 ms
// on the fast one. One on the fast device would do (47.5/s usable), on the slow one it takes three more; taking
// milliseconds for items/s, the release finds that one on the slow device does and two are needed on the fast one.
func TestReleaseTakesLatencyForThroughput(t *testing.T) {
	w := cluster{workers: []int{0, 0, 0, 0, 1, 1}, apps: [][]offer{{{1, []float64{100, 20}}, {0.9, []float64{50, 10}}}}}
	x, p, _ := at(t, w, 30, 0)
	x.up(p.Profile, 0)
	expect(t, "up", x, map[[2]int]int{{0, 0}: 2})
	// The floor of 9.5 is not below 9: nothing is done. It is below 9.2.
	x, p, _ = at(t, w, 9, 0)
	x.up(p.Profile, 0)
	expect(t, "up at 9/s", x, map[[2]int]int{{0, 0}: 1})
	x, p, _ = at(t, w, 9.2, 0)
	x.up(p.Profile, 0)
	expect(t, "up at 9.2/s", x, map[[2]int]int{{0, 0}: 2})
}

// No worker is left for the best variant. Three copies of the running variant (10 ms: 95/s usable) cost 3 x 0.1. The
// number that the release computes for another variant costs 2.7 and more. It chooses copies, and starts three of the
// least accurate variant.
func TestReleaseReplicatesTheLeastAccurate(t *testing.T) {
	w := cluster{
		workers: []int{0, 0, 0, 0, 0, 1}, apps: [][]offer{
			{{1, []float64{0, 20}}, {0.9, []float64{10, 0}}, {0.8, []float64{5, 0}}},
		},
	}
	x, p, _ := at(t, w, 250, 1, -1, -1, -1, -1, 0)
	x.up(p.Profile, 0)
	expect(t, "up", x, map[[2]int]int{{1, 0}: 1, {2, 0}: 3, {0, 1}: 1})
}

// Scaling down looks at queues, not at the load, and leaves only the least accurate variant.
func TestReleaseScalesDownByQueues(t *testing.T) {
	w := cluster{workers: []int{0, 0, 0, 0}, apps: [][]offer{ladder}}
	x, _, _ := at(t, w, 28, 0, 0, 0)
	x.down(0, 3) // 20 and 10/s, at 0.95, take the 3 that wait: two go although 28/s arrive, the last becomes variant 2
	expect(t, "three with short queues", x, map[[2]int]int{{2, 0}: 1})
	x, _, _ = at(t, w, 28, 0, 0, 0)
	x.down(0, 200)
	expect(t, "three with long queues", x, map[[2]int]int{{2, 0}: 3})
	// 80 x 0.95 x 0.4 = 30.4 is above 28 and not above 31; of two that are the least accurate nothing more is given up
	// here.
	for _, rate := range []float64{28, 31} {
		x, _, _ = at(t, w, rate, 2, 2)
		x.down(0, 200)
		expect(t, "two of the least accurate", x, map[[2]int]int{{2, 0}: 2})
	}
	// The end at the first that is least accurate spares those after it.
	w.apps = [][]offer{{ladder[2], ladder[0]}}
	x, _, _ = at(t, w, 60, 0, 1)
	x.down(0, 200)
	expect(t, "least accurate first, much to do", x, map[[2]int]int{{0, 0}: 1, {1, 0}: 1})
	x, _, _ = at(t, w, 10, 0, 1)
	x.down(0, 200)
	expect(t, "least accurate first, little to do", x, map[[2]int]int{{0, 0}: 2})
}

// Queries want the best variant. Where it has no room, the first variant that runs nowhere is started, one after the
// other until the best is among them, the apps in turn.
func TestReleaseStartsInactiveVariants(t *testing.T) {
	up := []offer{ladder[2], ladder[1], ladder[0]} // the best comes last
	w := cluster{workers: []int{0, 0, 0, 0}, apps: [][]offer{up}}
	x, _, _ := at(t, w, 1, 0)
	x.arrive([]bool{false})
	expect(t, "no best one runs", x, map[[2]int]int{{0, 0}: 1, {1, 0}: 1, {2, 0}: 1})
	x, _, r := at(t, w, 1, 2)
	r.Snapshot.At = 5e9
	x.release(nil, r.Snapshot)
	expect(t, "the best has room", x, map[[2]int]int{{2, 0}: 1})
	r.Snapshot.Instances[0].Queued = 10 // it carries 10/s
	x, _, _ = at(t, w, 1, 2)
	x.running[0] = r.Snapshot.Instances[0]
	x.release(nil, r.Snapshot)
	expect(t, "the best has no room", x, map[[2]int]int{{0, 0}: 1, {1, 0}: 1, {2, 0}: 1})
	w.apps = [][]offer{up, up}
	x, _, _ = at(t, w, 1)
	x.arrive([]bool{false, false})
	expect(t, "four workers for two apps", x, map[[2]int]int{{0, 0}: 1, {1, 0}: 1, {3, 0}: 1, {4, 0}: 1})
}

// It scales every ten seconds. Between, a placement that has its best variants stays.
func TestReleasePeriod(t *testing.T) {
	spec, believed := cluster{workers: []int{0, 0, 0}, apps: [][]offer{ladder}}.build()
	p := &Planner{Profile: believed, Options: Options{Oddities: true}}
	for _, c := range []struct {
		at   serving.Time
		want []int
	}{
		{0, []int{0, 2, -1}}, {1e9, []int{0, 0, 0}}, {9.9e9, []int{0, 0, 0}}, {10e9, []int{0, 2, -1}},
		{20.5e9, []int{0, 2, -1}},
	} {
		r := plan.Request{Spec: spec, Rates: []float64{20}, Snapshot: hosting(spec, 0, 0, 0)}
		r.Snapshot.At = c.at
		// When it scales, all but one are removed and that one becomes variant 2; then the next query starts variant 0
		// anew.
		if got := hosts(spec, must(t, p, r)); !slices.Equal(got, c.want) {
			t.Errorf("at %v: %v, want %v (variants by worker)", c.at, got, c.want)
		}
	}
	if got := hosts(spec, must(t, p, plan.Request{Spec: spec, Rates: []float64{20}})); !slices.Equal(got,
		[]int{0, -1, -1}) {
		t.Errorf("nothing runs: %v, want the first variant on the first worker", got)
	}
}
