package serving

import "time"

// Overhead is what serving costs beside the models' runs, as measured on one device type through the whole server while
// queries kept it half busy. The points of a profile are without it.
type Overhead struct {
	DeviceType DeviceTypeID
	// Batch is the time from the decision to start a batch until its end is known, less its run.
	Batch time.Duration
	// Query is what a client waits for an answer beside the time that the query is with the scheduler.
	Query time.Duration
}
