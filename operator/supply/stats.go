package supply

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// startsKept is how many starts of a type are kept.
const startsKept = 20

// counts are what is learned of a machine type.
type counts struct {
	there, bought []time.Duration // how long machines took whose node was there, and whose node came for them
}

// Stats is what a cell knows of a machine type.
type Stats struct {
	Wanted  int // machines that plans in force have asked for
	Ready   int // of them, those that serve
	Pending int // of them, those that wait for a node
	// Start is the median of the last starts, NodeThere of those whose node was there, NodeBought of those whose node
	// came for them; 0 where there were none.
	Start, NodeThere, NodeBought time.Duration
	// Missing says why no machine can be had now; "" where one can be.
	Missing string
}

// started notes how long a machine took. The caller holds mu.
func (s *Supply) started(kind string, took time.Duration, n *corev1.Node, p *corev1.Pod) {
	c := s.stats[kind]
	if c == nil {
		c = &counts{}
		s.stats[kind] = c
	}
	list := &c.there
	if n != nil && p.CreationTimestamp.Before(&n.CreationTimestamp) {
		list = &c.bought
	}
	*list = append(*list, took)
	if len(*list) > startsKept {
		*list = slices.Delete(*list, 0, 1)
	}
}

// Starts is how long machines took to come, by type, of types of which some came.
func (s *Supply) Starts() map[string]time.Duration {
	out := make(map[string]time.Duration)
	for kind, x := range s.Stats() {
		if x.Start > 0 {
			out[kind] = x.Start
		}
	}
	return out
}

// Stats returns what is known of each machine type.
func (s *Supply) Stats() map[string]Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]Stats)
	for kind := range s.machines.Types {
		x := Stats{}
		if c := s.stats[kind]; c != nil {
			x.NodeThere, x.NodeBought = median(c.there), median(c.bought)
			x.Start = median(append(slices.Clone(c.there), c.bought...))
		}
		if none := s.missing[kind]; none.until.After(time.Now()) {
			x.Missing = none.why
		}
		out[kind] = x
	}
	for _, m := range s.workers {
		x, ok := out[m.worker.DeviceType]
		if !ok {
			continue
		}
		if m.wanted {
			x.Wanted++
		}
		switch {
		case m.pod == nil || isOver(m.pod) || m.pod.DeletionTimestamp != nil:
		case isReady(m.pod):
			x.Ready++
		case m.pod.Spec.NodeName == "":
			x.Pending++
		}
		out[m.worker.DeviceType] = x
	}
	return out
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// noteFetched notes the models that a pod's init step could not fetch: its termination message lists them. The caller
// holds mu.
func (s *Supply) noteFetched(p *corev1.Pod) {
	for k := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[k]
		if c.Name != fetcherName || c.State.Terminated == nil || c.State.Terminated.Message == "" {
			continue
		}
		var said struct {
			Failed map[string]string `json:"failed"`
		}
		if json.Unmarshal([]byte(c.State.Terminated.Message), &said) != nil {
			continue
		}
		for model, why := range said.Failed {
			if _, ok := s.machines.Models[model]; ok { // of those there are: pods do not decide how many are kept
				s.unhad[model] = why
			}
		}
	}
}

// Unfetched says why models could not be fetched by the init step of a machine's pod, by their names on servers. Some
// may have been fetched since.
func (s *Supply) Unfetched() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.unhad)
}
