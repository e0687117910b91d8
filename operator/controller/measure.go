package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlutil "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/render"
	"github.com/sluice-serving/sluice/operator/supply"
)

// annotationMeasured has, on a measuring Job, what it measures, as JSON.
const annotationMeasured = "sluice.dev/measures"

// labelJob is on the pods of a Job.
const labelJob = "batch.kubernetes.io/job-name"

// measured is what a Job measures.
type measured struct {
	render.Pair
	Model string // that is measured: digest or URI
}

// measure has variants measured on machine types where nobody has: by a Job on a machine of the type, one at a time of
// each type. What is served meanwhile is planned with beliefs. A Job that fails stays, and is not tried again before
// the model is another.
func (r *fleets) measure(ctx context.Context, f *fleet, d *decision) error {
	var jobs batchv1.JobList
	if err := r.List(ctx, &jobs, client.InNamespace(f.Namespace),
		client.MatchingLabels{v1alpha1.LabelFleet: f.Name, v1alpha1.LabelRole: RoleMeasure}); err != nil {
		return err
	}
	var errs []error
	there := map[string]*batchv1.Job{}
	busy := map[string]bool{} // machine types
	for i := range jobs.Items {
		j := &jobs.Items[i]
		there[j.Name] = j
		switch {
		case finished(j, batchv1.JobComplete):
			errs = append(errs, r.keep(ctx, f, j))
		case !finished(j, batchv1.JobFailed):
			busy[j.Labels[v1alpha1.LabelMachineType]] = true
		}
	}
	wanted := map[string]bool{}
	for at, made := range d.cells {
		for _, p := range made.Believed {
			t := typeOf(f, p.MachineType)
			a, v := variantOf(f, p)
			if t == nil || v == nil || t.Spec.Backend != v1alpha1.BackendSluice {
				continue // parts of machines, and what others run
			}
			what := measured{p, render.ModelOf(&v.Model)}
			name := jobName(f.Name, what)
			wanted[name] = true
			if there[name] != nil || busy[t.Name] {
				continue
			}
			err := r.beginMeasuring(ctx, f, d.cells[at].Machines, name, what, v.MaxBatch)
			if err == nil {
				busy[t.Name] = true
				r.events.Eventf(a, nil, corev1.EventTypeNormal, "Measuring", "Measure", "variant %s is measured on %s",
					p.Variant, p.MachineType)
			}
			errs = append(errs, err)
		}
	}
	for name, j := range there {
		// Of what is no more, or was measured.
		if !wanted[name] && j.DeletionTimestamp == nil && !finished(j, batchv1.JobComplete) {
			errs = append(errs, r.removeJob(ctx, j))
		}
	}
	return errors.Join(errs...)
}

func typeOf(f *fleet, name string) *v1alpha1.MachineType {
	at := slices.IndexFunc(f.types, func(t *v1alpha1.MachineType) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	return f.types[at]
}

func variantOf(f *fleet, p render.Pair) (*v1alpha1.InferenceApp, *v1alpha1.Variant) {
	for _, a := range f.apps {
		if a.Name != p.App {
			continue
		}
		list := a.Spec.Variants
		for i := range a.Spec.Stages {
			if a.Spec.Stages[i].Name == p.Stage {
				list = a.Spec.Stages[i].Variants
			}
		}
		for i := range list {
			if list[i].Name == p.Variant {
				return a, &list[i]
			}
		}
	}
	return nil, nil
}

// jobName is the name of the Job that measures something, and of the Profile that comes of it.
func jobName(fleet string, what measured) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		what.App, what.Stage, what.Variant, what.MachineType, what.Model}, "\n")))
	return fmt.Sprintf("%s-measure-%s", fleet, hex.EncodeToString(sum[:])[:12])
}

func finished(j *batchv1.Job, how batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == how && c.Status == corev1.ConditionTrue
	})
}

func (r *fleets) beginMeasuring(ctx context.Context, f *fleet, m *cell.Machines, name string, what measured,
	maxBatch int32) error {
	pod, err := supply.MeasuringPod(m, what.MachineType, cell.ModelName(what.App, what.Stage, what.Variant), maxBatch)
	if err != nil {
		return err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	labels := labelsOf(f, RoleMeasure)
	labels[v1alpha1.LabelMachineType] = what.MachineType
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace, Labels: labels,
			Annotations: map[string]string{annotationMeasured: string(text)}},
		Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](1), Template: *pod,
			ActiveDeadlineSeconds: ptr.To(int64(r.o.MeasureTimeout.Seconds()))},
	}
	if err := ctrlutil.SetControllerReference(f.Fleet, j, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, j); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// keep makes a Profile of what a Job has measured, and removes the Job.
func (r *fleets) keep(ctx context.Context, f *fleet, j *batchv1.Job) error {
	if j.DeletionTimestamp != nil {
		return nil
	}
	var what measured
	if err := json.Unmarshal([]byte(j.Annotations[annotationMeasured]), &what); err != nil {
		return r.removeJob(ctx, j) // somebody has changed it: measured again
	}
	spec, err := r.result(ctx, j)
	if err != nil {
		if _, again := r.told.LoadOrStore(j.UID, true); !again {
			r.events.Eventf(f.Fleet, j, corev1.EventTypeWarning, "NotMeasured", "Measure", "job %s: %v", j.Name, err)
		}
		return nil
	}
	spec.Fleet, spec.App, spec.Stage, spec.Variant = f.Name, what.App, what.Stage, what.Variant
	spec.MachineType, spec.Model = what.MachineType, what.Model
	p := &v1alpha1.Profile{ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: f.Namespace, Labels: labelsOf(f, "")},
		Spec: *spec}
	if err := ctrlutil.SetControllerReference(f.Fleet, p, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	r.events.Eventf(f.Fleet, p, corev1.EventTypeNormal, "Measured", "Measure",
		"variant %s of app %s takes %v on %s (batch of %d)", what.Variant, what.App, spec.Latencies[0].Mean.Duration,
		what.MachineType, spec.Latencies[0].Batch)
	return r.removeJob(ctx, j)
}

// result is the termination message of a Job's pod.
func (r *fleets) result(ctx context.Context, j *batchv1.Job) (*v1alpha1.ProfileSpec, error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(j.Namespace), client.MatchingLabels{labelJob: j.Name}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			t := c.State.Terminated
			if t == nil || t.ExitCode != 0 || t.Message == "" {
				continue
			}
			var spec v1alpha1.ProfileSpec
			if err := json.Unmarshal([]byte(t.Message), &spec); err != nil {
				return nil, fmt.Errorf("what it wrote is no result: %w", err)
			}
			if len(spec.Latencies) == 0 {
				return nil, errors.New("its result has no latencies")
			}
			slices.SortFunc(spec.Latencies, func(a, b v1alpha1.Latency) int { return cmp.Compare(a.Batch, b.Batch) })
			return &spec, nil
		}
	}
	return nil, errors.New("no pod of it says what was measured")
}

// removeJob deletes a Job with its pods.
func (r *fleets) removeJob(ctx context.Context, j *batchv1.Job) error {
	return client.IgnoreNotFound(r.Delete(ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
