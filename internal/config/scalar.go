package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span written as in Go: 50ms, 1.5s, 2m.
type Duration time.Duration

// String returns the form that sluice.yaml uses.
func (d Duration) String() string { return time.Duration(d).String() }

func (d *Duration) parse(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number and its unit, such as 50ms, 1.5s or 2m", s)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", s)
	}
	*d = Duration(v)
	return nil
}

// Size is a number of bytes, written with or without a unit: 1048576, 512KiB, 8GiB, 2GB.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// String returns the form that sluice.yaml uses, with the largest unit that gives a whole number.
func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if s != 0 && int64(s)%units[i].bytes == 0 {
			return strconv.FormatInt(int64(s)/units[i].bytes, 10) + units[i].name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// ParseSize reads a size as it stands in a configuration, such as 512MiB.
func ParseSize(text string) (s Size, err error) {
	err = s.parse(text)
	return s, err
}

func (s *Size) parse(text string) error {
	number, scale := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, scale = strings.TrimSpace(n), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(v) || math.IsInf(v, 0) && err == nil {
		return fmt.Errorf("%q is not a size: write a number and its unit, such as 512MiB or 2GB", text)
	}
	switch v *= float64(scale); {
	case v < 0:
		return fmt.Errorf("%q is negative", text)
	case v >= 1<<62:
		return fmt.Errorf("%q is too large", text)
	}
	*s = Size(v)
	return nil
}
