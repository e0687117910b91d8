package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// pod is a pod that runs, or is about to.
type pod struct {
	k       *Kubelet
	uid     types.UID
	node    string
	spec    *corev1.Pod // as it was first seen
	address netip.Addr
	netns   string
	folder  string // volumes

	ctx  context.Context // ends when the pod is to be killed
	kill context.CancelFunc

	mu       sync.Mutex
	ending   chan struct{} // closed when the pod is to end gracefully
	grace    time.Duration
	started  metav1.Time
	statuses map[string]corev1.ContainerStatus // of containers and init containers
	ready    map[string]bool
}

func newPod(k *Kubelet, node string, spec *corev1.Pod) *pod {
	p := &pod{k: k, uid: spec.UID, node: node, spec: spec.DeepCopy(), ending: make(chan struct{}),
		statuses: map[string]corev1.ContainerStatus{}, ready: map[string]bool{}, started: metav1.Now()}
	p.ctx, p.kill = context.WithCancel(k.ctx)
	p.folder = filepath.Join(k.c.Folder, "pods", string(spec.UID))
	return p
}

// end begins the graceful end.
func (p *pod) end(seen *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ending:
		return
	default:
	}
	p.grace = 30 * time.Second
	if s := seen.DeletionGracePeriodSeconds; s != nil {
		p.grace = time.Duration(*s) * time.Second
	}
	close(p.ending)
}

// run runs the pod until it has ended.
func (p *pod) run() {
	defer p.k.forget(p)
	defer os.RemoveAll(p.folder)
	phase, why := p.live()
	p.mu.Lock()
	died := p.ctx.Err() != nil
	p.mu.Unlock()
	if p.netns != "" {
		detach(p.netns)
	}
	if died {
		return // a node that is gone says nothing
	}
	p.report(phase, why)
	select {
	case <-p.ending:
		p.k.finish(p.spec)
	default:
	}
}

// live runs the containers and returns how the pod ended.
func (p *pod) live() (corev1.PodPhase, string) {
	if err := p.prepare(); err != nil {
		return corev1.PodFailed, err.Error()
	}
	p.report(corev1.PodPending, "")
	ended := make(chan struct{})
	defer close(ended)
	go p.renew(ended)
	for i := range p.spec.Spec.InitContainers {
		c := &p.spec.Spec.InitContainers[i]
		for {
			code, message := p.container(c, true)
			if p.over() {
				return corev1.PodFailed, "the pod was deleted"
			}
			if code == 0 {
				break
			}
			if p.spec.Spec.RestartPolicy == corev1.RestartPolicyNever {
				return corev1.PodFailed, fmt.Sprintf("init container %s: %s", c.Name, message)
			}
			p.pause(time.Second)
		}
	}
	p.report(corev1.PodRunning, "")
	var wait sync.WaitGroup
	var mu sync.Mutex
	worst := 0
	for i := range p.spec.Spec.Containers {
		c := &p.spec.Spec.Containers[i]
		wait.Go(func() {
			for again := time.Second; ; again = min(2*again, 10*time.Second) {
				code, _ := p.container(c, false)
				policy := p.spec.Spec.RestartPolicy
				if p.over() || policy == corev1.RestartPolicyNever ||
					policy == corev1.RestartPolicyOnFailure && code == 0 {
					mu.Lock()
					worst = max(worst, code)
					mu.Unlock()
					return
				}
				p.pause(again)
			}
		})
	}
	wait.Wait()
	if worst != 0 {
		return corev1.PodFailed, ""
	}
	return corev1.PodSucceeded, ""
}

// over reports whether the pod is to end.
func (p *pod) over() bool {
	select {
	case <-p.ending:
		return true
	case <-p.ctx.Done():
		return true
	default:
		return false
	}
}

func (p *pod) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ending:
	case <-p.ctx.Done():
	}
}

// prepare gives the pod its network and its volumes.
func (p *pod) prepare() (err error) {
	if p.address, err = p.k.address(); err != nil {
		return err
	}
	b := p.address.As4()
	p.netns = fmt.Sprintf("sluice-%x", b)
	if err = attach(p.netns, p.k.bridge, p.address, p.k.c.Addresses); err != nil {
		return err
	}
	return p.volumes()
}

// isReady reports whether all containers are ready.
func (p *pod) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.spec.Spec.Containers {
		if !p.ready[p.spec.Spec.Containers[i].Name] {
			return false
		}
	}
	return true
}

// report writes the pod's status.
func (p *pod) report(phase corev1.PodPhase, why string) {
	p.mu.Lock()
	status := corev1.PodStatus{Phase: phase, Message: why, PodIP: p.address.String(), HostIP: p.k.Gateway().String(),
		StartTime: &p.started}
	initialized, all := true, true
	for i := range p.spec.Spec.InitContainers {
		s := p.statusOf(&p.spec.Spec.InitContainers[i])
		initialized = initialized && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	for i := range p.spec.Spec.Containers {
		s := p.statusOf(&p.spec.Spec.Containers[i])
		all = all && s.Ready
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	p.mu.Unlock()
	if !p.address.IsValid() {
		status.PodIP = ""
	} else {
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
		status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	}
	want := map[corev1.PodConditionType]bool{corev1.PodInitialized: initialized, corev1.ContainersReady: all,
		corev1.PodReady: all && phase == corev1.PodRunning, corev1.PodScheduled: true}
	// A conflict is read again; while the API server is gone the next change reports all of it.
	_ = retry.OnError(retry.DefaultBackoff,
		func(err error) bool { return !apierrors.IsNotFound(err) && p.ctx.Err() == nil },
		func() error {
			ctx, cancel := context.WithTimeout(p.k.ctx, 10*time.Second)
			defer cancel()
			now, err := p.k.api.CoreV1().Pods(p.spec.Namespace).Get(ctx, p.spec.Name, metav1.GetOptions{})
			if err != nil || now.UID != p.uid {
				return client(err)
			}
			status.QOSClass = now.Status.QOSClass
			status.Conditions = now.Status.Conditions
			for _, kind := range []corev1.PodConditionType{
				corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
			} {
				setCondition(&status, kind, want[kind])
			}
			now.Status = status
			_, err = p.k.api.CoreV1().Pods(p.spec.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
			return err
		})
}

// client hides that a pod is gone.
func client(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.Now()
			}
			return
		}
	}
	s.Conditions = append(s.Conditions,
		corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
}

// statusOf returns the status of a container. The caller holds mu.
func (p *pod) statusOf(c *corev1.Container) corev1.ContainerStatus {
	s, ok := p.statuses[c.Name]
	if !ok {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	s.Name, s.Image = c.Name, c.Image
	s.Ready = p.ready[c.Name] || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	return s
}
