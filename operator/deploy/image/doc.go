// Package image makes an OCI image of sluice without a container daemon or a registry: the two programs, ONNX Runtime,
// the C libraries that they need, authorities to trust, and a user who is not root. There is no shell.
//
// Equal files give equal bytes: entries are sorted, owned by root and of one time.
package image
