// Package machines runs what a configuration says of machines: the backends of its workers, those that are supplied,
// the accelerators they have, and the sites where its models are measured.
package machines
