// Package profiler measures how long variants take at every batch size and concurrency, through any dataplane.Backend.
// It writes the result as a file, which planners and the simulator read.
//
// A point is measured until its mean and its 95th percentile are exact enough, not a fixed number of times. Points take
// turns in random order, so that a machine that is slow for a while slows all of them.
package profiler
