package serving

import (
	"reflect"
	"testing"
	"time"
)

// What was measured of a variant anew takes the place of what was known of it, on the device types where it was
// measured; all else stays as it is.
func TestMeasurementsAreReplaced(t *testing.T) {
	of := func(items int, cells ...[2]int32) (m Measurements) {
		for _, c := range cells {
			v, d := VariantID(c[0]), DeviceTypeID(c[1])
			m.Latency = append(m.Latency, LatencyPoint{Variant: v, DeviceType: d, Items: items})
			m.Load = append(m.Load, LoadPoint{Variant: v, DeviceType: d, Load: time.Duration(items)})
			m.Memory = append(m.Memory, MemoryPoint{Variant: v, DeviceType: d, Items: items})
			m.Length = append(m.Length, LengthPoint{Variant: v, DeviceType: d, Items: items})
		}
		return m
	}
	before := of(1, [2]int32{0, 0}, [2]int32{1, 0}, [2]int32{1, 1})
	before.Overhead = []Overhead{{DeviceType: 1, Batch: 7}}
	kept := before.Of(func(v VariantID, _ DeviceTypeID) (VariantID, bool) { return v, true })
	kept.Overhead = before.Overhead
	got := before.Replaced(func(v VariantID, d DeviceTypeID) bool { return v == 1 && d == 1 }, of(2, [2]int32{1, 1}))
	want, one := of(1, [2]int32{0, 0}, [2]int32{1, 0}), of(2, [2]int32{1, 1})
	want.Latency, want.Load = append(want.Latency, one.Latency...), append(want.Load, one.Load...)
	want.Memory, want.Overhead = append(want.Memory, one.Memory...), before.Overhead
	want.Length = append(want.Length, one.Length...)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(before, kept) {
		t.Errorf("%+v, want %+v; it was %+v", got, want, before)
	}
	moved := before.Of(func(v VariantID, d DeviceTypeID) (VariantID, bool) { return v + 4, d == 1 })
	if want := of(1, [2]int32{5, 1}); !reflect.DeepEqual(moved, want) {
		t.Errorf("under other identifiers: %+v, want %+v", moved, want)
	}
}
