// Package dataplane drives the engine on the real clock. One goroutine owns the engine. Requests and completed batches
// are its inputs, and its decisions start batches on real model runtimes. The package contains no scheduling rule.
package dataplane
