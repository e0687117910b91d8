// Package dataplane drives the engine on the real clock: one goroutine owns it, requests and completed batches come to
// it as inputs, and its decisions start batches on real model runtimes. It contains no scheduling rule.
package dataplane
