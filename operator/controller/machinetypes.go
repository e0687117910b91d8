package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlutil "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// machineTypes says how many machines of each type there are, and protects them from being evicted all at once.
type machineTypes struct {
	*applier
	events events.EventRecorder
	mu     sync.Mutex
	wrote  map[types.NamespacedName]time.Time
}

const (
	writeEvery  = time.Second // at most, of one machine type's status
	startsCount = 20          // latest starts whose median is shown
)

func addMachineTypes(m ctrl.Manager) error {
	r := &machineTypes{applier: newApplier(m.GetClient()), events: m.GetEventRecorder(Manager),
		wrote: map[types.NamespacedName]time.Time{}}
	ofType := func(_ context.Context, x client.Object) []reconcile.Request {
		if name := x.GetLabels()[v1alpha1.LabelMachineType]; name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: x.GetNamespace(), Name: name}}}
		}
		return nil
	}
	return ctrl.NewControllerManagedBy(m).Named("machinetype").
		For(&v1alpha1.MachineType{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofType)).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *machineTypes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	wait := writeEvery - time.Since(r.wrote[req.NamespacedName])
	r.mu.Unlock()
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	t := &v1alpha1.MachineType{}
	if err := r.Get(ctx, req.NamespacedName, t); err != nil {
		r.mu.Lock()
		delete(r.wrote, req.NamespacedName)
		r.mu.Unlock()
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(t.Namespace), client.MatchingLabels{
		v1alpha1.LabelMachineType: t.Name, v1alpha1.LabelRole: RoleWorker, v1alpha1.LabelFleet: t.Spec.Fleet,
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	patience := defaultPending
	fleet := &v1alpha1.Fleet{}
	if err := r.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.Fleet}, fleet); err == nil &&
		fleet.Spec.PendingTimeout != nil {
		patience = fleet.Spec.PendingTimeout.Duration
	}
	n := count(pods.Items, time.Now(), patience)
	wrote, err := r.status(ctx, t, n)
	if err != nil {
		return reconcile.Result{}, err
	}
	protected, err := r.protect(ctx, t, n)
	if wrote || protected {
		r.mu.Lock()
		r.wrote[req.NamespacedName] = time.Now()
		r.mu.Unlock()
	}
	return reconcile.Result{RequeueAfter: n.later}, err
}

// defaultPending is Fleet.spec.pendingTimeout's default, for machine types without a fleet.
const defaultPending = 5 * time.Minute

// machines counts the machines of a type.
type machines struct {
	wanted, ready, pending int32
	start                  time.Duration // median of the latest starts; 0 for none
	late                   int32         // pending for longer than the fleet's patience
	why                    string        // one of those is pending
	later                  time.Duration // until the next one will be late; 0 for none
}

// count looks at the pods of a type.
func count(pods []corev1.Pod, now time.Time, patience time.Duration) (n machines) {
	type started struct {
		at   time.Time
		took time.Duration
	}
	var starts []started
	for i := range pods {
		p := &pods[i]
		if !p.DeletionTimestamp.IsZero() || p.Status.Phase == corev1.PodFailed ||
			p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		n.wanted++
		if at, ok := readySince(p); ok {
			n.ready++
			starts = append(starts, started{at, at.Sub(p.CreationTimestamp.Time)})
			continue
		}
		n.pending++
		waited := now.Sub(p.CreationTimestamp.Time)
		if left := patience - waited; left > 0 {
			if n.later == 0 || left < n.later {
				n.later = left
			}
			continue
		}
		n.late++
		if n.why == "" {
			n.why = whyPending(p)
		}
	}
	slices.SortFunc(starts, func(a, b started) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.took, b.took)) })
	starts = starts[:min(len(starts), startsCount)]
	if len(starts) > 0 {
		slices.SortFunc(starts, func(a, b started) int { return cmp.Compare(a.took, b.took) })
		n.start = starts[len(starts)/2].took
	}
	return n
}

// readySince is when a pod became ready.
func readySince(p *corev1.Pod) (time.Time, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// whyPending says in words why a pod is not ready.
func whyPending(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return fmt.Sprintf("container %s waits: %s %s", c.Name, w.Reason, w.Message)
			}
			if x := c.State.Terminated; x != nil && x.ExitCode != 0 {
				return fmt.Sprintf("container %s ended with %d: %s", c.Name, x.ExitCode, cmp.Or(x.Message, x.Reason))
			}
		}
	}
	return fmt.Sprintf("pod %s is not ready", p.Name)
}

// status writes the numbers where they differ.
func (r *machineTypes) status(ctx context.Context, t *v1alpha1.MachineType, n machines) (bool, error) {
	want := condition(Available, true, "Available", "no machine stays pending")
	if n.late > 0 {
		want = condition(Available, false, "Pending", plural(int(n.late), "machine")+" cannot be had: "+n.why)
	}
	conditions, differs := merged(t.Status.Conditions, []metav1.Condition{want}, t.Generation)
	status := map[string]any{
		"observedGeneration": t.Generation, "conditions": conditions, "wanted": int64(n.wanted),
		"ready": int64(n.ready), "pending": int64(n.pending),
	}
	start := t.Status.StartTime // what was learned stays while there are no machines
	if n.start > 0 {
		start = &metav1.Duration{Duration: n.start.Round(100 * time.Millisecond)}
	}
	if start != nil {
		status["startTime"] = start.Duration.String()
	}
	have := &t.Status
	if !differs && have.ObservedGeneration == t.Generation && have.Wanted == n.wanted && have.Ready == n.ready &&
		have.Pending == n.pending &&
		ptr.Deref(have.StartTime, metav1.Duration{}) == ptr.Deref(start, metav1.Duration{}) {
		return false, nil
	}
	if x := meta.FindStatusCondition(have.Conditions, Available); x != nil && x.Status != want.Status {
		kind := corev1.EventTypeNormal
		if n.late > 0 {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(t, nil, kind, want.Reason, "Supply", "%s", want.Message)
	}
	return true, r.applyStatus(ctx, t, status)
}

// protect has at most one machine of a type be evicted at a time: the next one only when its work has moved to another
// that is ready. A number, since the pods belong to no Deployment whose size Kubernetes could ask for.
func (r *machineTypes) protect(ctx context.Context, t *v1alpha1.MachineType, n machines) (bool, error) {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "machines-" + t.Name, Namespace: t.Namespace, Labels: map[string]string{
			v1alpha1.LabelFleet: t.Spec.Fleet, v1alpha1.LabelMachineType: t.Name,
			"app.kubernetes.io/managed-by": Manager,
		}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(max(n.wanted-1, 0))),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				v1alpha1.LabelFleet: t.Spec.Fleet, v1alpha1.LabelMachineType: t.Name, v1alpha1.LabelRole: RoleWorker,
			}},
			// A pod that is not ready serves nothing that could be lost.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
	if err := ctrlutil.SetControllerReference(t, b, r.Scheme()); err != nil {
		return false, err
	}
	return r.apply(ctx, b, &policyv1.PodDisruptionBudget{})
}
