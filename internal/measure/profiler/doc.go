// Package profiler measures how long variants take at every batch size and concurrency, through any dataplane.Backend.
// It writes the result as a file, which planners and the simulator read.
//
// A point is measured until its mean and its 95th percentile are exact enough, not a fixed number of times. Runs are
// like those in service: points take turns in random order, a run each, so that another model has run before, and every
// other run comes after a pause. A machine that is slow for a while slows all points.
package profiler
