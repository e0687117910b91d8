// Package e2e tests the whole on a real control plane: the operator is installed as a user installs it, its pods are
// processes of this machine, models are real, and queries go to the addresses behind the Service.
package e2e
