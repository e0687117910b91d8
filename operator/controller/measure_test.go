package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestNewVariantsAreMeasured plays the part of the job controller, and of a pod that has measured.
func TestNewVariantsAreMeasured(t *testing.T) {
	e := newEnv(t, nil)
	a := appNamed("faces")
	large := v1alpha1.Model{URI: "pvc://models/large"}
	a.Spec.Variants = append(a.Spec.Variants, v1alpha1.Variant{Name: "large", Model: large})
	e.create(fleetNamed("default"), machinesNamed("cpu", 3), a)
	e.accepted("faces", metav1.ConditionTrue, "")
	seen := map[string]bool{}
	for _, variant := range []string{"small", "large"} {
		j := e.job(seen)
		seen[j.Name] = true
		args := strings.Join(j.Spec.Template.Spec.Containers[0].Args, " ")
		if !strings.Contains(args, "--model faces."+variant) {
			t.Fatalf("the job measures %s, want %s first", args, variant)
		}
		e.complete(j, `{"latencies":[{"batch":4,"mean":"9ms","p95":"10ms","runs":20},`+
			`{"batch":1,"mean":"3ms","p95":"4ms","runs":50}],"load":"2s",`+
			`"measured":"2026-11-23T12:00:00Z","on":"a processor"}`)
		cluster.Eventually(t, "the profile is there and the job is gone", func() error {
			p := &v1alpha1.Profile{}
			if err := e.get(j.Name, p); err != nil {
				return err
			}
			if s := p.Spec; s.App != "faces" || s.Variant != variant || s.MachineType != "cpu" ||
				len(s.Latencies) != 2 ||
				!strings.HasPrefix(s.Model, "pvc://models/") {
				return fmt.Errorf("it is %+v", s)
			}
			if err := e.get(j.Name, &batchv1.Job{}); err == nil {
				return fmt.Errorf("the job is there")
			} else if client.IgnoreNotFound(err) != nil {
				return err
			}
			return nil
		})
	}
	cluster.Eventually(t, "plans are made with what was measured", func() error {
		m := &corev1.ConfigMap{}
		if err := e.get(cell.Name("default", 0), m); err != nil {
			return err
		}
		if text := m.Data[cell.KeyProfile]; strings.Count(text, `"p95_us":4000`) != 2 {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	var jobs batchv1.JobList
	if err := e.c.Client.List(t.Context(), &jobs, client.InNamespace(e.ns)); err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d jobs are left, %v", len(jobs.Items), err)
	}
}

// job waits for the one Job that was not seen yet.
func (e *env) job(seen map[string]bool) *batchv1.Job {
	e.Helper()
	var found *batchv1.Job
	cluster.Eventually(e, "a job measures", func() error {
		var jobs batchv1.JobList
		if err := e.c.Client.List(e.Context(), &jobs, client.InNamespace(e.ns)); err != nil {
			return err
		}
		if len(jobs.Items) != 1 || seen[jobs.Items[0].Name] {
			return fmt.Errorf("there are %d jobs", len(jobs.Items))
		}
		found = &jobs.Items[0]
		return nil
	})
	return found
}

// complete ends a Job well, with a pod that says what it has measured.
func (e *env) complete(j *batchv1.Job, message string) {
	e.Helper()
	pod := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: *j.Spec.Template.Spec.DeepCopy()}
	pod.Name = j.Name + "-pod"
	pod.Labels[labelJob] = j.Name
	e.create(pod)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "measure", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: message}}}}
	if err := e.c.Client.Status().Update(e.Context(), pod); err != nil {
		e.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue,
			LastTransitionTime: now, LastProbeTime: now})
	}
	if err := e.c.Client.Status().Update(e.Context(), j); err != nil {
		e.Fatal(err)
	}
}
