package serving

import (
	"math"
	"time"
)

// Time is an instant in nanoseconds since the run began. Drivers own the clock; deciding code only receives a Time.
type Time int64

// Never is later than every instant of a run. It is the wake-up time when nothing is due.
const Never Time = math.MaxInt64

// Add returns t moved by d. Never stays Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	return t + Time(d)
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Seconds returns t in seconds since the run began.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// String prints t as a duration since the run began, the form of journals and explanations; Never is "never".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return time.Duration(t).String()
}
