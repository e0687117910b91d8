package diagnosis

import "time"

// LongestObjective is the longest objective that is looked for.
const LongestObjective = time.Hour

// LeastObjective returns the shortest objective above low for which can holds, up to the tolerance and rounded up where
// the rounded one can be kept too; 0 if not even the longest will do. More time is taken never to be too little.
func LeastObjective(low, tolerance time.Duration, can func(time.Duration) bool) time.Duration {
	high := LongestObjective
	if low >= high || !can(high) {
		return 0
	}
	for high-low > max(tolerance, 1) {
		if middle := low + (high-low)/2; can(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	if round := RoundObjective(high); can(round) {
		return round
	}
	return high
}

// RoundObjective rounds an objective up to what a person would write: three digits or so, half a per cent off at most.
func RoundObjective(d time.Duration) time.Duration {
	unit := 10 * time.Microsecond
	for unit*2000 < d {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}
