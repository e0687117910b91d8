package dispatcher_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// makeApp makes the resource of an app. What it says of variants is not read here: the cell's configuration is.
func (f *fleet) makeApp(name string) {
	f.t.Helper()
	percentile := resource.MustParse("95")
	a := &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: v1alpha1.InferenceAppSpec{Fleet: fleetName,
			Objective: v1alpha1.Objective{
				Latency: metav1.Duration{Duration: 200 * time.Millisecond}, Percentile: &percentile},
			Variants: []v1alpha1.Variant{{Name: name + "-v", Model: v1alpha1.Model{URI: "file:///models/" + name}}}}}
	if err := f.c.Client.Create(f.t.Context(), a); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) app(name string) *v1alpha1.InferenceApp {
	f.t.Helper()
	a := &v1alpha1.InferenceApp{}
	if err := f.c.Client.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, a); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// TestStatusSaysHowAppsDo serves an app under load and reads its status; then another replica goes on with it. Without
// anything new nothing is written.
func TestStatusSaysHowAppsDo(t *testing.T) {
	f := newFleet(t, cluster.Start(t, cluster.Options{}))
	if err := f.c.Client.Create(t.Context(), &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace,
		Name: fleetName}}); err != nil {
		t.Fatal(err)
	}
	f.makeApp("a0")
	f.makeApp("idle")
	f.setCell(0, fakeCell(3, "a0", "idle"))
	first := f.start("d0", nil)
	f.served(1, 1, "a0")
	l := startLoad(t, f, 100, "a0")
	cluster.Eventually(t, "the status shows the load", func() error {
		s := f.app("a0").Status
		seen, err := strconv.ParseFloat(s.Rate, 64)
		switch {
		case err != nil || seen < 50 || seen > 150:
			return fmt.Errorf("the rate is %q", s.Rate)
		case !meta.IsStatusConditionTrue(s.Conditions, "Ready") || !meta.IsStatusConditionTrue(s.Conditions, "Planned"):
			return fmt.Errorf("the conditions are %v", s.Conditions)
		case meta.FindStatusCondition(s.Conditions, "ObjectiveMet") == nil:
			return fmt.Errorf("nothing is said of the objective: %v", s.Conditions)
		case s.Machines < 1 || s.Instances < 1 || s.Accuracy != "0.9" || s.CostPerHour == "" || s.Violations == "":
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	l.finish("an app whose status is read")
	cluster.Eventually(t, "the fleet's status has the cell", func() error {
		x := &v1alpha1.Fleet{}
		if err := f.c.Client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: fleetName},
			x); err != nil {
			return err
		}
		if len(x.Status.Cells) != 1 {
			return fmt.Errorf("it has %+v", x.Status.Cells)
		}
		c := x.Status.Cells[0]
		if c.Holder != "d0" || !slices.Equal(c.Apps, []string{"a0", "idle"}) || c.Machines["d"] < 1 || c.Plan == "" {
			return fmt.Errorf("the cell is %+v", c)
		}
		return nil
	})
	second := f.start("d1", nil)
	f.served(1, 1, "a0")
	first.stop(t)
	f.served(1, 1, "a0")
	cluster.Eventually(t, "the other replica goes on with the status", func() error {
		x := &v1alpha1.Fleet{}
		if err := f.c.Client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: fleetName},
			x); err != nil {
			return err
		}
		if len(x.Status.Cells) != 1 || x.Status.Cells[0].Holder != second.name {
			return fmt.Errorf("it has %+v", x.Status.Cells)
		}
		return nil
	})
	f.setCell(0, fakeCell(1, "a0", "idle")+"nonsense: true\n")
	cluster.Eventually(t, "an event tells of a configuration that is refused", func() error {
		var list corev1.EventList
		if err := f.c.Client.List(t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var have []string
		for _, e := range list.Items {
			if e.Reason == "ConfigurationRefused" && e.InvolvedObject.Kind == "Fleet" {
				return nil
			}
			have = append(have, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("the events are %q", have)
	})
}
