package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestServing tells the life of a fleet: it is installed, an app comes from nothing to answering, and queries go on
// while what can happen happens. Steps are in one test since each needs the state before it.
func TestServing(t *testing.T) {
	p := install(t, 3)
	c := newCaller(p)
	p.create(fleet(2), machines("cpu", 3), p.app("triple", 3))
	c.answers("triple", 3, 6)

	t.Log("an app is scaled by hand: plans keep as many instances, although the load needs one")
	p.kubectl("", "scale", "inferenceapp/triple", "-n", p.ns, "--replicas=2")
	p.instances("triple", 2)
	p.kubectl("", "scale", "inferenceapp/triple", "-n", p.ns, "--replicas=0")

	t.Log("a second app comes")
	p.create(p.app("double", 2))
	c.answers("double", 2, 4)
	p.healthy("triple", "double")
	l := c.load(20, "triple", "double")
	l.more(p, 40)
	t.Log("both models are measured, while they are served")
	p.measured("triple", "double")

	t.Log("a machine is evicted")
	worker := p.pods("worker")[0]
	cluster.Eventually(t, "the eviction is taken", func() error {
		return p.c.Client.SubResource("eviction").Create(t.Context(), &worker, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: worker.Name, Namespace: worker.Namespace},
		})
	})
	p.gone(&worker)
	l.more(p, 40)

	t.Log("a dispatcher is killed")
	victim := p.pods("dispatcher")[0]
	if err := p.c.Client.Delete(t.Context(), &victim, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	l.more(p, 80)
	cluster.Eventually(t, "another dispatcher comes", func() error {
		if n := len(p.pods("dispatcher")); n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})

	t.Log("the API server is gone for a while")
	p.c.StopAPI()
	l.more(p, 100)
	if err := p.c.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.more(p, 40)

	t.Log("the operator is restarted")
	p.kubectl("", "rollout", "restart", "-n", "sluice-system", "deployment/sluice-operator")
	p.kubectl("", "rollout", "status", "-n", "sluice-system", "deployment/sluice-operator", "--timeout=5m")
	l.more(p, 40)

	l.stop()
	t.Logf("%d sent, %d answered, %d sent again, %d lost", l.sent.Load(), l.answered.Load(), l.again.Load(),
		l.lost.Load())
	if l.lost.Load() > 0 {
		t.Errorf("%d queries were lost, the first with: %v", l.lost.Load(), *l.first.Load())
	}

	t.Log("an app is deleted, the other is served on")
	l = c.load(20, "triple")
	gone := &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: "double", Namespace: p.ns}}
	if err := p.c.Client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the app that was deleted is not known", func() error {
		if _, err := c.ask(t.Context(), "double"); err == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	l.more(p, 60)
	l.stop()
	if l.lost.Load() > 0 {
		t.Errorf("%d queries of another app were lost, the first with: %v", l.lost.Load(), *l.first.Load())
	}
}

// healthy waits until the status of apps says that they are served.
func (p *place) healthy(apps ...string) {
	p.Helper()
	for _, name := range apps {
		cluster.Eventually(p, "app "+name+" says that it is ready", func() error {
			a := &v1alpha1.InferenceApp{}
			if err := p.c.Client.Get(p.Context(), client.ObjectKey{Namespace: p.ns, Name: name}, a); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(a.Status.Conditions, "Accepted") {
				return fmt.Errorf("conditions are %+v", a.Status.Conditions)
			}
			return nil
		})
	}
}

// instances waits until an app has that many.
func (p *place) instances(app string, least int32) {
	p.Helper()
	cluster.Eventually(p, fmt.Sprintf("app %s has %d instances", app, least), func() error {
		a := &v1alpha1.InferenceApp{}
		if err := p.c.Client.Get(p.Context(), client.ObjectKey{Namespace: p.ns, Name: app}, a); err != nil {
			return err
		}
		if a.Status.Instances < least {
			return fmt.Errorf("it has %d", a.Status.Instances)
		}
		return nil
	})
}

// measured waits until profiles of apps' models are there.
func (p *place) measured(apps ...string) {
	p.Helper()
	cluster.Eventually(p, "the models are measured", func() error {
		var list v1alpha1.ProfileList
		if err := p.c.Client.List(p.Context(), &list, client.InNamespace(p.ns)); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, x := range list.Items {
			if x.Spec.Measured != nil && len(x.Spec.Latencies) > 1 {
				seen[x.Spec.App] = true
			}
		}
		for _, name := range apps {
			if !seen[name] {
				return fmt.Errorf("profiles are of %v", seen)
			}
		}
		return nil
	})
}

// gone waits until a pod is no more.
func (p *place) gone(pod *corev1.Pod) {
	p.Helper()
	cluster.Eventually(p, "pod "+pod.Name+" is gone", func() error {
		now := &corev1.Pod{}
		ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
		defer cancel()
		err := p.c.Client.Get(ctx, client.ObjectKeyFromObject(pod), now)
		if err == nil && now.UID == pod.UID {
			return fmt.Errorf("it is %s", now.Status.Phase)
		}
		return client.IgnoreNotFound(err)
	})
}
