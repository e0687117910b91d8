package resources

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// quantity writes a number as Kubernetes reads it: in decimals, at most nine of them.
func quantity(v float64) string {
	s := strconv.FormatFloat(v, 'f', 9, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" || s == "" {
		return "0"
	}
	return s
}

// memory writes a number of bytes with the largest unit that gives a whole number; the empty text for 0.
func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	for i, unit := range []string{"Ti", "Gi", "Mi", "Ki"} {
		if size := int64(1) << (40 - 10*i); bytes%size == 0 {
			return strconv.FormatInt(bytes/size, 10) + unit
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// span writes a time as Kubernetes reads it; the empty text for 0.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func micros(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }
