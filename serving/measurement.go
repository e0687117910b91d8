package serving

import "time"

// LatencyPoint is what was measured for one variant on one device type at one batch size and concurrency. It is plain
// data: serving/profile turns points into belief, sim/truth into the behaviour of simulated machines.
type LatencyPoint struct {
	Variant     VariantID
	DeviceType  DeviceTypeID
	Items       int // inputs in the batch, >= 1
	Concurrency int // batches running at once on the instance, >= 1
	Samples     int
	Mean        time.Duration
	StdDev      time.Duration
	P50         time.Duration
	P90         time.Duration
	P95         time.Duration
	P99         time.Duration
}

// LoadPoint is what was measured for bringing one variant up on one device type.
type LoadPoint struct {
	Variant    VariantID
	DeviceType DeviceTypeID
	Load       time.Duration // from the order to the first answer at any batch size, warm-up included
}

// Measurements is everything known of how fast a Spec's variants run.
type Measurements struct {
	Latency []LatencyPoint
	Load    []LoadPoint
}
