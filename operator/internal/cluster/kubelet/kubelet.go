package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// Config is what a kubelet needs.
type Config struct {
	// API is a client that may do everything.
	API *rest.Config
	// Port of the API server on this machine, which pods reach at the address of their gateway.
	Port string
	// Programs is the folder with the programs of images, by the last part of a container's command.
	Programs string
	// Environment is added to that of every container, as NAME=VALUE: what an image would set.
	Environment []string
	// Addresses are the range that pods have theirs of; the first is the gateway's.
	Addresses netip.Prefix
	// Folder is where volumes and logs lie.
	Folder string
}

// Kubelet runs the pods of its nodes.
type Kubelet struct {
	c      Config
	api    *kubernetes.Clientset
	bridge string

	mu      sync.Mutex
	next    netip.Addr
	free    []netip.Addr
	nodes   map[string]*node
	pods    map[types.UID]*pod
	tasks   sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
	stopped bool
}

// node is one of its nodes.
type node struct {
	name  string
	stop  context.CancelFunc
	death bool // it is to look as if it had lost its power
}

// heartbeat is how often a node says that it lives.
const heartbeat = 2 * time.Second

// New makes the network that pods are attached to. Close removes it.
func New(c Config) (*Kubelet, error) {
	api, err := kubernetes.NewForConfig(c.API)
	if err != nil {
		return nil, err
	}
	gateway := c.Addresses.Addr().Next()
	k := &Kubelet{c: c, api: api, nodes: map[string]*node{}, pods: map[types.UID]*pod{}, next: gateway.Next(),
		bridge: "sl" + fmt.Sprintf("%x", gateway.As4())}
	k.ctx, k.stop = context.WithCancel(context.Background())
	_ = ip("link", "del", k.bridge) // of a run before
	for _, args := range [][]string{
		{"link", "add", k.bridge, "type", "bridge"},
		{"addr", "add", netip.PrefixFrom(gateway, c.Addresses.Bits()).String(), "dev", k.bridge},
		{"link", "set", k.bridge, "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(c.Folder, "logs"), 0o755); err != nil {
		return nil, err
	}
	return k, nil
}

// Gateway is the address at which pods reach this machine.
func (k *Kubelet) Gateway() netip.Addr { return k.c.Addresses.Addr().Next() }

// Logs is the folder of the containers' outputs, NAMESPACE_POD_CONTAINER.log.
func (k *Kubelet) Logs() string { return filepath.Join(k.c.Folder, "logs") }

// AddNode registers a node and runs what is scheduled to it.
func (k *Kubelet) AddNode(ctx context.Context, name string, labels map[string]string,
	capacity corev1.ResourceList) error {
	own := map[string]string{corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		"sluice.dev/node": "processes"}
	for key, v := range labels {
		own[key] = v
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	for key, q := range capacity {
		has[key] = q
	}
	now := metav1.Now()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own},
		Status: corev1.NodeStatus{
			Capacity: has, Allocatable: has,
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.Gateway().String()}},
			Conditions: []corev1.NodeCondition{ready(now)},
		},
	}
	if _, err := k.api.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	running, stop := context.WithCancel(k.ctx)
	it := &node{name: name, stop: stop}
	k.mu.Lock()
	k.nodes[name] = it
	k.mu.Unlock()
	k.tasks.Go(func() { k.live(running, it) })
	k.tasks.Go(func() { k.follow(running, it) })
	return nil
}

func ready(now metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "pods are processes", LastHeartbeatTime: now, LastTransitionTime: now}
}

// KillNode has a node be gone at once: its processes die, and nobody says so.
func (k *Kubelet) KillNode(name string) {
	k.mu.Lock()
	n := k.nodes[name]
	delete(k.nodes, name)
	var mine []*pod
	for _, p := range k.pods {
		if p.node == name {
			mine = append(mine, p)
		}
	}
	if n != nil {
		n.death = true
	}
	k.mu.Unlock()
	if n != nil {
		n.stop()
	}
	for _, p := range mine {
		p.kill()
	}
}

// live renews a node's lease and keeps it ready.
func (k *Kubelet) live(ctx context.Context, n *node) {
	leases := k.api.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds := int32(40)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		now := metav1.NewMicroTime(time.Now())
		l, err := leases.Get(ctx, n.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, _ = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds,
					RenewTime: &now}},
				metav1.CreateOptions{}) // the next beat tries again
		case err == nil:
			l.Spec.RenewTime = &now
			_, _ = leases.Update(ctx, l, metav1.UpdateOptions{}) // as above
		}
		if x, err := k.api.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{}); err == nil && !isReady(x) {
			x.Status.Conditions = []corev1.NodeCondition{ready(metav1.Now())}
			_, _ = k.api.CoreV1().Nodes().UpdateStatus(ctx, x, metav1.UpdateOptions{}) // as above
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// follow runs the pods of a node.
func (k *Kubelet) follow(ctx context.Context, n *node) {
	from := toolscache.NewListWatchFromClient(k.api.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", n.name))
	_, c := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: from, ObjectType: &corev1.Pod{},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(x any) { k.see(n, x) },
			UpdateFunc: func(_, x any) { k.see(n, x) },
			DeleteFunc: func(x any) {
				if gone, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
					x = gone.Obj
				}
				if p, ok := x.(*corev1.Pod); ok {
					k.gone(p.UID)
				}
			},
		},
	})
	c.RunWithContext(ctx)
}

// see starts a pod that is new, and ends one that is to be deleted.
func (k *Kubelet) see(n *node, x any) {
	seen, ok := x.(*corev1.Pod)
	if !ok || seen.Status.Phase == corev1.PodSucceeded || seen.Status.Phase == corev1.PodFailed {
		if ok && seen.DeletionTimestamp != nil {
			k.finish(seen)
		}
		return
	}
	k.mu.Lock()
	p := k.pods[seen.UID]
	if p == nil && !k.stopped && !n.death {
		if seen.DeletionTimestamp != nil {
			k.mu.Unlock()
			k.finish(seen)
			return
		}
		p = newPod(k, n.name, seen)
		k.pods[seen.UID] = p
		k.tasks.Go(p.run)
	}
	k.mu.Unlock()
	switch {
	case p == nil:
	case seen.DeletionTimestamp != nil:
		p.end(seen)
	case seen.Status.Phase == corev1.PodRunning && saysReady(seen) != p.isReady():
		// The node lifecycle controller calls pods not ready while it hears nothing of their node.
		k.tasks.Go(func() { p.report(corev1.PodRunning, "") })
	}
}

func saysReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// gone kills what is left of a pod that somebody removed by force.
func (k *Kubelet) gone(uid types.UID) {
	k.mu.Lock()
	p := k.pods[uid]
	k.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// finish removes a pod that has ended from the API.
func (k *Kubelet) finish(p *corev1.Pod) {
	zero := int64(0)
	err := k.api.CoreV1().Pods(p.Namespace).Delete(k.ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled) {
		time.AfterFunc(time.Second, func() {
			if k.ctx.Err() == nil {
				k.finish(p)
			}
		})
	}
}

// address takes an address for a pod.
func (k *Kubelet) address() (netip.Addr, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.next
	if !k.c.Addresses.Contains(a) {
		if len(k.free) == 0 {
			return a, errors.New("no address is left for a pod")
		}
		a, k.free = k.free[0], k.free[1:]
		return a, nil
	}
	k.next = a.Next()
	return a, nil
}

// forget frees what a pod had.
func (k *Kubelet) forget(p *pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, p.uid)
	if p.address.IsValid() {
		k.free = append(k.free, p.address)
	}
}

// Close kills all pods and removes the network.
func (k *Kubelet) Close() {
	k.mu.Lock()
	k.stopped = true
	var all []*pod
	for _, p := range k.pods {
		all = append(all, p)
	}
	k.mu.Unlock()
	k.stop()
	for _, p := range all {
		p.kill()
	}
	k.tasks.Wait()
	_ = ip("link", "del", k.bridge) // the next run removes it otherwise
}
