package longtest

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Seeds reads the seed, or the range of seeds such as 1-1000, that a variable of the environment names; false where it
// is not set.
func Seeds(variable string) (from, to uint64, ok bool, err error) {
	s := os.Getenv(variable)
	if s == "" {
		return 0, 0, false, nil
	}
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	from, wrong := strconv.ParseUint(first, 10, 64)
	to, worse := strconv.ParseUint(last, 10, 64)
	return from, to, true, errors.Join(wrong, worse)
}

// Shrink returns as few events of a script as still fail, found in at most tries runs.
func Shrink[E any](events []E, fails func([]E) bool, tries int) []E {
	for size := (len(events) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(events) && tries > 0; tries-- {
			less := slices.Delete(slices.Clone(events), from, min(from+size, len(events)))
			if fails(less) {
				events = less
			} else {
				from += size
			}
		}
	}
	return events
}
