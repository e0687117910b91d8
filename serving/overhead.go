package serving

import "time"

// Overhead is what serving costs beside the models' runs, as measured on one device type through the whole server while
// queries kept it half busy. A profile's points do not have it.
type Overhead struct {
	DeviceType DeviceTypeID
	// Batch is the time from the decision to start a batch until its end is known, less its run.
	Batch time.Duration
	// Entry is by how much longer batches of an app's first stage run than in the profile: beside them queries are taken
	// in and answers sent.
	Entry time.Duration
	// Query is what a client waits for an answer beside the time that the query is with the scheduler.
	Query time.Duration
}
