package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of conditions that the operator writes. Dispatchers write the others.
const (
	// Accepted is false where a resource cannot be used as it is; its message says why.
	Accepted = "Accepted"
	// Ready of a fleet: all of its cells are served.
	Ready = "Ready"
	// WithinBudget of a fleet: its machines cost no more than its budget.
	WithinBudget = "WithinBudget"
	// MachinesAvailable of a fleet: no machine of it stays pending.
	MachinesAvailable = "MachinesAvailable"
	// Available of a machine type: none of its machines stays pending.
	Available = "Available"
)

// condition makes a condition.
func condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// maxMessage bounds messages: the API server takes 32 KiB, and people read less.
const maxMessage = 1000

// merged returns the conditions as they are to be written, with the times of those that stay as they are, and whether
// one of them differs from what is there.
func merged(have, want []metav1.Condition, generation int64) (out []any, differs bool) {
	for _, w := range want {
		if len(w.Message) > maxMessage {
			w.Message = w.Message[:maxMessage]
		}
		w.ObservedGeneration = generation
		w.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
		if h := meta.FindStatusCondition(have, w.Type); h != nil {
			if h.Status == w.Status {
				w.LastTransitionTime = h.LastTransitionTime
			}
			differs = differs || h.Status != w.Status || h.Reason != w.Reason || h.Message != w.Message ||
				h.ObservedGeneration != w.ObservedGeneration
		} else {
			differs = true
		}
		out = append(out, map[string]any{
			"type": w.Type, "status": string(w.Status), "reason": w.Reason, "message": w.Message,
			"observedGeneration": w.ObservedGeneration,
			"lastTransitionTime": w.LastTransitionTime.UTC().Format(time.RFC3339),
		})
	}
	return out, differs
}
