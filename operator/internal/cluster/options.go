package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Options say what a control plane is made of.
type Options struct {
	// Controllers adds the controller manager, the scheduler and nodes: Deployments get pods, and pods run. Without it
	// there are etcd and the API server alone, and nothing happens by itself. It needs root.
	Controllers bool
	// Nodes to begin with, with Controllers.
	Nodes []Nodes
	// Processes are nodes whose pods are processes of this machine, with Controllers.
	Processes []Nodes
	// Start is how long a simulated pod takes from its node to ready. Default: none.
	Start time.Duration
	// Empty leaves sluice's resources undefined, for tests that install them.
	Empty bool
	// NodeGrace is how long a node may be silent before it counts as lost, with Controllers. Default: 20 s.
	NodeGrace time.Duration
	// Keep is a folder for the logs of the programs, which stays. Default: a temporary one, whose logs are shown where
	// the test fails.
	Keep string
}

// Nodes are equal nodes. They are called NAME-0, NAME-1 and so on.
type Nodes struct {
	Name   string
	Count  int
	Labels map[string]string
	Taints []corev1.Taint
	// Capacity of a node. Default: 32 processors, 256 GiB, 110 pods.
	Capacity corev1.ResourceList
}
