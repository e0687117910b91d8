// Package fake is a dataplane.Backend without models: it takes as long as it is told, fails as often as it is told and
// answers with copies of its inputs or with constants. Tests and benchmarks of everything above the backend run on it,
// also inside testing/synctest bubbles: it starts no goroutine, waits only on timers and channels, and a run of zero
// latency returns inline.
package fake
