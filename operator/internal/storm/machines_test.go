package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/memnet"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/fakeworker"
	"github.com/sluice-serving/sluice/operator/supply"
)

// machines are the nodes of a cluster with their pods of workers: scheduler, kubelets and what runs in the pods.
type machines struct {
	api     *apiServer
	net     *memnet.Network
	rand    *rand.Rand
	workers *fakeworker.Workers
	scarce  map[string]time.Time // until when no pod of a type gets a node
	slow    time.Time            // until when pods take long to start
	pods    map[types.UID]*pod
	back    map[string]time.Time // when a node comes back that has gone
	last    int                  // address given
}

// pod is what a node does with a pod.
type pod struct {
	name    string
	ip      string
	node    string
	ready   time.Time // when it is to be ready; zero without a node
	placed  time.Time // when the scheduler looks at it
	removed time.Time // when it has ended, once it is being deleted
	server  *grpc.Server
}

const poll = 250 * time.Millisecond

func kindOf(name string) *resource {
	return resources[slices.IndexFunc(resources, func(r *resource) bool { return r.plural == name })]
}

// addNode has a node join.
func (m *machines) addNode(name string) {
	s := m.api
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{of: kindOf("nodes"), key: types.NamespacedName{Name: name}}
	if s.objects[c.of][c.key] != nil {
		return
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	n.SetGroupVersionKind(c.of.gvk)
	s.begin(c, n)
	s.put(c, nil, n)
}

// vanish has a node be gone from one moment to the next, with what runs on it.
func (m *machines) vanish(name string) {
	m.api.mu.Lock()
	c := call{of: kindOf("nodes"), key: types.NamespacedName{Name: name}}
	if o := m.api.objects[c.of][c.key]; o != nil {
		m.api.put(c, o, nil)
	}
	m.api.mu.Unlock()
	m.back[name] = time.Now().Add(time.Duration(20+m.rand.IntN(60)) * time.Second)
	for _, p := range m.pods {
		if p.node == name {
			m.end(p, true)
		}
	}
}

// end stops what runs in a pod.
func (m *machines) end(p *pod, vanishes bool) {
	if p.server != nil {
		m.net.Kill(p.ip, vanishes)
		p.server.Stop()
		p.server = nil
	}
}

// list are the pods of workers.
func (s *apiServer) workers() (out []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects[kindOf("pods")] {
		if p := o.(*corev1.Pod); p.Labels[v1alpha1.LabelRole] == supply.RoleWorker {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return slices.Compare([]byte(a.UID), []byte(b.UID)) })
	return out
}

// change has a pod be another, if it is still the same version; nil removes it.
func (s *apiServer) change(before *corev1.Pod, edit func(*corev1.Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{of: kindOf("pods"), key: client.ObjectKeyFromObject(before)}
	if s.objects[c.of][c.key] != client.Object(before) {
		return
	}
	if edit == nil {
		s.put(c, before, nil)
		return
	}
	p := before.DeepCopy()
	edit(p)
	s.put(c, before, p)
}

// node is a free node of a type; "" for none.
func (m *machines) node(kind string) string {
	taken := make(map[string]bool)
	for _, p := range m.pods {
		taken[p.node] = true
	}
	s := m.api
	s.mu.Lock()
	defer s.mu.Unlock()
	free := ""
	for key := range s.objects[kindOf("nodes")] {
		if k, _ := typeOf(key.Name); k == kind && !taken[key.Name] && (free == "" || key.Name < free) {
			free = key.Name
		}
	}
	return free
}

func typeOf(node string) (kind string, n int) {
	_, err := fmt.Sscanf(node, "node-%5s-%d", &kind, &n)
	must(err)
	return kind, n
}

// step does what is due now.
func (m *machines) step() {
	now := time.Now()
	for name, at := range m.back {
		if now.After(at) {
			delete(m.back, name)
			m.addNode(name)
			for _, p := range m.api.workers() { // what ran there before does not run any more
				if x := m.pods[p.UID]; x != nil && x.node == name {
					m.api.change(p, failed)
				}
			}
		}
	}
	there := make(map[types.UID]bool)
	for _, p := range m.api.workers() {
		there[p.UID] = true
		m.one(p, now)
	}
	for uid, p := range m.pods {
		if !there[uid] {
			m.end(p, false)
			delete(m.pods, uid)
		}
	}
	m.api.collect()
}

// one does what is due of a pod.
func (m *machines) one(p *corev1.Pod, now time.Time) {
	x := m.pods[p.UID]
	if x == nil {
		x = &pod{name: p.Name, placed: now.Add(time.Duration(m.rand.IntN(2000)) * time.Millisecond)}
		m.pods[p.UID] = x
	}
	kind := p.Labels[v1alpha1.LabelMachineType]
	_, gone := m.back[x.node]
	switch {
	case gone && x.node != "":
		if x.removed.IsZero() {
			x.removed = now.Add(time.Minute) // the garbage collector of pods
		} else if now.After(x.removed) {
			m.api.change(p, nil)
		}
	case p.DeletionTimestamp != nil:
		if x.removed.IsZero() {
			x.removed = now.Add(time.Duration(500+m.rand.IntN(3000)) * time.Millisecond)
		} else if now.After(x.removed) || now.After(p.DeletionTimestamp.Time) {
			m.end(x, false)
			m.api.change(p, nil)
		}
	case x.node == "" && now.After(x.placed):
		free := m.node(kind)
		if now.Before(m.scarce[kind]) || free == "" {
			if len(p.Status.Conditions) == 0 {
				m.api.change(p, func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled,
						Status: corev1.ConditionFalse, Message: "0 nodes are available"}}
				})
			}
			return
		}
		x.node = free
		x.ready = now.Add(time.Duration(1000+m.rand.IntN(4000)) * time.Millisecond)
		if now.Before(m.slow) {
			x.ready = x.ready.Add(40 * time.Second)
		}
		m.api.change(p, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = free, nil })
	case x.node != "" && x.ip == "" && now.After(x.ready):
		m.start(p, x)
	}
}

// start runs a worker in a pod.
func (m *machines) start(p *corev1.Pod, x *pod) {
	m.last++
	x.ip = fmt.Sprintf("10.1.%d.%d", m.last/250, 1+m.last%250)
	l, err := m.net.Listen(x.ip, fmt.Sprintf(":%d", supply.PortGRPC))
	must(err)
	x.server = grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(x.server, m.workers)
	server := x.server
	go func() { _ = server.Serve(l) }()
	m.api.change(p, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, x.ip
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}}
	})
}

// crash has the container of a pod end.
func (m *machines) crash(p *corev1.Pod) {
	if x := m.pods[p.UID]; x != nil && x.ip != "" {
		m.end(x, false)
		m.api.change(p, failed)
	}
}

func failed(p *corev1.Pod) {
	p.Status.Phase = corev1.PodFailed
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}
