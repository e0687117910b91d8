package supply

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/kinds"
)

// RoleWorker is the value of v1alpha1.LabelRole on pods of machines.
const RoleWorker = "worker"

// nodesTimeout bounds the question whether nodes may be watched.
const nodesTimeout = 15 * time.Second

// Calls of a process for its machines: a client's default of a few a second would make a large plan slow. What is too
// much for the API server is its own fairness to say.
const (
	sourceQPS   = 50
	sourceBurst = 100
)

// Source watches the pods of a fleet and the nodes of the cluster, for the supplies of all cells of a process.
type Source struct {
	client    client.Client
	cache     cache.Cache
	namespace string
	fleet     string
	// withoutNodes is why nodes are not watched; nil where they are.
	withoutNodes error
	claims       claims
	stop         context.CancelFunc
	done         chan struct{}
}

// NewSource watches a fleet's pods in a namespace until Close. ctx bounds the start alone.
func NewSource(ctx context.Context, config *rest.Config, namespace, fleet string) (*Source, error) {
	scheme, err := kinds.Scheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = sourceQPS, sourceBurst
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: kinds.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("machine supply: %w", err)
	}
	workers := labels.SelectorFromSet(labels.Set{
		v1alpha1.LabelFleet: fleet, v1alpha1.LabelRole: RoleWorker,
	})
	watching, err := cache.New(config, cache.Options{
		Scheme: scheme, Mapper: c.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Namespaces: map[string]cache.Config{namespace: {}}, Label: workers,
				Transform: cache.TransformStripManagedFields(),
			},
			&corev1.Node{}: {Transform: slimNode},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("machine supply: %w", err)
	}
	s := &Source{client: c, cache: watching, namespace: namespace, fleet: fleet, done: make(chan struct{})}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	failed := make(chan error, 1)
	go func() {
		defer close(s.done)
		failed <- watching.Start(running)
	}()
	if _, err := watching.GetInformer(ctx, &corev1.Pod{}); err != nil {
		s.Close()
		return nil, fmt.Errorf("machine supply: watching pods: %w", err)
	}
	// Without the right to watch nodes there are no notices from them, and machines all the same.
	limited, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	if err := c.List(limited, &corev1.NodeList{}, client.Limit(1)); apierrors.IsForbidden(err) {
		s.withoutNodes = err
	} else if _, err := watching.GetInformer(ctx, &corev1.Node{}); err != nil {
		s.Close()
		return nil, fmt.Errorf("machine supply: watching nodes: %w", err)
	}
	select {
	case err := <-failed:
		s.Close()
		return nil, fmt.Errorf("machine supply: %w", err)
	default:
	}
	return s, nil
}

// claims are which supplies want which pods. While a cell's configuration is replaced it has two supplies, and what one
// gives back the other may use.
type claims struct {
	mu  sync.Mutex
	who map[string]map[*Supply]bool // by the pod's name
}

func (c *claims) set(pod string, s *Supply, wants bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.who == nil {
		c.who = make(map[string]map[*Supply]bool)
	}
	if !wants {
		delete(c.who[pod], s)
		if len(c.who[pod]) == 0 {
			delete(c.who, pod)
		}
		return
	}
	if c.who[pod] == nil {
		c.who[pod] = make(map[*Supply]bool)
	}
	c.who[pod][s] = true
}

// others reports whether another supply wants a pod.
func (c *claims) others(pod string, s *Supply) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.who[pod])
	return n > 1 || n == 1 && !c.who[pod][s]
}

// forget drops the claims of a supply that ends.
func (c *claims) forget(s *Supply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pod := range c.who {
		delete(c.who[pod], s)
		if len(c.who[pod]) == 0 {
			delete(c.who, pod)
		}
	}
}

// Supply makes the supply of a cell of its machines.json. close ends it and leaves the machines as they are.
func (s *Source) Supply(machines []byte, log *slog.Logger) (out *Supply, close func(), err error) {
	m, err := cell.Decode(string(machines))
	if err != nil {
		return nil, nil, err
	}
	if m.Fleet != s.fleet {
		return nil, nil, fmt.Errorf("%s: fleet: is %q, and the machines of %q are watched", cell.KeyMachines, m.Fleet,
			s.fleet)
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	if out, err = New(ctx, Config{Source: s, Machines: m, Log: log}); err != nil {
		return nil, nil, err
	}
	return out, out.Close, nil
}

// Supplier is Supply in the form that dispatchers take.
func (s *Source) Supplier(log *slog.Logger) func(cell int, machines []byte) (provider.Supply, func(), error) {
	return func(cell int, machines []byte) (provider.Supply, func(), error) {
		out, close, err := s.Supply(machines, log.With("cell", cell))
		if err != nil {
			return nil, nil, err
		}
		return out, close, nil
	}
}

// syncTimeout bounds the wait for the pods and nodes that are there.
const syncTimeout = time.Minute

// Close ends the watches. Supplies must not be used any more.
func (s *Source) Close() {
	s.stop()
	<-s.done
}

// slimNode keeps of a node what machines depend on: there may be thousands of them.
func slimNode(x any) (any, error) {
	n, ok := x.(*corev1.Node)
	if !ok {
		return x, nil
	}
	conditions := n.Status.Conditions[:0:0]
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			c.LastHeartbeatTime = metav1.Time{}
			conditions = append(conditions, c)
		}
	}
	return &corev1.Node{
		TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp,
			DeletionTimestamp: n.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable},
		Status: corev1.NodeStatus{Conditions: conditions},
	}, nil
}
