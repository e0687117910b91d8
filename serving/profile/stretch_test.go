package profile

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// attention is the time of a model that attends: 2 ms and, for each item, 40 us + 5 us x length + 0.02 us x length^2.
func attention(items int, length float64) time.Duration {
	us := 2000 + float64(items)*(40+5*length+0.02*length*length)
	return time.Duration(us * 1e3)
}

func oneVariant() *serving.Spec {
	return &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}, {Name: "other"}},
		Variants:    []serving.Variant{{Name: "v", MaxBatch: 16}},
	}
}

// atLengths has the points of a model with the reference 64.
func atLengths(takes func(int, float64) time.Duration, batches []int, lengths ...int32) (m serving.Measurements) {
	for _, n := range batches {
		m.Latency = append(m.Latency, serving.LatencyPoint{Items: n, Concurrency: 1, Mean: takes(n, 64)})
		for _, l := range lengths {
			m.Length = append(m.Length, serving.LengthPoint{Reference: 64, Length: l, Items: n,
				Mean: takes(n, float64(l))})
		}
	}
	return m
}

// Three lengths at two batch sizes give back the base and the factors of a model, and what lies between and a little
// beyond within a tenth.
func TestStretchesOfAModelThatAttends(t *testing.T) {
	s := NewStretches(oneVariant(), atLengths(attention, []int{1, 16}, 16, 256))
	if off, ok := s.Error(0, 0); !ok || off > 0.01 {
		t.Errorf("the fit is off by %v, %v", off, ok)
	}
	for _, length := range []int32{16, 32, 64, 128, 256, 384, 1024} {
		for _, items := range []int{1, 5, 16} {
			got, want := s.Latency(0, 0, attention(items, 64), length), attention(items, float64(length))
			if math.Abs(float64(got)/float64(want)-1) > 0.1 {
				t.Errorf("%d items of length %d: %v, want %v", items, length, got, want)
			}
		}
	}
	if got := s.Latency(0, 0, attention(4, 64), 64); (got - attention(4, 64)).Abs() > time.Microsecond {
		t.Errorf("at the reference: %v, want %v", got, attention(4, 64))
	}
	if a, b := s.Latency(0, 0, time.Second, 1), s.Latency(0, 0, time.Second, 16); a != b {
		t.Errorf("below the shortest length: %v, want %v as there", a, b)
	}
}

// Longest is the inverse of Latency: that length is in time, and one more is not.
func TestLongest(t *testing.T) {
	s := NewStretches(oneVariant(), atLengths(attention, []int{1, 16}, 16, 256))
	one := attention(1, 64)
	n := s.Longest(0, 0, one, 10*time.Millisecond, 1<<20)
	if s.Latency(0, 0, one, n) > 10*time.Millisecond || s.Latency(0, 0, one, n+1) <= 10*time.Millisecond {
		t.Errorf("longest %d", n)
	}
	if n < 400 || n > 600 { // 2000 + 40 + 5 L + 0.02 L^2 = 10000 us: L = 518
		t.Errorf("longest %d, want about 518", n)
	}
	if got := s.Longest(0, 0, one, time.Microsecond, 1<<20); got != 0 {
		t.Errorf("nothing is in time in a microsecond, longest is %d", got)
	}
	if got := s.Longest(0, 1, one, one, 900); got != 900 {
		t.Errorf("where no lengths were measured: %d", got)
	}
}

// A length that makes a batch faster is noise: factors never fall.
func TestStretchesNeverFall(t *testing.T) {
	s := NewStretches(oneVariant(), atLengths(func(items int, length float64) time.Duration {
		return time.Duration(items) * time.Duration(1000-length)
	}, []int{1, 16}, 16, 32, 256))
	last := time.Duration(0)
	for length := int32(1); length < 1024; length *= 2 {
		got := s.Latency(0, 0, time.Second, length)
		if got < last {
			t.Errorf("length %d takes %v, a shorter one %v", length, got, last)
		}
		last = got
	}
}

// Without points, with too few lengths and for an unknown length nothing is stretched.
func TestNothingIsStretched(t *testing.T) {
	for name, s := range map[string]*Stretches{
		"none":        NewStretches(oneVariant(), atLengths(attention, []int{1})),
		"two lengths": NewStretches(oneVariant(), atLengths(attention, []int{1, 16}, 256)),
		"no such batch": NewStretches(oneVariant(), serving.Measurements{
			Length: atLengths(attention, []int{4}, 16, 256).Length,
		}),
		"no such variant": NewStretches(oneVariant(), serving.Measurements{
			Length: []serving.LengthPoint{{Variant: 7, Reference: 1, Length: 2, Items: 1, Mean: 1}, {DeviceType: -1}},
		}),
		"unknown length": NewStretches(oneVariant(), atLengths(attention, []int{1}, 16, 256)),
	} {
		length := int32(256)
		if name == "unknown length" {
			length = 0
		}
		if got := s.Latency(0, 0, time.Second, length); got != time.Second {
			t.Errorf("%s: %v", name, got)
		}
		if _, ok := s.Error(0, 0); ok != (name == "unknown length") {
			t.Errorf("%s: fitted %v", name, ok)
		}
	}
	s := NewStretches(oneVariant(), atLengths(attention, []int{1}, 16, 256))
	if s.Latency(0, 0, Unknown, 256) != Unknown {
		t.Error("what is not known is no longer unknown")
	}
}

// A variant that runs single items has no base that could be told from the rest.
func TestStretchesOfSingleItems(t *testing.T) {
	s := NewStretches(oneVariant(), atLengths(attention, []int{1}, 16, 256))
	if got, want := s.Latency(0, 0, attention(1, 64), 256), attention(1, 256); (got - want).Abs() > time.Microsecond {
		t.Errorf("%v, want %v", got, want)
	}
}

// A batch of short and long items is two runs, with the base of 2 ms twice. Lengths that are near each other share one
// where they are padded.
func TestSpread(t *testing.T) {
	takes := func(n int, length float64) time.Duration {
		return 2*time.Millisecond + time.Duration(float64(n)*(100+10*length))*time.Microsecond
	}
	spec := oneVariant()
	m := atLengths(takes, []int{1, 16}, 16, 256)
	table, err := NewTable(spec, m, Mean)
	if err != nil {
		t.Fatal(err)
	}
	p := &ByLength{Profile: table, Stretches: table.Stretches()}
	ms := func(n int, length float64) float64 { return takes(n, length).Seconds() * 1e3 }
	for _, c := range []struct {
		pads   bool
		sample []int32
		each   float64
		items  int
		want   float64
	}{
		{true, []int32{64, 64, 64}, 1, 8, 1},
		{false, []int32{64, 64, 64}, 1, 8, 1},
		{true, []int32{16, 256}, 1, 1, 1},
		{true, []int32{16, 256}, 1, 2, (ms(1, 16) + ms(1, 256)) / ms(2, 136)},
		{true, []int32{16, 256}, 1, 16, (ms(8, 16) + ms(8, 256)) / ms(16, 136)},
		{true, []int32{16, 256}, 4, 4, (ms(4, 16) + ms(4, 256)) / 2 / ms(4, 136)},
		{true, []int32{16, 256}, 4, 8, (ms(4, 16) + ms(4, 256)) / ms(8, 136)},
		{true, []int32{64, 66}, 1, 4, ms(4, 66) / ms(4, 65)},
		{false, []int32{64, 66}, 1, 4, (ms(2, 64) + ms(2, 66)) / ms(4, 65)},
	} {
		spec.Variants[0].Pads = c.pads
		got := p.Spread(spec, 0, 0, c.sample, c.each)
		if len(got) != 16 || math.Abs(got[c.items-1]-c.want) > 0.02 {
			t.Errorf("pads %v, lengths %v: %d items take %.3f times as long, want %.3f", c.pads, c.sample, c.items,
				got[c.items-1], c.want)
		}
	}
}
