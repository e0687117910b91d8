// Package profiler measures how long every variant takes at every batch size and concurrency, through any
// dataplane.Backend, and writes what it found as a file that planners and the simulator start from.
//
// A point is measured until its mean and its 95th percentile are known well enough, not a fixed number of times. The
// points take turns in random order, so that a machine that slows down for a while does so for all of them.
package profiler
