// Package cluster runs a real Kubernetes control plane on this machine, for tests: etcd and kube-apiserver with RBAC
// and an authority of its own, with sluice's resources defined. Options.Controllers adds the controller manager, the
// scheduler and simulated nodes (kwok), and makes the addresses of their pods addresses of this machine, so that a
// process can answer for a pod.
//
// Everything ends with the test, also when the test dies. scripts/kube-tools.sh builds the programs.
package cluster
