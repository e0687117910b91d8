// Package fake is a dataplane.Backend without models. Its latencies and failures are configured, and it answers with
// copies of its inputs or with constants. Tests and benchmarks of everything above the backend use it, also inside
// testing/synctest bubbles. It starts no goroutine and waits only on timers and channels. A run of zero latency returns
// at once.
package fake
