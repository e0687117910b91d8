package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-serving/sluice/internal/memnet"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/fakeworker"
	"github.com/sluice-serving/sluice/operator/kinds"
	"github.com/sluice-serving/sluice/operator/picker"
)

const (
	namespace = "storm"
	fleetName = "f"
	outside   = "10.9.0.1" // where clients are
)

// Times of a storm.
const (
	askWithin   = time.Minute      // for a query: it may wait for a dispatcher, and be passed on
	calmAfter   = 6 * time.Minute  // from the last fault, until all is well
	overlapMost = 15 * time.Second // for which two dispatchers that others reach may both hold a cell
	stopWithin  = 2 * time.Minute  // for a dispatcher that is told to stop
	unkindFor   = 90 * time.Second // after a kill or a cut, queries may be lost
	overMost    = 6 * time.Minute  // for which machines may cost more than the budget, while plans change
)

// counts is what came of storms.
type counts struct{ Queries, Served, Starts, Machines, Calls int }

func (c *counts) add(x counts) {
	c.Queries, c.Served, c.Starts = c.Queries+x.Queries, c.Served+x.Served, c.Starts+x.Starts
	c.Machines, c.Calls = c.Machines+x.Machines, c.Calls+x.Calls
}

// storm is a run of a script. These must hold:
//   - each query is answered in time, by the app that it names, and none is lost but around a process that is killed or
//     cut off;
//   - no two dispatchers that others reach hold a cell for longer than it takes to notice;
//   - a dispatcher that is told to stop ends, and nothing is left of it;
//   - machines cost more than the budget only while one plan follows another;
//   - no answer of a machine that gives wrong ones reaches a client;
//   - a picker that reaches the API server names no machine for long that is gone;
//   - once faults are over, every app answers at every dispatcher and where the picker says, cells are held by those
//     that live, statuses say what there is, there are as many machines as plans want, within the budget, none of
//     them of an app or cell that is gone, and the API server is asked for as little as nothing changes.
type storm struct {
	script      *script
	api         *apiServer
	net         *memnet.Network
	machines    *machines
	user        client.Client
	client      *http.Client
	rand        *rand.Rand
	operators   []*process
	dispatchers []*process
	picker      *process
	table       picker.Server        // what the picker says
	stale       map[string]time.Time // since when the picker names an address that nobody has
	lies        time.Time            // until when a machine may give wrong answers
	count       int                  // of processes so far
	faults      faults               // of all links
	apps        []string
	changedAt   map[string]time.Time // when an app was made, changed or deleted
	made        int                  // apps so far
	prices      map[string]float64   // of machine types, $/h
	pricedAt    time.Time            // when one changed
	budget      float64
	budgets     []limitSince
	overlaps    map[int]time.Time // since when a cell has two holders
	overSince   time.Time
	unkind      time.Time // of the latest kill or cut
	begun       time.Time
	undo        []undo
	asked       sync.WaitGroup
	log         kept
	calm        bool

	mu     sync.Mutex
	counts counts
	failed []string
}

type undo struct {
	at time.Time
	do func()
}

type limitSince struct {
	at     time.Time
	budget float64
}

// kept is the end of a log.
type kept struct {
	mu  sync.Mutex
	log []byte
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, p...)
	if over := len(k.log) - 1<<20; over > 0 {
		k.log = k.log[over:]
	}
	return len(p), nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *storm) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failed) < 5 {
		w.failed = append(w.failed, fmt.Sprintf("after %v: ", time.Since(w.begun).Round(time.Millisecond))+
			fmt.Sprintf(format, args...))
	}
}

// ride runs a script and returns how it failed, "" for not at all.
func ride(s *script) (counts, string) {
	scheme, err := kinds.Scheme()
	must(err)
	api, network := newAPIServer(scheme), memnet.New()
	w := &storm{script: s, api: api, net: network, rand: rand.New(rand.NewPCG(s.seed, 2)), begun: time.Now(),
		changedAt: make(map[string]time.Time), overlaps: make(map[int]time.Time),
		stale: make(map[string]time.Time), prices: maps.Clone(firstPrices)}
	w.machines = &machines{api: api, net: network, rand: w.rand, pods: make(map[types.UID]*pod),
		scarce: make(map[string]time.Time), back: make(map[string]time.Time),
		workers: fakeworker.New(func(items int64) time.Duration { return latency(int(items)) })}
	w.user, err = client.New(newLink(api, s.seed).config(), client.Options{Scheme: scheme})
	must(err)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (
		net.Conn, error) {
		return network.Dial(ctx, outside, address)
	}}
	w.client = &http.Client{Transport: transport}
	w.world()
	for range 2 {
		w.operators = append(w.operators, w.operator())
	}
	w.picker = w.startPicker()
	w.pass(time.Minute)
	begun := time.Now()
	for _, e := range s.events {
		w.pass(time.Until(begun.Add(e.at)))
		if len(w.failed) > 0 {
			break
		}
		w.do(e)
	}
	w.pass(45 * time.Second) // until the last fault is over
	if len(w.failed) == 0 {
		w.settle()
	}
	w.end()
	w.counts.Calls = api.count()
	if len(w.failed) > 0 && os.Getenv("SLUICE_STORM") != "" {
		w.tellAll()
	}
	return w.counts, strings.Join(w.failed, "\n")
}

// tellAll writes the dispatchers' log and the resources into a file.
func (w *storm) tellAll() {
	for _, r := range resources {
		for key, o := range w.api.objects[r] {
			if r.gvk.Group != v1alpha1.GroupVersion.Group && r.plural != "pods" && r.plural != "configmaps" {
				continue
			}
			x := o.DeepCopyObject().(client.Object)
			x.SetManagedFields(nil)
			b, err := yaml.Marshal(x)
			must(err)
			_, _ = fmt.Fprintf(&w.log, "--- %s %s\n%s", r.plural, key.Name, b)
		}
	}
	must(os.WriteFile(fmt.Sprintf("storm-%d.log", w.script.seed), w.log.log, 0o600))
}

// pass lets time go by, with all that happens by itself.
func (w *storm) pass(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		w.step()
		time.Sleep(min(poll, time.Until(until)))
	}
}

func (w *storm) step() {
	now := time.Now()
	w.undo = slices.DeleteFunc(w.undo, func(u undo) bool {
		if now.Before(u.at) {
			return false
		}
		u.do()
		return true
	})
	w.machines.step()
	w.deploy()
	if tick := now.Sub(w.begun) / poll; tick%8 == 0 {
		w.probe()
	}
	w.query()
	w.watchHolders()
	w.watchBudget()
	w.watchPicker()
}

// deploy has as many processes as there are to be, as the Deployments' controller does.
func (w *storm) deploy() {
	w.api.mu.Lock()
	want := 0
	for _, o := range w.api.objects[kindOf("deployments")] {
		want += int(*o.(*appsv1.Deployment).Spec.Replicas)
	}
	w.api.mu.Unlock()
	w.dispatchers = slices.DeleteFunc(w.dispatchers, func(p *process) bool { return p.over() })
	for k, p := range w.operators {
		if p.killed || p.over() {
			w.operators[k] = w.operator()
		}
	}
	if w.picker.killed || w.picker.over() {
		w.picker = w.startPicker()
	}
	live := w.live()
	for k := len(live); k < want; k++ {
		w.dispatchers = append(w.dispatchers, w.dispatcher())
	}
	for k := want; k < len(live); k++ {
		w.tell(live[k])
	}
	w.api.setDispatchers(w.dispatchers)
}

// live are the dispatchers that are to go on.
func (w *storm) live() (out []*process) {
	for _, p := range w.dispatchers {
		if !p.killed && !p.told && !p.over() {
			out = append(out, p)
		}
	}
	return out
}

// tell has a dispatcher stop.
func (w *storm) tell(p *process) {
	p.told = true
	p.stop()
	w.asked.Go(func() {
		select {
		case <-p.ended:
		case <-time.After(stopWithin):
			if !p.killed {
				w.fail("%s was told to stop and has not ended after %v", p.name, stopWithin)
			}
		}
	})
}

// query sends a query through the fleet's service.
func (w *storm) query() {
	var ready []*process
	for _, p := range w.dispatchers {
		if !p.killed && !p.told && !p.over() && p.ready.Load() {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 || len(w.apps) == 0 || w.rand.IntN(2) == 0 {
		return
	}
	p, app := ready[w.rand.IntN(len(ready))], w.apps[w.rand.IntN(len(w.apps))]
	w.asked.Go(func() { w.one(p, app) })
}

const question = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`

// one sends a query to a dispatcher.
func (w *storm) one(p *process, app string) {
	sent := time.Now()
	ctx, done := context.WithTimeout(context.Background(), askWithin)
	defer done()
	code, text := w.ask(ctx, "http://"+p.ip+":8000/v2/models/"+app+"/infer", strings.NewReader(question))
	w.mu.Lock()
	w.counts.Queries++
	if code == http.StatusOK {
		w.counts.Served++
	}
	lied := sent.Before(w.lies)
	kind := p.killed || p.told || sent.Sub(w.unkind) < unkindFor
	known := sent.Sub(w.changedAt[app]) > time.Minute
	w.mu.Unlock()
	switch {
	case code == http.StatusOK:
		var answer struct {
			Name    string `json:"model_name"`
			Outputs []struct {
				Name, Datatype string
				Data           []float64
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Name != app || len(answer.Outputs) != 1 ||
			answer.Outputs[0].Name != "y" || answer.Outputs[0].Datatype != "FP32" ||
			!slices.Equal(answer.Outputs[0].Data, []float64{1}) {
			w.fail("a query of %s to %s has the answer %.200s", app, p.name, text)
		}
	case code == 0 && !kind:
		w.fail("a query of %s to %s has no answer after %v: %s", app, p.name, time.Since(sent), text)
	case code == http.StatusInternalServerError && !lied:
		w.fail("a query of %s to %s: %s", app, p.name, text)
	case code == http.StatusNotFound && known && !kind && slices.Contains(w.apps, app):
		w.fail("a query of %s to %s: %s", app, p.name, text)
	case strings.Contains(text, "was lost before it answered") && !kind:
		w.fail("a query of %s to %s was lost though no process was: %s", app, p.name, text)
	case w.calm:
		w.fail("all is calm, and a query of %s to %s has the answer %d: %.300s", app, p.name, code, text)
	}
}

// isolated reports whether a dispatcher reaches nobody whom it knows and who reaches the API server, so that it cannot
// know that others, such as one that has started since, have taken its cells.
func (w *storm) isolated(p *process) bool {
	for _, x := range w.live() {
		if x != p && x.begun.Before(p.cutAt) && !x.link.now().cut && !w.net.IsCut(p.ip, x.ip) {
			return false
		}
	}
	return p.link.now().cut
}

// watchHolders looks whether a cell has two holders.
func (w *storm) watchHolders() {
	holders := make(map[int][]string)
	for _, p := range w.dispatchers {
		if p.killed || p.over() || w.isolated(p) {
			continue
		}
		for _, n := range p.held() {
			holders[n] = append(holders[n], p.name)
		}
	}
	for n := range w.overlaps {
		if len(holders[n]) < 2 {
			delete(w.overlaps, n)
		}
	}
	for n, list := range holders {
		switch since, is := w.overlaps[n]; {
		case len(list) < 2:
		case !is:
			w.overlaps[n] = time.Now()
		case time.Since(since) > overlapMost:
			w.fail("cell %d has the holders %v for %v", n, list, time.Since(since))
			w.overlaps[n] = time.Now()
		}
	}
}

// cost is the price of the machines that are not given back.
func (w *storm) cost() (sum float64, list []*corev1.Pod) {
	for _, p := range w.api.workers() {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
			sum += w.prices[p.Labels[v1alpha1.LabelMachineType]]
			list = append(list, p)
		}
	}
	return sum, list
}

// watchBudget looks whether machines cost too much for long.
func (w *storm) watchBudget() {
	now := time.Now()
	sum, list := w.cost()
	w.counts.Machines = max(w.counts.Machines, len(list))
	if sum <= w.budget+1e-6 {
		w.overSince = time.Time{}
	} else if w.overSince.IsZero() {
		w.overSince = now
	}
	most := w.budget
	for _, b := range w.budgets {
		if now.Sub(b.at) < overMost {
			most = max(most, b.budget)
		}
	}
	switch {
	case sum > 2*most+1e-6 && now.Sub(w.pricedAt) > overMost:
		w.fail("machines cost %v $/h at a budget of %v, at most %v lately: %v", sum, w.budget, most, names(list))
	case !w.overSince.IsZero() && now.Sub(w.overSince) > overMost:
		w.fail("machines cost %v $/h for %v at a budget of %v: %v", sum, now.Sub(w.overSince), w.budget, names(list))
		w.overSince = now
	}
}

func names(list []*corev1.Pod) (out []string) {
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out
}

// end stops all processes.
func (w *storm) end() {
	for _, u := range w.undo {
		u.do()
	}
	for _, p := range slices.Concat(w.operators, w.dispatchers, []*process{w.picker}) {
		p.stop()
	}
	for _, p := range slices.Concat(w.operators, w.dispatchers, []*process{w.picker}) {
		for begun := time.Now(); !p.over() && time.Since(begun) < 5*time.Minute; {
			w.machines.step()
			time.Sleep(poll)
		}
		if !p.over() {
			w.fail("%s has not ended", p.name)
			p.link.kill()
		}
	}
	w.asked.Wait()
	for _, p := range w.machines.pods {
		w.machines.end(p, false)
	}
	w.client.CloseIdleConnections()
}
