// Package dataplane drives the engine on the real clock. One goroutine owns the engine: it turns requests and ended
// batches into inputs, and starts batches on model runtimes as the engine decides. The package contains no scheduling
// rule.
package dataplane
