package serving

import "time"

// LatencyPoint is the measured latency of one variant on one device type, at one batch size and one concurrency.
type LatencyPoint struct {
	Variant     VariantID
	DeviceType  DeviceTypeID
	Items       int // items of the batch, >= 1
	Concurrency int // batches that run at once on the instance, >= 1
	Samples     int
	Mean        time.Duration
	StdDev      time.Duration
	P50         time.Duration
	P90         time.Duration
	P95         time.Duration
	P99         time.Duration
}

// LoadPoint is the measured time to bring one variant up on one device type.
type LoadPoint struct {
	Variant    VariantID
	DeviceType DeviceTypeID
	Load       time.Duration // from the order to the first answer at any batch size, warm-up included
}

// MemoryPoint is the measured memory of one variant on one device type, in bytes.
type MemoryPoint struct {
	Variant    VariantID
	DeviceType DeviceTypeID
	Loaded     int64 // once it is loaded and has run one item
	Items      int   // of the largest batch that it was run with; 0 where only Loaded was measured
	Largest    int64 // taken by it then
	MostItems  int   // largest batch that there was memory for; 0 where none lacked it
}

// Measurements are all measured latencies and load times of a Spec's variants. Overhead has each device type at most
// once; one that it lacks has none that is known.
type Measurements struct {
	Latency  []LatencyPoint
	Load     []LoadPoint
	Overhead []Overhead `json:",omitempty"`
	// Memory has each variant at most once on a device type.
	Memory []MemoryPoint `json:",omitempty"`
}
