package storm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/controller"
	"github.com/sluice-serving/sluice/operator/internal/fakeworker"
)

// firstPrices are those of machine types in $/h at the beginning, nodes how many there are of each.
var (
	firstPrices = map[string]float64{"small": 1, "large": 2.5}
	nodes       = map[string]int{"small": 6, "large": 3}
)

// latency of a batch.
func latency(items int) time.Duration { return time.Duration(60+40*items) * time.Millisecond }

func quantity(x float64) *apiresource.Quantity {
	q := apiresource.MustParse(fmt.Sprintf("%.3f", x))
	return &q
}

func meta1(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: namespace} }

// world makes the fleet that a storm begins with.
func (w *storm) world() {
	for kind, n := range nodes {
		for k := range n {
			w.machines.addNode(fmt.Sprintf("node-%s-%d", kind, k))
		}
	}
	w.setBudget(8)
	w.create(&v1alpha1.Fleet{ObjectMeta: meta1(fleetName), Spec: v1alpha1.FleetSpec{Dispatchers: 2,
		Budget: quantity(w.budget), PendingTimeout: &metav1.Duration{Duration: 20 * time.Second}}})
	for kind, price := range w.prices {
		memory := apiresource.MustParse("8Gi")
		w.create(&v1alpha1.MachineType{ObjectMeta: meta1(kind), Spec: v1alpha1.MachineTypeSpec{Fleet: fleetName,
			Tenure: v1alpha1.Rented, PricePerHour: quantity(price), Most: int32(nodes[kind]), Cores: 2, Memory: &memory,
			Backend: v1alpha1.BackendFake}})
	}
	for range 3 {
		w.addApp()
	}
}

func (w *storm) create(o client.Object) { must(w.user.Create(context.Background(), o)) }

// addApp makes an app, with what its variant takes on machines.
func (w *storm) addApp() {
	name := fmt.Sprintf("a%d", w.made)
	w.made++
	digest := fmt.Sprintf("%064x", w.made)
	tensors := func(name string) []v1alpha1.Tensor {
		return []v1alpha1.Tensor{{Name: name, DataType: "FP32", Shape: []int64{-1, 1}}}
	}
	memory := apiresource.MustParse("1Gi")
	var latencies []v1alpha1.Latency
	for _, n := range []int{1, 2, 4} {
		d := metav1.Duration{Duration: latency(n)}
		latencies = append(latencies, v1alpha1.Latency{Batch: int32(n), Mean: d, P95: d, Runs: 10})
	}
	now := metav1.Now()
	for kind := range w.prices {
		w.create(&v1alpha1.Profile{ObjectMeta: meta1(name + "-" + kind), Spec: v1alpha1.ProfileSpec{Fleet: fleetName,
			App: name, Variant: "only", MachineType: kind, Model: digest, Measured: &now, Latencies: latencies}})
	}
	w.create(&v1alpha1.InferenceApp{ObjectMeta: meta1(name), Spec: v1alpha1.InferenceAppSpec{Fleet: fleetName,
		Demand: quantity(1 + 9*w.rand.Float64()), Objective: v1alpha1.Objective{Latency: metav1.Duration{
			Duration: 2 * time.Second}},
		Variants: []v1alpha1.Variant{{Name: "only", MaxBatch: 4, Memory: &memory,
			Model: v1alpha1.Model{URI: "https://models.example.org/" + name + ".onnx", SHA256: digest}}},
		Inputs: tensors("x"), Outputs: tensors("y")}})
	w.mu.Lock()
	w.apps = append(w.apps, name)
	w.changedAt[name] = time.Now()
	w.mu.Unlock()
}

func (w *storm) setBudget(x float64) {
	w.budgets = append(w.budgets, limitSince{time.Now(), w.budget})
	w.budget = x
}

// edit changes an object as a user does, until nobody has changed it meanwhile.
func edit[T client.Object](w *storm, name string, o T, how func(T)) {
	for {
		must(w.user.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o))
		how(o)
		if err := w.user.Update(context.Background(), o); err == nil {
			return
		}
	}
}

// later has something happen once a fault is over.
func (w *storm) later(after time.Duration, do func()) {
	w.undo = append(w.undo, undo{time.Now().Add(after), do})
}

// links are those of all processes.
func (w *storm) links() (out []*link) {
	for _, p := range slices.Concat(w.operators, w.dispatchers) {
		out = append(out, p.link)
	}
	return out
}

// weatherAll changes the faults of all links for a while.
func (w *storm) weatherAll(lasts time.Duration, f faults) {
	set := func(f faults) {
		w.faults = f
		for _, l := range w.links() {
			l.set(f)
		}
	}
	set(f)
	w.later(lasts, func() { set(faults{}) })
}

// cutOff cuts processes from the API server for a while.
func (w *storm) cutOff(lasts time.Duration, list ...*process) {
	w.unkind = time.Now().Add(lasts)
	for _, p := range list {
		p.link.set(faults{cut: true})
		p.cutAt = time.Now()
		w.later(lasts, func() { p.link.set(w.faults) })
	}
}

// cutPeers cuts two hosts from each other for a while.
func (w *storm) cutPeers(lasts time.Duration, a, b *process) {
	w.unkind = time.Now().Add(lasts)
	w.net.Cut(a.ip, b.ip)
	w.later(lasts, func() { w.net.Heal(a.ip, b.ip) })
}

// lie has a machine give wrong answers for a while.
func (w *storm) lie(lasts time.Duration, ip string, how fakeworker.Lie) {
	w.machines.workers.Lie(ip, how)
	w.mu.Lock()
	w.lies = time.Now().Add(lasts + time.Minute)
	w.mu.Unlock()
	w.later(lasts, func() { w.machines.workers.Lie(ip, fakeworker.None) })
}

// do has an event happen.
func (w *storm) do(e event) {
	live := w.live()
	pods := w.api.workers()
	some := func(n int) int { return e.number % n }
	switch e.what {
	case "kill an operator":
		w.kill(w.operators[some(2)], false)
	case "cut all from the API server":
		w.cutOff(e.lasts, slices.Concat(w.operators, w.dispatchers)...)
	case "cut the operators from the API server":
		w.cutOff(e.lasts, w.operators...)
	case "slow API server":
		w.weatherAll(e.lasts, faults{slow: time.Duration(e.number) * time.Millisecond})
	case "busy API server":
		w.weatherAll(e.lasts, faults{busy: float64(e.number) / 1000})
	case "lost answers":
		w.weatherAll(e.lasts, faults{lost: float64(e.number) / 1500})
	case "deletions fail":
		w.weatherAll(e.lasts, faults{broken: true})
	case "end watches":
		for _, l := range w.links() {
			l.unwatch()
		}
	case "compact":
		w.api.compact()
		for _, l := range w.links() {
			l.unwatch()
		}
	case "a node vanishes":
		kind := []string{"small", "large"}[some(2)]
		w.machines.vanish(fmt.Sprintf("node-%s-%d", kind, e.number%nodes[kind]))
		w.unkind = time.Now()
	case "a pod crashes":
		if len(pods) > 0 {
			w.machines.crash(pods[some(len(pods))])
		}
	case "change a price":
		kind := []string{"small", "large"}[some(2)]
		w.prices[kind] = firstPrices[kind] * float64(5+e.number%11) / 10
		w.pricedAt = time.Now()
		edit(w, kind, &v1alpha1.MachineType{}, func(m *v1alpha1.MachineType) {
			m.Spec.PricePerHour = quantity(w.prices[kind])
		})
	case "a worker lies":
		if len(pods) > 0 {
			w.lie(e.lasts, pods[some(len(pods))].Status.PodIP, fakeworker.Lie(1+some(int(fakeworker.Lies)-1)))
		}
	case "a clock is set":
		list := slices.Concat(w.operators, live, []*process{w.picker})
		list[some(len(list))].link.fast.Store(int64(time.Duration(e.number-500) * time.Second))
	case "kill the picker":
		w.kill(w.picker, false)
	case "no nodes":
		w.machines.scarce[[]string{"small", "large"}[some(2)]] = time.Now().Add(e.lasts)
	case "slow starts":
		w.machines.slow = time.Now().Add(e.lasts)
	case "add an app":
		if len(w.apps) < 6 {
			w.addApp()
		}
	case "delete an app":
		if len(w.apps) > 1 {
			w.deleteApp(w.apps[some(len(w.apps))])
		}
	case "change an app":
		name := w.apps[some(len(w.apps))]
		edit(w, name, &v1alpha1.InferenceApp{}, func(a *v1alpha1.InferenceApp) {
			a.Spec.Demand = quantity(1 + 20*w.rand.Float64())
			a.Spec.Objective.Latency.Duration = time.Duration(1+w.rand.IntN(4)) * time.Second
		})
	case "change the budget":
		w.setBudget(float64(4 + e.number%12))
		edit(w, fleetName, &v1alpha1.Fleet{}, func(f *v1alpha1.Fleet) { f.Spec.Budget = quantity(w.budget) })
	case "change dispatchers":
		edit(w, fleetName, &v1alpha1.Fleet{}, func(f *v1alpha1.Fleet) { f.Spec.Dispatchers = int32(1 + some(4)) })
	case "change how many machines":
		kind := []string{"small", "large"}[some(2)]
		edit(w, kind, &v1alpha1.MachineType{}, func(m *v1alpha1.MachineType) {
			m.Spec.Most = int32(1 + e.number%nodes[kind])
		})
	case "change a template":
		edit(w, "small", &v1alpha1.MachineType{}, func(m *v1alpha1.MachineType) {
			m.Spec.Image = fmt.Sprintf("sluice:%d", e.number)
		})
	default:
		w.toDispatchers(e, live)
	}
}

// toDispatchers has an event happen to dispatchers.
func (w *storm) toDispatchers(e event, live []*process) {
	if len(live) == 0 {
		return
	}
	k := e.number % len(live)
	p, other := live[k], live[(k+1)%len(live)]
	switch e.what {
	case "kill a dispatcher":
		w.kill(p, false)
	case "a dispatcher's node vanishes":
		w.kill(p, true)
	case "stop a dispatcher":
		w.tell(p)
	case "a burst":
		for range e.number % 100 {
			app := w.apps[k%len(w.apps)]
			w.asked.Go(func() { w.one(p, app) })
		}
	case "cut a dispatcher from the API server":
		w.cutOff(e.lasts, p)
	case "cut two dispatchers":
		if p != other {
			w.cutPeers(e.lasts, p, other)
		}
	case "isolate a dispatcher":
		w.cutOff(e.lasts, p)
		for _, x := range live {
			if x != p {
				w.cutPeers(e.lasts, p, x)
			}
		}
	default:
		panic(e.what)
	}
}

func (w *storm) deleteApp(name string) {
	must(w.user.Delete(context.Background(), &v1alpha1.InferenceApp{ObjectMeta: meta1(name)}))
	w.mu.Lock()
	w.apps = slices.DeleteFunc(slices.Clone(w.apps), func(x string) bool { return x == name })
	w.changedAt[name] = time.Now()
	w.mu.Unlock()
}

// settle waits until all is well after the storm, and checks that it is.
func (w *storm) settle() {
	w.pass(cmp.Or(w.script.calm, calmAfter))
	w.calm = true
	before, were := w.api.count(), w.api.cells()
	const while = 90 * time.Second
	w.pass(while)
	calls := float64(w.api.count()-before) / while.Seconds()
	live, cells := w.live(), w.api.cells()
	if !maps.Equal(were, cells) {
		w.fail("all is calm, and cells have other versions after %v: %v, then %v", while, were, cells)
	}
	if most := float64(10 + 2*len(live) + 2*len(cells)); calls > most {
		w.fail("all is calm, and the API server is asked %v times a second for %d dispatchers and %d cells", calls,
			len(live), len(cells))
	}
	for _, p := range live {
		for _, app := range w.apps {
			w.one(p, app)
		}
	}
	for _, app := range w.apps {
		w.pick(app)
	}
	// A plan may be changing at this moment.
	var wrong []string
	for range 10 {
		if wrong = w.wrong(len(cells)); len(wrong) == 0 {
			return
		}
		w.pass(20 * time.Second)
	}
	for _, text := range wrong {
		w.fail("%s", text)
	}
}

// wrong is what resources do not say as it is, once all is calm.
func (w *storm) wrong(cells int) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	live := w.live()
	ctx := context.Background()
	f := &v1alpha1.Fleet{}
	must(w.user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fleetName}, f))
	if !meta.IsStatusConditionTrue(f.Status.Conditions, controller.Ready) ||
		f.Status.ObservedGeneration != f.Generation {
		say("the fleet says %+v at generation %d", f.Status, f.Generation)
	}
	if len(live) != int(f.Spec.Dispatchers) {
		say("there are %d dispatchers, want %d", len(live), f.Spec.Dispatchers)
	}
	held := make(map[int]string)
	for _, p := range live {
		for _, n := range p.held() {
			held[n] = p.name
		}
	}
	if len(held) != cells {
		say("%d of %d cells are held: %v", len(held), cells, held)
	}
	said, machines := make(map[int]string), int32(0)
	for _, c := range f.Status.Cells {
		said[int(c.Cell)] = c.Holder
		for _, n := range c.Machines {
			machines += n
		}
	}
	if fmt.Sprint(said) != fmt.Sprint(held) {
		say("the fleet says that cells are held so: %v, and they are held so: %v", said, held)
	}
	sum, pods := w.cost()
	if sum > w.budget+1e-6 {
		say("machines cost %v $/h, at a budget of %v: %v", sum, w.budget, names(pods))
	}
	if int(machines) != len(pods) {
		say("the fleet says that it has %d machines, and there are %d: %v", machines, len(pods), names(pods))
	}
	for _, p := range w.api.workers() {
		if p.DeletionTimestamp != nil || len(p.Status.Conditions) == 0 ||
			p.Status.Conditions[0].Status != corev1.ConditionTrue {
			say("the pod %s is %v, deleted %v", p.Name, p.Status.Conditions, p.DeletionTimestamp)
		}
	}
	for _, name := range w.apps {
		a := &v1alpha1.InferenceApp{}
		must(w.user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, a))
		if !meta.IsStatusConditionTrue(a.Status.Conditions, controller.Accepted) {
			say("the app %s says %+v", name, a.Status)
		}
	}
	return out
}
