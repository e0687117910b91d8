package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// believed is what the profiles of these scenarios say that a query takes: ten a second fill a machine in every plan,
// though the models take far less here.
const believed = 100 * time.Millisecond

// TestScenarios has plans change under load: the load grows, the budget binds, a machine type runs out, an app goes,
// and a second fleet comes, with an app that is too much for one dispatcher. All share a cluster and a fleet that is
// asked all the while, and lose no query. It takes minutes, so it runs in the long form of the tests only.
func TestScenarios(t *testing.T) {
	if os.Getenv("SLUICE_LONG") == "" {
		t.Skip("make kube-scenarios runs it")
	}
	p := install(t, 3)
	f := fleet(1)
	f.Spec.Options = map[string]string{"learn": "false"}
	f.Spec.PendingTimeout = &metav1.Duration{Duration: 5 * time.Second}
	triple := p.app("triple", 3)
	triple.Spec.Demand = quantity("5")
	p.create(f, machines("cpu", 6), p.believes(triple, "cpu"), triple)
	c := newCaller(p)
	c.answers("triple", 3, 6)
	l := c.load(5, "triple")
	l.more(p, 20)
	for _, x := range []struct {
		name string
		run  func(*place)
	}{
		{"Plans", func(p *place) { p.plansChange(f, triple) }},
		{"AppGoes", (*place).appGoes},
		{"SecondFleet", (*place).secondFleet},
	} {
		t.Run(x.name, func(t *testing.T) {
			q := *p
			q.T = t
			x.run(&q)
		})
	}
	l.more(p, 20)
	l.stop()
	noneLost(t, l)
	t.Logf("of the app that was asked all the while: %d sent, %d answered, %d sent again", l.sent.Load(),
		l.answered.Load(), l.again.Load())
}

// plansChange has the load of an app grow, the budget bind, and a cheaper machine type be announced of which there is
// none.
func (p *place) plansChange(f *v1alpha1.Fleet, triple *v1alpha1.InferenceApp) {
	c := newCaller(p)
	if err := c.look(p.Context()); err != nil {
		p.Fatal(err)
	}
	before := len(p.pods("worker"))
	more := c.load(20, triple.Name)
	p.workers("the load grows fivefold, and machines come", func(n int) bool { return n > before && n >= 3 })
	more.more(p, 40)

	p.Log("a budget for two machines binds")
	p.merge(f, `{"spec":{"budget":"0.2"}}`)
	p.workers("machines are given back", func(n int) bool { return n > 0 && n <= 2 })
	p.says("the plan lacks something", triple, "Planned", metav1.ConditionFalse)
	p.says("the budget is kept", f, "WithinBudget", metav1.ConditionTrue)
	more.more(p, 40)
	p.merge(f, `{"spec":{"budget":null}}`)
	p.workers("machines come again", func(n int) bool { return n >= 3 })
	p.says("the plan carries the demand", triple, "Planned", metav1.ConditionTrue)

	p.Log("a cheaper type is announced of which there is none")
	cheap := machines("cheap", 6)
	cheap.Spec.PricePerHour, cheap.Spec.NodeSelector = quantity("0.01"), map[string]string{"type": "none"}
	p.create(cheap, p.believes(triple, "cheap"))
	p.says("the type cannot be had", cheap, "Available", metav1.ConditionFalse)
	more.more(p, 100)
	p.workers("the other type's machines stay", func(n int) bool { return n >= 3 })
	if err := p.c.Client.Delete(p.Context(), cheap); err != nil {
		p.Fatal(err)
	}
	more.stop()
	noneLost(p.T, more)
}

// appGoes deletes an app while it is asked.
func (p *place) appGoes() {
	double := p.app("double", 2)
	p.create(p.believes(double, "cpu"), double)
	c := newCaller(p)
	c.answers("double", 2, 4)
	asked := c.load(10, "double")
	asked.more(p, 20)
	if err := p.c.Client.Delete(p.Context(), double); err != nil {
		p.Fatal(err)
	}
	cluster.Eventually(p, "the app is not known any more", func() error {
		if asked.lost.Load() == 0 {
			return errors.New("it answers")
		}
		return nil
	})
	asked.stop()
	if first := *asked.first.Load(); !strings.Contains(first.Error(), "404") {
		p.Errorf("a query of an app that was deleted failed with %v, want that it is not known", first)
	}
	if ended := asked.answered.Load() + asked.lost.Load(); ended != asked.sent.Load() {
		p.Errorf("%d queries of %d have an end", ended, asked.sent.Load())
	}
}

// secondFleet makes a fleet beside the first whose app has more queries than one dispatcher is given, sends some, and
// deletes the fleet.
func (p *place) secondFleet() {
	f := fleet(2)
	f.Name, f.Spec.DispatcherRate, f.Spec.Options = "second", 10, map[string]string{"learn": "false"}
	kind := machines("cpu2", 4)
	large := p.app("large", 5)
	kind.Spec.Fleet, large.Spec.Fleet, large.Spec.Demand = f.Name, f.Name, quantity("16")
	profile := p.believes(large, kind.Name)
	profile.Spec.Fleet = f.Name
	p.create(f, kind, profile, large)
	for n := range int32(2) {
		cluster.Eventually(p, "each cell has half of the app", func() error {
			m := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: p.ns, Name: cell.Name(f.Name, n)}
			if err := p.c.Client.Get(p.Context(), key, m); err != nil {
				return err
			}
			made, err := cell.Decode(m.Data[cell.KeyMachines])
			if err == nil && made.Shares.Of(large.Name) != 0.5 {
				err = fmt.Errorf("cell %d has %v of it", n, made.Shares.Of(large.Name))
			}
			return err
		})
	}
	cluster.Eventually(p, "both cells have machines of their own", func() error {
		now := &v1alpha1.Fleet{}
		if err := p.c.Client.Get(p.Context(), client.ObjectKeyFromObject(f), now); err != nil {
			return err
		}
		for _, x := range now.Status.Cells {
			if x.Machines[kind.Name] < 1 || !slices.Equal(x.Apps, []string{large.Name}) {
				return fmt.Errorf("cell %d has %v for %v", x.Cell, x.Machines, x.Apps)
			}
		}
		if len(now.Status.Cells) != 2 {
			return fmt.Errorf("the cells are %+v", now.Status.Cells)
		}
		return nil
	})
	c := newCaller(p)
	c.service = f.Name
	c.answers(large.Name, 5, 10)
	l := c.load(16, large.Name)
	l.more(p, 200)
	cluster.Eventually(p, "the status has the rate of the whole app", func() error {
		now := &v1alpha1.InferenceApp{}
		if err := p.c.Client.Get(p.Context(), client.ObjectKeyFromObject(large), now); err != nil {
			return err
		}
		var rate float64
		if _, err := fmt.Sscan(now.Status.Rate, &rate); err != nil || rate < 12 {
			return fmt.Errorf("it is %q", now.Status.Rate)
		}
		return nil
	})
	l.stop()
	noneLost(p.T, l)
	by := p.answeredBy(f.Name)
	p.Logf("of %d queries, by cell: %v", l.answered.Load(), by)
	for n := range 2 {
		// Half each, by chance: less than a fifth is out of the question.
		if by[fmt.Sprint(n)] < float64(l.answered.Load())/5 {
			p.Errorf("cell %d has answered %v queries of %d", n, by[fmt.Sprint(n)], l.answered.Load())
		}
	}
	for _, x := range p.pods("worker") {
		if of := x.Labels[v1alpha1.LabelFleet]; !strings.HasPrefix(x.Name, of+"-c") {
			p.Errorf("pod %s is of fleet %s", x.Name, of)
		}
	}
	p.Log("the fleet has one dispatcher less")
	p.merge(f, `{"spec":{"dispatchers":1}}`)
	cluster.Eventually(p, "the second cell is gone, and its machines with it", func() error {
		now := &v1alpha1.Fleet{}
		if err := p.c.Client.Get(p.Context(), client.ObjectKeyFromObject(f), now); err != nil {
			return err
		}
		if len(now.Status.Cells) != 1 {
			return fmt.Errorf("the fleet says that it has the cells %+v", now.Status.Cells)
		}
		for _, x := range p.pods("worker") {
			if x.Labels[v1alpha1.LabelFleet] == f.Name && x.Labels[v1alpha1.LabelCell] == "1" {
				return fmt.Errorf("pod %s is there", x.Name)
			}
		}
		return nil
	})
	if err := p.c.Client.Delete(p.Context(), f); err != nil {
		p.Fatal(err)
	}
	cluster.Eventually(p, "its pods are gone", func() error {
		for _, role := range []string{"dispatcher", "worker"} {
			for _, x := range p.pods(role) {
				if x.Labels[v1alpha1.LabelFleet] == f.Name {
					return fmt.Errorf("pod %s is there", x.Name)
				}
			}
		}
		return nil
	})
}

// answeredBy counts the queries that the dispatchers of a fleet have answered, by cell.
func (p *place) answeredBy(fleet string) map[string]float64 {
	p.Helper()
	out := map[string]float64{}
	for _, x := range p.pods("dispatcher") {
		if x.Labels[v1alpha1.LabelFleet] != fleet {
			continue
		}
		for _, m := range p.metric(&x, "sluice_dispatcher_queries_total") {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["how"] != "passed" { // who it is passed to counts it
				out[labels["cell"]] += m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// metric reads a series of a dispatcher.
func (p *place) metric(pod *corev1.Pod, name string) []*dto.Metric {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(pod.Status.PodIP, "8002")+"/metrics", nil)
	if err != nil {
		p.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		p.Fatal(err)
	}
	return all[name].GetMetric()
}

// believes is a profile of an app's only variant.
func (p *place) believes(a *v1alpha1.InferenceApp, kind string) *v1alpha1.Profile {
	now := metav1.Now()
	took, twice := metav1.Duration{Duration: believed}, metav1.Duration{Duration: 2 * believed}
	return &v1alpha1.Profile{ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-" + kind}, Spec: v1alpha1.ProfileSpec{
		App: a.Name, Variant: "only", MachineType: kind, Model: a.Spec.Variants[0].Model.URI, Measured: &now,
		Latencies: []v1alpha1.Latency{{Batch: 1, Mean: took, P95: took, Runs: 10},
			{Batch: 2, Mean: twice, P95: twice, Runs: 10}},
	}}
}

// merge changes fields of an object.
func (p *place) merge(o client.Object, patch string) {
	p.Helper()
	raw := client.RawPatch("application/merge-patch+json", []byte(patch))
	if err := p.c.Client.Patch(p.Context(), o, raw); err != nil {
		p.Fatal(err)
	}
}

// workers waits for a number of machines that are ready.
func (p *place) workers(what string, want func(n int) bool) {
	p.Helper()
	cluster.Eventually(p, what, func() error {
		if n := len(p.pods("worker")); !want(n) {
			return fmt.Errorf("%d are ready", n)
		}
		return nil
	})
}

// says waits for a condition of a resource.
func (p *place) says(what string, o client.Object, kind string, status metav1.ConditionStatus) {
	p.Helper()
	cluster.Eventually(p, what, func() error {
		if err := p.c.Client.Get(p.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		var list []metav1.Condition
		switch x := o.(type) {
		case *v1alpha1.InferenceApp:
			list = x.Status.Conditions
		case *v1alpha1.Fleet:
			list = x.Status.Conditions
		case *v1alpha1.MachineType:
			list = x.Status.Conditions
		}
		if c := meta.FindStatusCondition(list, kind); c == nil || c.Status != status {
			return fmt.Errorf("%s is %+v", kind, c)
		}
		return nil
	})
}

func noneLost(t *testing.T, l *load) {
	t.Helper()
	if n := l.lost.Load(); n > 0 {
		t.Errorf("%d queries of %d were lost, the first with: %v", n, l.sent.Load(), *l.first.Load())
	}
}
