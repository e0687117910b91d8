package supply

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

const labelMachine = v1alpha1.LabelMachine

// podChanged takes what the watch says of a pod.
func (s *Supply) podChanged(x any, gone bool) {
	p, ok := x.(*corev1.Pod)
	if !ok || p.Labels[v1alpha1.LabelCell] != strconv.Itoa(int(s.c.Machines.Cell)) || p.Labels[labelMachine] == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machine(provider.Worker{Name: p.Labels[labelMachine], DeviceType: p.Labels[v1alpha1.LabelMachineType]})
	if m.pod != nil && m.pod.UID != p.UID && (gone || p.CreationTimestamp.Before(&m.pod.CreationTimestamp)) {
		return // of one that was there before
	}
	if gone {
		p = nil
	} else {
		s.noteFetched(p)
	}
	s.set(m, p)
}

// set has a machine have a pod, or none, and judges what that means. The caller holds mu.
func (s *Supply) set(m *machine, p *corev1.Pod) {
	before := m.pod
	m.pod = p
	close(m.changed)
	m.changed = make(chan struct{})
	other := before != nil && (p == nil || p.UID != before.UID)
	if (other || p != nil && isOver(p)) && m.given {
		why := "its pod is gone"
		if p != nil && isOver(p) {
			why = endedBy(p)
		}
		s.lose(m, why)
	} else if other && m.told != "" { // it was given back, or never given: another one can be had
		m.told = ""
		s.tell(provider.Event{Worker: m.worker.Name, Kind: provider.Staying, Why: "another machine can be had"})
	}
	if other {
		m.rolling = false
		s.roll()
	}
	s.judge(m)
}

// lose tells the watcher that a machine is lost. Nobody wants its pod any more: who wants the machine asks for it
// again. The caller holds mu.
func (s *Supply) lose(m *machine, why string) {
	m.given, m.wanted, m.told, m.asked = false, false, "", time.Time{}
	s.c.Source.claims.set(podName(s.machines, m.worker.Name), s, false)
	s.tell(provider.Event{Worker: m.worker.Name, Kind: provider.Lost, Why: why})
}

// judge tells the watcher when a machine that serves is about to leave, or stays after all. The caller holds mu.
func (s *Supply) judge(m *machine) {
	if !m.given || m.pod == nil || isOver(m.pod) {
		return
	}
	why, within := notice(m.pod, s.nodes[m.pod.Spec.NodeName], time.Now())
	if why == "" && m.rolling {
		why = "its pod is replaced by one of a newer template"
	}
	switch {
	case why != "" && m.told == "":
		m.told = why
		s.tell(provider.Event{Worker: m.worker.Name, Kind: provider.Leaving, Within: within, Why: why})
	case why == "" && m.told != "":
		m.told = ""
		s.tell(provider.Event{
			Worker: m.worker.Name, Kind: provider.Staying, Why: "its node and its pod are well again",
		})
	}
}

// nodeChanged takes what the watch says of a node.
func (s *Supply) nodeChanged(x any, gone bool) {
	n, ok := x.(*corev1.Node)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone {
		delete(s.nodes, n.Name)
	} else {
		s.nodes[n.Name] = n
	}
	for _, m := range s.workers {
		if m.pod == nil || m.pod.Spec.NodeName != n.Name {
			continue
		}
		if gone {
			s.nodeGone(m)
			continue
		}
		s.judge(m)
	}
}

// nodeGone gives a machine up whose node no longer exists. Its pod would stay for about a minute, until the garbage
// collector sees to it; nothing can run there, so it is deleted at once. The caller holds mu.
func (s *Supply) nodeGone(m *machine) {
	p := m.pod
	if m.given {
		s.lose(m, fmt.Sprintf("its node %s is gone", p.Spec.NodeName))
	}
	gone := p.DeepCopy() // until the watch says so, nobody may take it for one that stays
	gone.DeletionTimestamp = ptr.To(metav1.Now())
	s.set(m, gone)
	s.background("the pod of a node that is gone is not deleted", func(ctx context.Context) error {
		return s.delete(ctx, p, 0)
	})
}

// Looks at which a machine without a node is given up, and between two further tries to delete its pod. A pod may be
// seen a moment before its node is.
const (
	nodelessLooks = 2
	nodelessAgain = 5
)

// findNodeless gives machines up whose node does not exist. The watch says so once: whoever begins later does not hear
// of it, and the pod may not have been deleted.
func (s *Supply) findNodeless() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.Source.withoutNodes != nil {
		return
	}
	for _, m := range s.workers {
		if m.pod == nil || m.pod.Spec.NodeName == "" || s.nodes[m.pod.Spec.NodeName] != nil {
			m.nodeless = 0
			continue
		}
		if m.nodeless++; m.nodeless%nodelessAgain == nodelessLooks {
			s.nodeGone(m)
		}
	}
}

// backgroundTimeout bounds what is done beside the calls of Acquire and Release.
const backgroundTimeout = 30 * time.Second

// background does something that needs the API server, outside of mu.
func (s *Supply) background(failed string, f func(context.Context) error) {
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), backgroundTimeout)
		defer cancel()
		if err := f(ctx); err != nil {
			s.log.Warn(failed, "error", err)
		}
	})
}

// roll announces that machines with outdated pods leave, at most maxSurge of a type at a time. The caller holds mu.
func (s *Supply) roll() {
	rolling, all := make(map[string]int), make(map[string]int)
	for _, m := range s.workers {
		if m.pod != nil {
			all[m.worker.DeviceType]++
			if m.rolling {
				rolling[m.worker.DeviceType]++
			}
		}
	}
	for _, m := range s.workers {
		kind := m.worker.DeviceType
		want := s.prints[kind]
		if m.pod == nil || m.rolling || want == "" || m.pod.Annotations[AnnotationTemplate] == want ||
			m.pod.DeletionTimestamp != nil || rolling[kind] >= surge(s.machines.MaxSurge, all[kind]) || !m.given {
			continue
		}
		m.rolling = true
		rolling[kind]++
		s.judge(m)
	}
}

// surge is how many of n machines maxSurge is; at least one, or nothing would ever be replaced.
func surge(text string, n int) int {
	if part, ok := strings.CutSuffix(text, "%"); ok {
		if p, err := strconv.Atoi(part); err == nil {
			return max(int(math.Ceil(float64(n)*float64(p)/100)), 1)
		}
	}
	if x, err := strconv.Atoi(text); err == nil {
		return max(x, 1)
	}
	return 1
}

// lookAgain is the time between two looks for pods of machines that the configuration does not have.
const lookAgain = time.Second

// forgetUnclaimed gives back the pods that nobody wants, such as those that were there at the start and that no plan
// has wanted since. Those of machines that the configuration does not have any more go as soon as no run uses them.
func (s *Supply) forgetUnclaimed() {
	t := time.NewTimer(s.c.Adopt)
	defer t.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for all := false; ; {
		select {
		case <-s.closed:
			return
		case <-t.C:
			all = true
		case <-again.C:
		}
		s.findNodeless()
		for _, p := range s.unclaimed(all) {
			s.log.Info("a machine that was there is given back: no plan wants it", "pod", p.Name)
			ctx, cancel := context.WithTimeout(context.Background(), backgroundTimeout)
			if err := s.delete(ctx, p, releaseGrace); err != nil {
				s.log.Warn("a machine is not given back", "pod", p.Name, "error", err)
			}
			cancel()
		}
	}
}

// unclaimed are the pods that nobody wants: all of them, or those of machines that the configuration does not have.
func (s *Supply) unclaimed(all bool) (out []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, m := range s.workers {
		if m.pod != nil && !m.wanted && m.pod.DeletionTimestamp == nil && (all || !s.configured(name, m)) &&
			!s.c.Source.claims.others(m.pod.Name, s) {
			out = append(out, m.pod)
		}
	}
	return out
}

// configured reports whether the configuration has a machine. The caller holds mu.
func (s *Supply) configured(name string, m *machine) bool {
	kind := m.worker.DeviceType
	n, err := strconv.Atoi(strings.TrimPrefix(name, kind+"-"))
	t, ok := s.machines.Types[kind]
	return ok && err == nil && n < int(t.Most)
}
