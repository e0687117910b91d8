package cluster

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// simulatedNode is the label, as KEY=VALUE, of nodes whose pods kwok simulates.
const simulatedNode = "sluice.dev/node=simulated"

// AddNodes adds simulated nodes. It does not wait until they are ready.
func (c *Cluster) AddNodes(ctx context.Context, n Nodes) error {
	key, value, _ := strings.Cut(simulatedNode, "=")
	labels := map[string]string{key: value, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}
	maps.Copy(labels, n.Labels)
	var all errgroup.Group
	all.SetLimit(nodesAtOnce)
	for i := range n.Count {
		all.Go(func() error {
			_, err := c.addNode(ctx, fmt.Sprintf("%s-%d", n.Name, i), labels, n)
			return err
		})
	}
	return all.Wait()
}

// nodesAtOnce is how many nodes are made at a time.
const nodesAtOnce = 8

func (c *Cluster) addNode(ctx context.Context, name string, labels map[string]string, n Nodes) (*corev1.Node, error) {
	own := maps.Clone(labels)
	own[corev1.LabelHostname] = name
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	maps.Copy(capacity, n.Capacity)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	// A real server takes the status of a new node as it is given; only updates go by the subresource.
	if err := c.Client.Create(ctx, node); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return node, nil
}

// nodesReady waits until all nodes are ready.
func (c *Cluster) nodesReady(ctx context.Context) error {
	return c.await(ctx, c.apiserver, func() error {
		var list corev1.NodeList
		if err := c.Client.List(ctx, &list); err != nil {
			return err
		}
		for _, n := range list.Items {
			if !nodeReady(&n) {
				return fmt.Errorf("node %s is not ready", n.Name)
			}
		}
		return nil
	})
}

func nodeReady(n *corev1.Node) bool {
	for _, x := range n.Spec.Taints {
		if x.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady {
			return x.Status == corev1.ConditionTrue
		}
	}
	return false
}
