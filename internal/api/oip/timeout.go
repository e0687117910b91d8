package oip

import (
	"strconv"
	"strings"
	"time"
)

// HeaderTimeout is the HTTP header with how long a client waits for its answer.
const HeaderTimeout = "Sluice-Timeout"

// ParseTimeout reads the value of HeaderTimeout: a whole number of microseconds, as the parameter timeout has them, or
// a number with a unit, such as 150ms or 1.5s.
func ParseTimeout(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if us, whole := strconv.ParseInt(text, 10, 64); whole == nil {
		d, err = time.Duration(min(us, int64(longestTimeout/time.Microsecond)))*time.Microsecond, nil
	}
	if err != nil || d <= 0 {
		return 0, invalid(HeaderTimeout, "is %.40q, want a time above 0, such as 150ms or 150000 (microseconds)", text)
	}
	return min(d, longestTimeout), nil
}

// longestTimeout is the longest time that makes a difference.
const longestTimeout = 365 * 24 * time.Hour
