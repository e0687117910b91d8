package dataplane_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/tensor"
)

// world is one random cluster with its load, faults and cancellations, the same for both drivers.
type world struct {
	cluster *simtest.Cluster
	load    []workload.Arrival
	faults  []sim.Fault
	cancels []sim.Cancel
	prices  []sim.PriceChange
	growths []sim.Growth
	recalls []engine.Recalled
	stays   []workload.Client
	planner plan.Planner // that is asked during the run, and takes thinking; nil for none
	truth   *profile.Table
	content truth.Content // nil for none
	known   bool          // the engine begins with what was measured
	header  journal.Header
	system  systems.System
	// grow, if not nil, may fill in the growths that come, after every step of the simulator; truthOf is the truth
	// meanwhile.
	grow    func(e *engine.Engine, now serving.Time)
	truthOf func() profile.Profile
}

// now is the truth.
func (w *world) now() profile.Profile {
	if w.truthOf != nil {
		return w.truthOf()
	}
	return w.truth
}

func newWorld(system systems.System, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 5))
	w := &world{cluster: simtest.Random(rng), system: system, known: true}
	for s := range w.cluster.Spec.Stages {
		for e := range w.cluster.Spec.Stages[s].Next {
			w.cluster.Spec.Stages[s].Next[e].FanOut = 1 // what live apps can do
		}
	}
	w.load, w.truth = renumbered(w.cluster.Load(rng, 200)), w.cluster.Profile
	if seed%2 == 1 {
		w.cluster.Spec.Tenants = []serving.Tenant{{Name: "one", Weight: 1}, {Name: "two", Weight: 2.5}}
		for k := range w.load {
			w.load[k].Tenant = int32(k % 3)
		}
	}
	end := int64(w.load[len(w.load)-1].At) + 1
	for range rng.IntN(3) {
		w.faults = append(w.faults, sim.Fault{
			At: serving.Time(rng.Int64N(end)), Worker: serving.WorkerID(rng.IntN(len(w.cluster.Spec.Workers))),
		})
	}
	slices.SortFunc(w.faults, func(a, b sim.Fault) int { return int(a.At - b.At) })
	for id := range w.load {
		if rng.IntN(20) == 0 {
			w.cancels = append(w.cancels, sim.Cancel{
				At: w.load[id].At.Add(time.Duration(rng.IntN(30)) * time.Millisecond), Query: serving.QueryID(id + 1),
			})
		}
	}
	slices.SortStableFunc(w.cancels, func(a, b sim.Cancel) int { return int(a.At - b.At) })
	for stream := range uint64(3) { // streams are opened and closed at instants at which much else happens
		clients := rand.New(rand.NewPCG(seed, stream))
		from, until := w.load[clients.IntN(len(w.load))].At, w.load[clients.IntN(len(w.load))].At
		w.stays = append(w.stays, workload.Client{
			App:    serving.AppID(clients.IntN(len(w.cluster.Spec.Apps))),
			Stream: dataplane.StreamNumber(named(1 + stream)), Rate: 100 * clients.Float64(), From: min(from, until),
			Until: max(from, until),
		})
	}
	w.header = journal.Header{
		Statistic: "p95", Provides: w.cluster.Planner.Provides(), Spec: w.cluster.Spec,
		Measurements: w.cluster.Measurements,
	}
	system.Record(&w.header)
	return w
}

func (w *world) engine() *engine.Engine {
	var measured profile.Profile
	if w.known {
		measured = w.cluster.Profile
	}
	e, err := w.system.Engine(w.cluster.Spec, measured, w.cluster.Planner.Provides())
	if err != nil {
		panic(err)
	}
	return e
}

// Service and Load are the truth of both drivers: functions of the batch, in round numbers, so that ties are frequent.
func (w *world) Service(v serving.VariantID, d serving.DeviceTypeID, items, _ int, _ float64) time.Duration {
	return w.now().Latency(v, d, items, 1).Round(time.Millisecond) + time.Millisecond
}

func (*world) Draw(serving.VariantID, serving.DeviceTypeID, int, int) float64 { return 0 }

func (w *world) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return w.now().Load(v, d) + time.Millisecond
}

func (w *world) breaks(id serving.BatchID) bool { return id%37 == 5 }

// Launch and the Runner methods make the world a backend as well.
func (w *world) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	r := &runner{w, s.DeviceType}
	return r, r.Load(ctx, s.Variants[0], s.BatchLimit)
}

type runner struct {
	w      *world
	device serving.DeviceTypeID
}

func (r *runner) Load(ctx context.Context, v serving.VariantID, _ int) error {
	return pause(ctx, r.w.Load(v, r.device))
}

func (r *runner) Unload(context.Context, serving.VariantID) error { return nil }
func (r *runner) Close() error                                    { return nil }

func (r *runner) Run(ctx context.Context, b *dataplane.Batch) error {
	took := r.w.Service(b.Variant, r.device, b.Items, 1, 0)
	if r.w.content != nil {
		took = r.w.shows(b, took)
	}
	if err := pause(ctx, took); err != nil {
		return err
	}
	if r.w.breaks(b.ID) {
		return errors.New("broken on purpose")
	}
	r.w.tells(b)
	return nil
}

// number is which of its app's queries one is.
func (w *world) number(q serving.QueryID) (n uint64) {
	for _, a := range w.load[:q] {
		if a.App == w.load[q-1].App {
			n++
		}
	}
	return n
}

// tells has a batch's answers say how sure their variant is, where that is known of it.
func (w *world) tells(b *dataplane.Batch) {
	spec := w.cluster.Spec
	if int(b.Variant) >= len(spec.Variants) {
		return // it came later
	}
	c := spec.Stages[spec.Variants[b.Variant].Stage].Confidence(b.Variant)
	if c == nil {
		return
	}
	for k := range b.Portions {
		x := &b.Portions[k]
		var sure []byte
		for n := range x.Items {
			own := truth.Confidence(c, w.number(x.Query), int32(x.Offset+n))
			sure = binary.LittleEndian.AppendUint32(sure, math.Float32bits(own))
		}
		x.Outputs = append(x.Outputs,
			tensor.Tensor{Name: "sure", DType: tensor.FP32, Shape: []int64{int64(x.Items)}, Data: sure})
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// simulated runs the world on the virtual clock and returns its journal.
func (w *world) simulated(t *testing.T) []byte {
	var out bytes.Buffer
	j, err := journal.NewWriter(&out, w.header)
	if err != nil {
		t.Fatal(err)
	}
	e := w.engine()
	_, err = sim.Run(sim.Config{
		Spec: w.cluster.Spec, Engine: e, Truth: w, Initial: w.cluster.Plan, Source: workload.FromSlice(w.load),
		Faults: w.faults, Cancels: w.cancels,
		Prices: w.prices, Growths: w.growths, Recalled: w.recalls, Clients: w.stays, Content: w.content,
		Planner: w.planner, PlanDelay: thinking, Breaks: w.breaks, Check: true,
		Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
			_ = j.Step(now, in, out)
			if w.grow != nil {
				w.grow(e, now)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// live runs the world through the real data plane, its goroutines on fake time, and returns its journal.
func (w *world) live(t *testing.T) []byte {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		j, err := journal.NewWriter(&out, w.header)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		p, err := dataplane.New(dataplane.Config{
			Spec: w.cluster.Spec, Engine: w.engine(), Backend: func(serving.WorkerID) dataplane.Backend {
				return w
			}, Initial: w.cluster.Plan, Recalled: w.recalls,
			Planner: slowPlanner{w.planner}, RunTimeout: time.Hour, Rows: 1 << 20, Settle: synctest.Wait,
			Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) { _ = j.Step(now, in, out) },
		})
		if err != nil {
			t.Fatal(err)
		}
		until := func(at serving.Time) { time.Sleep(time.Until(begun.Add(time.Duration(at)))) }
		var accidents sync.WaitGroup
		accidents.Go(func() {
			for _, f := range w.faults {
				until(f.At)
				p.Lose(f.Worker)
			}
		})
		accidents.Go(func() {
			for _, c := range w.cancels {
				until(c.At)
				p.Cancel(c.Query)
			}
		})
		accidents.Go(func() {
			for _, x := range w.prices {
				until(x.At)
				p.SetPrice(x.DeviceType, x.Price)
			}
		})
		for _, s := range w.stays {
			accidents.Go(func() {
				until(s.From)
				if err := p.OpenStream(s.App, names[s.Stream], s.Rate); err != nil {
					t.Error(err)
				}
				until(s.Until)
				p.CloseStream(s.App, names[s.Stream])
			})
		}
		accidents.Go(func() {
			for _, g := range w.growths {
				until(g.At)
				if err := p.Grow(g.Growth, nil); err != nil {
					t.Error(err)
				}
			}
		})
		answers := make(chan error, len(w.load))
		for _, a := range w.load {
			until(a.At)
			p.Submit(&dataplane.Request{
				App: a.App, Generation: w.generation(a.App, a.At), Items: int(a.Items), Timeout: a.Timeout,
				Priority: a.Priority, MinAccuracy: a.MinAccuracy,
				Tenant:  a.Tenant,
				Variant: a.Variant, Stream: names[a.Stream],
			},
				func(_ *dataplane.Response, err error) { answers <- err })
		}
		for range w.load {
			<-answers
		}
		p.Close()
		accidents.Wait()
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	})
	return out.Bytes()
}

// generation is that of an app's place at a time.
func (w *world) generation(a serving.AppID, at serving.Time) (g uint32) {
	for _, x := range w.growths {
		if x.At <= at && int(a) < len(x.Growth.Spec.Apps) {
			g = x.Growth.Spec.Apps[a].Generation
		}
	}
	return g
}

// names are the clients' names of the streams that the simulator numbers.
var names = func() map[uint64]string {
	out := map[uint64]string{0: ""}
	for n := range uint64(64) {
		out[dataplane.StreamNumber(named(n))] = named(n)
	}
	return out
}()

func named(stream uint64) string { return fmt.Sprintf("camera %d", stream) }

// renumbered gives the streams of a load the numbers that the data plane gives them.
func renumbered(load []workload.Arrival) []workload.Arrival {
	for k := range load {
		if s := load[k].Stream; s > 0 {
			load[k].Stream = dataplane.StreamNumber(named(s))
		}
	}
	return load
}

// twins are the seeds of the tests below.
func twins() []uint64 { return longtest.Of([]uint64{1, 4}, []uint64{1, 2, 3, 4}) }

// seedsOf are the seeds of the k-th of many compositions. The race detector runs every third with one seed: it watches
// goroutines, which compositions do not change.
func seedsOf(k int) []uint64 {
	if !testing.Short() {
		return twins()
	}
	if k%3 != 0 {
		return nil
	}
	return twins()[k/3%2:][:1]
}

// Simulator and data plane are one system: for every router with every batcher, on random worlds full of ties,
// failures, cancellations and lost workers, both make the same decisions at the same times. Then replay: the recorded
// journal, fed to a fresh engine, gives the same decisions again. SLUICE_SEED runs one seed.
func TestTwin(t *testing.T) {
	var one []uint64
	if s := os.Getenv("SLUICE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		one = []uint64{n}
	}
	k := 0
	for _, router := range systems.Routers() {
		for _, batcher := range systems.BatchersFor(router) {
			seeds := one
			if seeds == nil {
				seeds = seedsOf(k)
			}
			k++
			for _, seed := range seeds {
				t.Run(fmt.Sprintf("%s+%s/seed=%d", router, batcher, seed), func(t *testing.T) {
					w := newWorld(systems.System{Name: "twin", Router: router, Batcher: batcher}, seed)
					a, b := w.simulated(t), w.live(t)
					if !bytes.Equal(eventful(a), eventful(b)) {
						t.Fatalf("seed %d: simulator and data plane differ:\n%s", seed,
							firstDifference(eventful(a), eventful(b)))
					}
					if testing.Short() {
						return // as in sameJournals
					}
					r, err := journal.NewReader(bytes.NewReader(a))
					if err != nil {
						t.Fatal(err)
					}
					d, err := journal.Replay(r, w.engine(), nil)
					if err != nil || d != nil {
						t.Fatalf("seed %d: replay: %v, %v", seed, d, err)
					}
				})
			}
		}
	}
}

// thinking is the time of a plan in both drivers.
const thinking = 3 * time.Millisecond

// slowPlanner waits before it plans.
type slowPlanner struct{ plan.Planner }

func (s slowPlanner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if err := pause(ctx, thinking); err != nil {
		return nil, err
	}
	return s.Planner.Plan(ctx, r)
}

// beliefPlanner plans the placement by the beliefs and the mix of the request, and writes its prices into the plan.
type beliefPlanner struct{ *simtest.Planner }

func (p beliefPlanner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	by := *p.Planner
	by.Planner = static.Planner{Profile: r.Beliefs, Instances: by.Instances}
	made, err := by.Plan(context.Background(), r)
	if err == nil {
		made.Mixes, made.Forecast.CostPerHour = r.Mixes, r.Price(0)
	}
	return made, err
}

// The same with latency that is learned while serving, from measurements or from nothing, with changing prices and
// plans made from all of that: both drivers learn the same, and so does a replay.
func TestTwinLearning(t *testing.T) {
	plans, requests := 0, 0
	for r, router := range systems.Routers() {
		for n, batcher := range []string{"single", "mostaccurate", "adaptive"} {
			for _, seed := range append(seedsOf(r+n), 3) { // with 3, items of a query were too late together
				system := systems.System{Name: "twin", Router: router, Batcher: batcher, Scaler: "mixshift"}
				system.Options.Learn, system.Options.Replan = true, 100*time.Millisecond
				w := newWorld(system, seed)
				w.planner, w.known = beliefPlanner{w.cluster.Planner}, seed%2 == 0
				middle := w.load[len(w.load)/2].At
				w.prices = []sim.PriceChange{
					{At: middle, Price: 0.25}, {At: middle, Price: 0.5}, {At: middle + 5e8, Price: 0.5},
				}
				if !w.known {
					w.header.Measurements = serving.Measurements{}
				}
				a, b := w.simulated(t), w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				requests += bytes.Count(a, []byte("request-plan"))
				plans += bytes.Count(a, []byte(`"k":"plan-ready"`)) - 1
			}
		}
	}
	t.Logf("%d requests, %d plans", requests, plans)
	if plans == 0 {
		t.Error("nothing was planned from what was learned")
	}
}

// The same where batches take three times as long as measured, and plans and drop times follow. Plans drop instances
// with a turn-off delay.
func TestTwinContent(t *testing.T) {
	ballooned, planned := 0, 0
	for _, router := range []string{"weighted", "shortestqueue", "earliestfinish", "matching"} {
		for _, batcher := range []string{"earlydrop", "adaptive", "mostaccurate"} {
			for _, seed := range twins() {
				system := systems.System{Name: "twin", Router: router, Batcher: batcher, Scaler: "complexity"}
				system.Options.Replan = 100 * time.Millisecond
				system.Options.Following = systems.Following{TurnOff: 300 * time.Millisecond, Change: 0.1}
				w := newWorld(system, seed)
				w.planner = w.cluster.Planner
				m := w.cluster.Measurements
				m.Latency = slices.Clone(m.Latency)
				for k := range m.Latency {
					m.Latency[k].P95 *= 3
				}
				var err error
				if w.truth, err = profile.NewTable(w.cluster.Spec, m, profile.P95); err != nil {
					t.Fatal(err)
				}
				a, b := w.simulated(t), w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				ballooned += bytes.Count(a, []byte("ballooning ["))
				planned += bytes.Count(a, []byte(`"k":"plan-ready"`)) - 1
			}
		}
	}
	t.Logf("%d requests with ballooning, %d plans", ballooned, planned)
	if ballooned < 20 || planned < 20 {
		t.Errorf("only %d requests with ballooning and %d plans", ballooned, planned)
	}
}

// The same with apps that scale to zero when idle and are started by calls.
func TestTwinScaling(t *testing.T) {
	let, started, resumed := 0, 0, 0
	for _, router := range []string{"bands", "weighted", "earliestfinish"} {
		for _, batcher := range []string{"filltimeout", "adaptive", "mostaccurate"} {
			for _, seed := range twins() {
				system := systems.System{Name: "twin", Router: router, Batcher: batcher, Scaler: "ratebands"}
				system.Options.Replan = 20 * time.Millisecond
				system.Options.KeepAlive = systems.KeepAliveOptions{Rule: "keepalive", Alive: 30 * time.Millisecond}
				if seed%2 == 0 {
					system.Options.Following.TurnOff = time.Second
				}
				w := newWorld(system, seed)
				for n := range w.load { // bursts with silences between them
					w.load[n].At += serving.Time(n/20) * 15e8
				}
				w.faults, w.cancels, w.planner = nil, nil, w.cluster.Planner
				if seed%2 == 0 { // as if all apps had been called shortly before the start
					for a := range w.cluster.Spec.Apps {
						w.recalls = append(w.recalls, engine.Recalled{
							App: serving.AppID(a), Memory: []byte("keepalive\x00"), Older: time.Millisecond,
							Idle: 5 * time.Millisecond,
						})
					}
				}
				a, b := w.simulated(t), w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				let += bytes.Count(a, []byte("no longer in the plan"))
				started += bytes.Count(a, []byte("launch-instance"))
				resumed += bytes.Count(a, []byte("resume-instance"))
			}
		}
	}
	t.Logf("%d instances were let go, %d started, %d taken up again", let, started, resumed)
	if let < 100 || started < 100 || resumed < 10 {
		t.Errorf("only %d instances were let go, %d started and %d taken up again", let, started, resumed)
	}
}

// sameJournals fails when the journals of simulator and data plane differ, or when a replay through the recorded system
// does, with its invariants checked after every step.
func sameJournals(t *testing.T, what string, a, b []byte) {
	t.Helper()
	if !bytes.Equal(eventful(a), eventful(b)) {
		t.Fatalf("%s: simulator and data plane differ:\n%s", what, firstDifference(eventful(a), eventful(b)))
	}
	if testing.Short() {
		return // a replay has no goroutine for the race detector to watch
	}
	r, err := journal.NewReader(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	e, err := systems.Recorded(r.Header())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := journal.Replay(r, e, func(journal.Step) error { return e.Check() }); err != nil || d != nil {
		t.Fatalf("%s: replay: %v, %v", what, d, err)
	}
}

// eventful leaves out steps without inputs and decisions: the data plane's timers may add some.
func eventful(journal []byte) []byte {
	return emptySteps.ReplaceAll(journal, nil)
}

var emptySteps = regexp.MustCompile(`(?m)^\{"at":\d+\}\n`)

// The same in a world that grows: apps are added, get new versions and are closed while their queries wait.
func TestTwinGrowing(t *testing.T) {
	closed, served := 0, 0
	for r, router := range systems.Routers() {
		for n, batcher := range []string{"single", "mostaccurate", "adaptive", "policytable"} {
			for _, seed := range seedsOf(r + n) {
				system := systems.System{Name: "twin", Router: router, Batcher: batcher}
				system.Options.Learn = seed == 4
				w := newWorld(system, seed)
				rng := rand.New(rand.NewPCG(seed, 9))
				worlds := w.cluster.Grown(rng, 6)
				for k, g := range worlds {
					// Between the microseconds at which queries arrive. Every second growth comes while the loads of
					// the one before are under way.
					at := serving.Time(k/2+1)*serving.Time(1400*time.Millisecond) +
						serving.Time(k%2)*serving.Time(20*time.Millisecond) + 500
					w.growths = append(w.growths, sim.Growth{At: at, Growth: g})
				}
				w.faults = nil
				last := *w.cluster
				last.Spec = worlds[len(worlds)-1].Spec
				w.load = renumbered(last.Load(rng, 300))
				end := w.load[len(w.load)-1].At + 1
				for k := range w.load { // over all of the growth
					w.load[k].At = serving.Time(float64(w.load[k].At)/float64(end)*5e6) * 1000
				}
				planner, err := systems.NewOpen(plan.Known{Profile: w.cluster.Profile}, w.cluster.Spreading)
				if err != nil {
					t.Fatal(err)
				}
				w.planner = planner
				w.truth = worlds[len(worlds)-1].Profile.(*profile.Table)
				a := w.simulated(t)
				known := plan.Known{Profile: w.cluster.Profile}
				if w.planner, err = systems.NewOpen(known, w.cluster.Spreading); err != nil {
					t.Fatal(err)
				}
				b := w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				closed += bytes.Count(a, []byte("the function was deleted"))
				served += bytes.Count(a, []byte(" served by "))
			}
		}
	}
	t.Logf("%d queries served, %d to closed apps", served, closed)
	if served == 0 || closed == 0 {
		t.Error("no query was served, or none came to a closed app")
	}
}

func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range max(len(x), len(y)) {
		at := func(s []string) string {
			if i < len(s) {
				return s[i]
			}
			return "nothing"
		}
		if at(x) != at(y) {
			return fmt.Sprintf("line %d\nsimulated: %.1500s\nlive:      %.1500s", i+1, at(x), at(y))
		}
	}
	return "no line differs"
}
