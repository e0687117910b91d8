package workload

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Arrival is a query that is about to arrive.
type Arrival struct {
	At    serving.Time
	App   serving.AppID
	Items int32 // at least 1
	// Length is as in serving.Query; 0 for one that is not known.
	Length int32
	// Priority is as in serving.Query: 1 is the highest, 0 (none given) comes last.
	Priority int32
	// Timeout is the client's own deadline, counted from At; 0 means the app's SLO.
	Timeout     time.Duration
	MinAccuracy float64           // in [0, 1]
	Variant     serving.VariantID // pinned variant; serving.None lets the system choose
	Sample      int32             // first row of the labelled inputs, or -1
	Stream      uint64            // as in serving.Query; 0 for none
	Tenant      int32             // as in serving.Query; 0 for none
	// Stages has, in a replay, the items that reached each stage of the app, by name. A stage without an entry was
	// passed over. Nil when the record does not have them.
	Stages map[string]int32
	// Lengths has, in a replay, the length of the longest item at stages where it is known, by name.
	Lengths map[string]int32
}

// Source yields arrivals in non-decreasing order of At. After the last one it returns false, also when it is called
// again. Next does not allocate.
type Source interface {
	Next() (Arrival, bool)
}

// Slice is a Source over a slice of arrivals.
type Slice struct {
	arrivals []Arrival
	next     int
}

// FromSlice returns a Source over a, which must be sorted by At and must not change while it is read.
func FromSlice(a []Arrival) *Slice { return &Slice{arrivals: a} }

// Next implements Source.
func (s *Slice) Next() (Arrival, bool) {
	if s.next >= len(s.arrivals) {
		return Arrival{}, false
	}
	a := s.arrivals[s.next]
	s.next++
	return a, true
}

// Collect reads at most limit arrivals of src.
func Collect(src Source, limit int) []Arrival {
	var out []Arrival
	for len(out) < limit {
		a, ok := src.Next()
		if !ok {
			break
		}
		out = append(out, a)
	}
	return out
}

type limited struct {
	src   Source
	until serving.Time
	left  int64
}

// Limit returns src without the arrivals at or after until, and without those after the first count. serving.Never and
// a negative count mean no limit.
func Limit(src Source, until serving.Time, count int64) Source {
	return &limited{src: src, until: until, left: count}
}

// Next implements Source.
func (l *limited) Next() (Arrival, bool) {
	if l.left == 0 {
		return Arrival{}, false
	}
	a, ok := l.src.Next()
	if !ok || (a.At >= l.until && l.until != serving.Never) {
		l.left = 0
		return Arrival{}, false
	}
	if l.left > 0 {
		l.left--
	}
	return a, true
}
