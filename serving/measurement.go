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

// LengthPoint is the measured latency of one variant on one device type, with one batch at once and a length other than
// that of its LatencyPoints.
type LengthPoint struct {
	Variant    VariantID
	DeviceType DeviceTypeID
	Reference  int32 // length of the LatencyPoints
	Length     int32 // as in Query
	Items      int   // of the batch, >= 1
	Mean       time.Duration
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
	Length []LengthPoint `json:",omitempty"`
}

// Of returns the measurements of some variants on some device types, under the identifiers that to gives them.
// Overheads are of no variant and left out.
func (m Measurements) Of(to func(VariantID, DeviceTypeID) (VariantID, bool)) (out Measurements) {
	var ok bool
	for _, p := range m.Latency {
		if p.Variant, ok = to(p.Variant, p.DeviceType); ok {
			out.Latency = append(out.Latency, p)
		}
	}
	for _, p := range m.Load {
		if p.Variant, ok = to(p.Variant, p.DeviceType); ok {
			out.Load = append(out.Load, p)
		}
	}
	for _, p := range m.Memory {
		if p.Variant, ok = to(p.Variant, p.DeviceType); ok {
			out.Memory = append(out.Memory, p)
		}
	}
	for _, p := range m.Length {
		if p.Variant, ok = to(p.Variant, p.DeviceType); ok {
			out.Length = append(out.Length, p)
		}
	}
	return out
}

// Replaced returns measurements with newer ones in place of all those that are old.
func (m Measurements) Replaced(old func(VariantID, DeviceTypeID) bool, by Measurements) Measurements {
	out := m.Of(func(v VariantID, d DeviceTypeID) (VariantID, bool) { return v, !old(v, d) })
	out.Latency, out.Load = append(out.Latency, by.Latency...), append(out.Load, by.Load...)
	out.Memory, out.Overhead = append(out.Memory, by.Memory...), m.Overhead
	out.Length = append(out.Length, by.Length...)
	return out
}
