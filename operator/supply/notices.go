package supply

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Taints that say that a node will be stopped. Those of effect NoExecute are notices whatever their name, unless the
// pod tolerates them for good.
var stopping = map[string]string{
	"ToBeDeletedByClusterAutoscaler":                         "the cluster autoscaler removes the node",
	"karpenter.sh/disrupted":                                 "Karpenter removes the node",
	"karpenter.sh/disruption":                                "Karpenter removes the node",
	"cloud.google.com/impending-node-termination":            "the cloud stops the node",
	"aws-node-termination-handler/spot-itn":                  "the cloud takes the spot node back",
	"aws-node-termination-handler/scheduled-maintenance":     "the cloud maintains the node",
	"aws-node-termination-handler/asg-lifecycle-termination": "the node's group removes it",
	"aws-node-termination-handler/rebalance-recommendation":  "the cloud expects to take the spot node back",
	"kubernetes.azure.com/scheduledevent":                    "the cloud has an event for the node",
	corev1.TaintNodeUnschedulable:                            "the node is cordoned, as before a drain",
	corev1.TaintNodeUnreachable:                              "the node cannot be reached",
	corev1.TaintNodeNotReady:                                 "the node is not ready",
	corev1.TaintNodeOutOfService:                             "the node is out of service",
}

// notice says why a pod that serves will be stopped soon, and within which time where that is known; "" for none.
func notice(p *corev1.Pod, n *corev1.Node, now time.Time) (why string, within time.Duration) {
	if p.DeletionTimestamp != nil {
		why := "its pod is being deleted"
		if c := condition(p, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
			why = fmt.Sprintf("its pod is being evicted (%s)", c.Reason)
		}
		return why, max(p.DeletionTimestamp.Sub(now), 0)
	}
	if c := condition(p, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		return fmt.Sprintf("its pod will be evicted (%s)", c.Reason), 0
	}
	if n != nil {
		if n.DeletionTimestamp != nil {
			return "its node is being deleted", 0
		}
		for k := range n.Spec.Taints {
			t := &n.Spec.Taints[k]
			known, ok := stopping[t.Key]
			if !ok && t.Effect != corev1.TaintEffectNoExecute || tolerated(p, t) {
				continue
			}
			if !ok {
				known = "the node has the taint " + t.Key
			}
			return fmt.Sprintf("%s (%s)", known, n.Name), 0
		}
		if n.Spec.Unschedulable {
			return fmt.Sprintf("the node is cordoned, as before a drain (%s)", n.Name), 0
		}
	}
	if c := condition(p, corev1.PodReady); c == nil || c.Status != corev1.ConditionTrue {
		return "its pod is not ready any more", 0
	}
	return "", 0
}

// tolerated reports whether a pod stays on a node with a taint for good: one that it tolerates for a while is a notice.
func tolerated(p *corev1.Pod, t *corev1.Taint) bool {
	for k := range p.Spec.Tolerations {
		x := &p.Spec.Tolerations[k]
		if x.TolerationSeconds != nil || x.Key != "" && x.Key != t.Key || x.Effect != "" && x.Effect != t.Effect {
			continue
		}
		if x.Operator == corev1.TolerationOpExists || x.Value == t.Value {
			return true
		}
	}
	return false
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for k := range p.Status.Conditions {
		if p.Status.Conditions[k].Type == kind {
			return &p.Status.Conditions[k]
		}
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	c := condition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue && p.Status.PodIP != ""
}

// isOver reports whether a pod will never run again.
func isOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// waitsFor says what a pod that is not ready waits for, in words.
func waitsFor(p *corev1.Pod) string {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return "no node for it: " + c.Message
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for k := range list {
			if w := list[k].State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return fmt.Sprintf("container %s waits: %s %s", list[k].Name, w.Reason, w.Message)
			}
		}
	}
	return "its pod is not ready"
}

// endedBy says why a pod is over.
func endedBy(p *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for k := range list {
			if x := list[k].State.Terminated; x != nil && x.ExitCode != 0 {
				return fmt.Sprintf("container %s ended with %s, status %d %s", list[k].Name, x.Reason, x.ExitCode,
					x.Message)
			}
		}
	}
	if p.Status.Reason != "" || p.Status.Message != "" {
		return p.Status.Reason + " " + p.Status.Message
	}
	return "its pod ended"
}
