package simtest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Episode is a time in which a worker misbehaves.
type Episode struct {
	Worker                   serving.WorkerID
	From, Until              serving.Time
	Slow                     float64 // factor on the time of batches that begin; 0 for none
	Breaks, Hangs, LoadHangs bool
	Down                     bool // instances are lost at From, and those launched before Until
}

// Script is what goes wrong in a run.
type Script struct {
	Episodes []Episode
	// Plans reports whether the n-th request for a plan fails, from 0.
	Plans func(n int) bool
	// Pauses are times in which the engine is not called, in order, apart from each other.
	Pauses [][2]serving.Time
	// Cancels are the times at which clients give up, by the number of their query from 1, in the order of the times.
	Cancels []Cancelled
	End     serving.Time // all is well from here on
}

// Cancelled is a client that gives up.
type Cancelled struct {
	At    serving.Time
	Query serving.QueryID
}

// longest is how long episodes and pauses are at most, in a load of a length.
func longest(end serving.Time) int64 { return max(int64(end)/2, int64(time.Second)) }

// RandomScript returns faults of all kinds for a cluster whose load ends at a time and has so many queries. Some
// workers flap.
func (c *Cluster) RandomScript(rng *rand.Rand, end serving.Time, queries int) *Script {
	s := &Script{End: end}
	at := func() serving.Time { return serving.Time(rng.Int64N(int64(end) + 1)) }
	for range rng.IntN(6) {
		e := Episode{Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))), From: at()}
		e.Until = e.From + serving.Time(rng.Int64N(longest(end)))
		switch rng.IntN(6) {
		case 0:
			e.Slow = 1 + 20*rng.Float64()
		case 1:
			e.Breaks = true
		case 2:
			e.Hangs = true
		case 3:
			e.LoadHangs = true
		case 4:
			e.Down = true
		case 5: // it flaps: in turns well and in some trouble
			period := serving.Time(time.Duration(20+rng.IntN(1500)) * time.Millisecond)
			kind := rng.IntN(3)
			for from := e.From; from < e.Until && len(s.Episodes) < 200; from += 2 * period {
				s.Episodes = append(s.Episodes, Episode{
					Worker: e.Worker, From: from, Until: from + period, Breaks: kind == 0, Hangs: kind == 1,
					Down: kind == 2,
				})
			}
			continue
		}
		s.Episodes = append(s.Episodes, e)
	}
	for _, e := range s.Episodes {
		s.End = max(s.End, e.Until)
	}
	slices.SortStableFunc(s.Episodes, func(a, b Episode) int { return int(a.From - b.From) })
	failing := rng.IntN(3) // one in three scripts has planners that fail
	s.Plans = func(n int) bool { return failing == 0 && n%3 != 2 && n < 12 }
	for last := serving.Time(0); rng.IntN(3) == 0 && last < end; {
		from := last + 1 + at()/4
		last = from + serving.Time(rng.Int64N(int64(3*time.Second)))
		s.Pauses = append(s.Pauses, [2]serving.Time{from, last})
		s.End = max(s.End, last)
	}
	for range rng.IntN(1 + queries/20) {
		s.Cancels = append(s.Cancels, Cancelled{at(), serving.QueryID(1 + rng.IntN(queries))})
	}
	slices.SortStableFunc(s.Cancels, func(a, b Cancelled) int { return int(a.At - b.At) })
	return s
}

// At returns how a worker misbehaves at a time, its episodes taken together.
func (s *Script) At(now serving.Time, w serving.WorkerID) (e Episode) {
	for k := range s.Episodes {
		x := &s.Episodes[k]
		if x.From > now {
			break
		}
		if x.Worker != w || now >= x.Until {
			continue
		}
		e.Slow = max(e.Slow, x.Slow)
		e.Breaks, e.Hangs, e.LoadHangs = e.Breaks || x.Breaks, e.Hangs || x.Hangs, e.LoadHangs || x.LoadHangs
		e.Down = e.Down || x.Down
	}
	return e
}
