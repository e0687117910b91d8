// Package resources writes a configuration as Kubernetes resources of group sluice.dev (see operator/api/v1alpha1), and
// reads KServe's InferenceServices. It knows Kubernetes as text alone: what a resource looks like is repeated here, and
// the operator's tests hold it against the definitions on an API server.
//
// Nothing is lost in silence. What has no counterpart is in the list of what was left out, with its line and reason.
package resources
