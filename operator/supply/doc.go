// Package supply gives machines that are pods: a pod for each machine, made when a plan needs it, followed until it is
// ready, and deleted when it is given back. It says before a pod is stopped that it will be, as far as Kubernetes says
// so: evictions, drains, taints of nodes. It watches, and never polls.
package supply
